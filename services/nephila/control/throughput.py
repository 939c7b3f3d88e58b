"""How fast counters rise: marks taken when there is something to count, none while a program sleeps. Pure.

Invariant: at most one mark a second and a minute of them, whatever the number of calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

WINDOW_S = 60.0
STEP_S = 1.0


class Rates:
    """`note` is called as often as one likes; `of` answers per second over the last minute."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, Mapping[str, int]]] = deque()
        self._next = float("-inf")

    def note(self, now: float, counts: Callable[[], Mapping[str, int]]) -> None:
        """Take a mark if one is due. O(1) else."""
        if now < self._next:
            return
        self._next = now + STEP_S
        self._marks.append((now, counts()))
        # One older than the window stays: it says what was there when the window began.
        while len(self._marks) > 1 and self._marks[1][0] <= now - WINDOW_S:
            self._marks.popleft()

    def of(self, name: str, now: float, count: int) -> float:
        """Per second, of a counter that stands at `count` now; 0 before the first mark."""
        base: tuple[float, Mapping[str, int]] | None = None
        for mark in self._marks:
            if base is None or mark[0] <= now - WINDOW_S:
                base = mark
        if base is None:
            return 0.0
        span_s = min(max(now - base[0], STEP_S), WINDOW_S)
        return max(count - base[1].get(name, 0), 0) / span_s
