"""Time is a dependency, a Clock, so that no test has to sleep.

Two scales: `now()` is UTC in seconds since 1970, for messages and stores; `monotonic()` never jumps, for waits.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None:
        """Cancel the call; no effect when it has already been made."""


class Clock(Protocol):
    """The source of time."""

    def now(self) -> float:
        """Seconds since 1970 UTC."""

    def monotonic(self) -> float:
        """Seconds on a scale that never jumps."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back once `monotonic()` has reached `when`, on the thread of the event loop."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""


class SystemClock:
    """The clocks of the machine and the timers of the running event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def _running(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        return loop

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Loop time may differ from `time.monotonic`, so the remaining wait is passed on."""
        loop = self._running()
        return loop.call_later(max(0.0, when - time.monotonic()), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._running().call_soon(callback)


class _ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that moves only by `advance` and `jump`; due calls are made in order while it moves."""

    def __init__(self, now: float = 1_800_000_000.0, monotonic: float = 1_000.0) -> None:
        self._now = now
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, _ManualTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return self._monotonic

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        timer = _ManualTimer(callback)
        heapq.heappush(self._heap, (when, next(self._order), timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        """The next `run_due` or `advance` makes the call."""
        self.call_at(self._monotonic, callback)

    def run_due(self, limit: int = 100_000) -> int:
        """Make all calls that are due now, including those they add; returns their number."""
        made = 0
        while self._heap and self._heap[0][0] <= self._monotonic:
            timer = heapq.heappop(self._heap)[2]
            if timer.callback is not None:
                timer.callback()
                made += 1
                if made >= limit:
                    raise RuntimeError(f"{limit} calls in one instant: a timer schedules itself again without a wait")
        return made

    def run_one(self) -> bool:
        """Make the next due call; False when none is due now."""
        while self._heap and self._heap[0][0] <= self._monotonic:
            timer = heapq.heappop(self._heap)[2]
            if timer.callback is not None:
                timer.callback()
                return True
        return False

    def advance(self, seconds: float) -> None:
        """Move both scales forward and make due calls at their own instants."""
        end = self._monotonic + seconds
        self.run_due()
        while self._heap and self._heap[0][0] <= end:
            self._move_to(self._heap[0][0])
            self.run_due()
        self._move_to(end)
        self.run_due()

    def jump(self, seconds: float) -> None:
        """Set the UTC clock forward or back without a change of `monotonic`, as NTP or an administrator does."""
        self._now += seconds

    @property
    def next_due(self) -> float | None:
        """When the earliest call is due on the monotonic scale; None when there is none."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _move_to(self, monotonic: float) -> None:
        if monotonic > self._monotonic:
            self._now += monotonic - self._monotonic
            self._monotonic = monotonic
