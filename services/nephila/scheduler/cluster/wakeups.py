"""When partitions are to take a turn by time alone, the next first. Pure; instants are monotonic seconds."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from nephila.scheduler.cluster.partition import Shard


class WakeupHeap:
    """Invariant: a shard's `wake_at` is the instant that counts; what else the heap has of it is passed over."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Shard]] = []
        self._order = itertools.count()

    @property
    def first(self) -> float | None:
        """The next instant, or one before it; None when nobody waits."""
        return self._heap[0][0] if self._heap else None

    def set(self, shard: Shard, when: float | None) -> None:
        """Wake it then, or not at all; what was set before does not count any more. O(log n)."""
        if when is not None and when != shard.wake_at:
            heapq.heappush(self._heap, (when, next(self._order), shard))
        shard.wake_at = when

    def come(self, now: float) -> Iterator[Shard]:
        """Those whose instant has come; each is told once."""
        while self._heap and self._heap[0][0] <= now:
            at, _, shard = heapq.heappop(self._heap)
            if shard.wake_at == at and not shard.dead:
                shard.wake_at = None
                yield shard
