"""The workbench: hosts by the instant they are ready at, ties by id; a host is there once or not at all."""

from __future__ import annotations

import heapq
import math


class Bench:
    """Every change O(log n) amortised: moving leaves an entry behind that is skipped, and swept when they are many."""

    __slots__ = ("_heap", "at")

    def __init__(self) -> None:
        self.at: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def schedule(self, host: int, at: float) -> None:
        """Put in, or move."""
        if math.isnan(at):
            raise ValueError("a host cannot be ready at NaN")
        self.at[host] = at
        heapq.heappush(self._heap, (at, host))
        if len(self._heap) > 2 * len(self.at) + 16:
            self._heap = [(at, host) for host, at in self.at.items()]
            heapq.heapify(self._heap)

    def first(self) -> tuple[float, int] | None:
        """(instant, host) of the one that is ready first."""
        while self._heap:
            at, host = self._heap[0]
            if self.at.get(host) == at:
                return at, host
            heapq.heappop(self._heap)
        return None

    def take(self, now: float) -> int:
        """The first that is ready, taken out; -1 when none is."""
        first = self.first()
        if first is None or first[0] > now:
            return -1
        heapq.heappop(self._heap)
        del self.at[first[1]]
        return first[1]

    def ordered(self, limit: int) -> list[tuple[int, float]]:
        """The first `limit`, all when it is 0."""
        rows = sorted((at, host) for host, at in self.at.items())
        return [(host, at) for at, host in (rows[:limit] if limit else rows)]
