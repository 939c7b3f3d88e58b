"""Rates of counters over the last minute: samples taken when something changes, none while a program sleeps. Pure.

Invariant: at most one sample a second and a minute of them, for any number of calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

WINDOW_S = 60.0
STEP_S = 1.0


class Rates:
    """`note` takes samples; `of` returns a rate per second."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, Mapping[str, int]]] = deque()
        self._next = float("-inf")

    def note(self, now: float, counts: Callable[[], Mapping[str, int]]) -> None:
        """Takes a sample if one is due. O(1) otherwise."""
        if now < self._next:
            return
        self._next = now + STEP_S
        self._marks.append((now, counts()))
        # One sample older than the window stays: the counts when the window began.
        while len(self._marks) > 1 and self._marks[1][0] <= now - WINDOW_S:
            self._marks.popleft()

    def of(self, name: str, now: float, count: int) -> float:
        """Returns the rate per second of a counter at `count`; 0 before the first sample."""
        base: tuple[float, Mapping[str, int]] | None = None
        for mark in self._marks:
            if base is None or mark[0] <= now - WINDOW_S:
                base = mark
        if base is None:
            return 0.0
        span_s = min(max(now - base[0], STEP_S), WINDOW_S)
        return max(count - base[1].get(name, 0), 0) / span_s
