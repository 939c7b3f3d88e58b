"""A time limit for calls of the operator's Python code, which runs beside other work and may never return.

A timer of the operating system raises `CallTimeout` inside the call, also in a wait or in a pattern that backtracks
without end. It works in the main thread only, which runs the event loop; elsewhere calls have no limit.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Out = TypeVar("Out")

AGAIN_S = 0.25
"""Wait before the exception is raised again in code that has swallowed it."""


class CallTimeout(BaseException):
    """A call has exceeded its time."""


class TimeLimit:
    """Calls functions with a time limit. Costs some 10 us per call; other users of the timer keep theirs."""

    def __init__(self, limit_s: float, *, cpu: bool = False) -> None:
        """`cpu`: seconds of CPU time, so that a stalled machine costs no call; a wait has no limit then."""
        self._limit_s = limit_s
        self._cpu = cpu
        self._running = False
        self._enabled = sys.platform != "win32" and threading.current_thread() is threading.main_thread()

    def call(self, function: Callable[..., Out], *arguments: Any, limit_s: float = 0.0) -> Out:
        """The result of a function; `limit_s`: instead of the limit. Raises `CallTimeout` within the limit plus the
        time of one C call."""
        if not self._enabled:
            return function(*arguments)
        which, number = (signal.ITIMER_PROF, signal.SIGPROF) if self._cpu else (signal.ITIMER_REAL, signal.SIGALRM)
        handler = signal.signal(number, self._on_alarm)
        timer = (0.0, 0.0)
        try:
            self._running = True
            timer = signal.setitimer(which, limit_s or self._limit_s, AGAIN_S)
            return function(*arguments)
        finally:
            self._running = False
            signal.setitimer(which, *timer)
            signal.signal(number, handler)

    def _on_alarm(self, _: int, __: object) -> None:
        if self._running:  # a late signal must not hit other code
            raise CallTimeout(f"longer than {self._limit_s:g} s" + (" of CPU time" if self._cpu else ""))
