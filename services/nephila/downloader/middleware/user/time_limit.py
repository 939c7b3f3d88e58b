"""A time limit for calls of user code in the event loop: an endless loop must not stop all fetches of the process.

A timer of the operating system (SIGALRM) raises `CallTimeout` inside the call, also in a wait or in a pattern that
backtracks without end. It works in the main thread only, which runs the event loop; elsewhere calls have no limit.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

AGAIN_S = 0.25
"""Wait before the exception is raised again in code that has swallowed it."""


class CallTimeout(BaseException):
    """A call has exceeded its time."""


class TimeLimit:
    """Calls functions with a time limit. Costs some 10 us per call; other users of the timer keep theirs."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._running = False
        self._enabled = sys.platform != "win32" and threading.current_thread() is threading.main_thread()

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function. Raises `CallTimeout` within the limit plus the time of one C call."""
        if not self._enabled:
            function(*arguments)
            return
        handler = signal.signal(signal.SIGALRM, self._on_alarm)
        timer = (0.0, 0.0)
        try:
            self._running = True
            timer = signal.setitimer(signal.ITIMER_REAL, self._limit_s, AGAIN_S)
            function(*arguments)
        finally:
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, handler)

    def _on_alarm(self, _: int, __: object) -> None:
        if self._running:  # a late signal must not hit other code
            raise CallTimeout(f"longer than {self._limit_s:g} s")
