"""Waits on a `Clock`: a pause, an event with a limit, a timer that is armed once, and growing waits before retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from nephila.kernel.runtime.clock import Clock, Timer


async def sleep(clock: Clock, seconds: float) -> None:
    """Return after this time of the clock."""
    over = asyncio.Event()
    timer = clock.call_at(clock.monotonic() + seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


async def wait(clock: Clock, seconds: float, event: asyncio.Event) -> bool:
    """Return when the event is set, or after this time; whether it is set."""
    over = asyncio.ensure_future(sleep(clock, seconds))
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((over, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
        waiting.cancel()
    return event.is_set()


class OneTimer:
    """The timer has at most one call that is due. Its owner arms it again, also from within the call."""

    __slots__ = ("_call", "_clock", "_timer", "due")

    def __init__(self, clock: Clock, call: Callable[[], None]) -> None:
        self._clock = clock
        self._call = call
        self._timer: Timer | None = None
        self.due: float | None = None
        """The instant of the call; None while the timer is not armed. Only this object sets it."""

    @property
    def armed(self) -> bool:
        """Whether the call is due later."""
        return self._timer is not None

    def start(self, seconds: float) -> None:
        """Call after this time; no effect while the timer is armed."""
        self.at(self._clock.monotonic() + seconds)

    def at(self, when: float) -> None:
        """Call at this instant of `Clock.monotonic`; no effect while the timer is armed."""
        if self._timer is None:
            self.due = when
            self._timer = self._clock.call_at(when, self._fire)

    def move(self, when: float) -> None:
        """Call at this instant of `Clock.monotonic`, and at no other."""
        self.cancel()
        self.at(when)

    def cancel(self) -> None:
        timer, self._timer, self.due = self._timer, None, None
        if timer is not None:
            timer.cancel()

    def _fire(self) -> None:
        self._timer = self.due = None
        self._call()


class Backoff(msgspec.Struct, frozen=True):
    """Waits that double from `first_s` up to `longest_s`, in seconds."""

    first_s: float
    longest_s: float

    def after(self, failures: int) -> float:
        """The wait after this many failures in a row, at least one."""
        return min(self.first_s * 2.0 ** min(failures - 1, 60), self.longest_s)
