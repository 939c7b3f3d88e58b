"""Time comes in as a Clock, so that nothing has to sleep in a test.

Two scales: `now()` is UTC in seconds since 1970 and goes into messages and stores; `monotonic()` never jumps and is
what waits are measured on.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Forget the call; harmless when it has already been made."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds since 1970 UTC."""

    def monotonic(self) -> float:
        """Seconds on a scale that never jumps."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back once `monotonic()` has reached `when`, on the loop's thread."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the loop."""


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

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
        """See `Clock.call_at`; loop time may differ from `time.monotonic`, so the wait is carried over."""
        loop = self._running()
        return loop.call_later(max(0.0, when - time.monotonic()), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See `Clock.call_soon`."""
        self._running().call_soon(callback)


class _ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that moves only when told; due calls are made in order while it moves."""

    def __init__(self, now: float = 1_800_000_000.0, monotonic: float = 1_000.0) -> None:
        self._now = now
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, _ManualTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Seconds since 1970 UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return self._monotonic

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """See `Clock.call_at`."""
        timer = _ManualTimer(callback)
        heapq.heappush(self._heap, (when, next(self._order), timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See `Clock.call_soon`; made by the next `run_due` or `advance`."""
        self.call_at(self._monotonic, callback)

    def run_due(self, limit: int = 100_000) -> int:
        """Make every call that is due now, and those that they add; returns how many."""
        made = 0
        while self._heap and self._heap[0][0] <= self._monotonic:
            timer = heapq.heappop(self._heap)[2]
            if timer.callback is not None:
                timer.callback()
                made += 1
                if made >= limit:
                    raise RuntimeError(f"{limit} calls in one instant: a timer re-arms itself without waiting")
        return made

    def run_one(self) -> bool:
        """Make the one call that is due next; False when none is due now."""
        while self._heap and self._heap[0][0] <= self._monotonic:
            timer = heapq.heappop(self._heap)[2]
            if timer.callback is not None:
                timer.callback()
                return True
        return False

    def advance(self, seconds: float) -> None:
        """Move both scales on, making due calls at their own instants."""
        end = self._monotonic + seconds
        self.run_due()
        while self._heap and self._heap[0][0] <= end:
            self._move_to(self._heap[0][0])
            self.run_due()
        self._move_to(end)
        self.run_due()

    def jump(self, seconds: float) -> None:
        """Set the UTC clock forward or back without time passing, as NTP or an administrator would."""
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
