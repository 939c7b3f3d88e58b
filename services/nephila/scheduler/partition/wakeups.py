"""A heap of the times at which partitions take their next turn. Pure; times are monotonic seconds."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from nephila.scheduler.partition.owner import PartitionOwner


class WakeupHeap:
    """Invariant: an owner's `wake_at` is the time that counts; other entries of it in the heap are stale. A lost owner
    has none."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PartitionOwner]] = []
        self._order = itertools.count()

    @property
    def first(self) -> float | None:
        """The next wake-up; None when there is none. O(log n) amortised."""
        heap = self._heap
        while heap and heap[0][2].wake_at != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def set(self, owner: PartitionOwner, when: float | None) -> None:
        """Set the wake-up of an owner, or clear it; replaces the one before. O(log n)."""
        if when is not None and when != owner.wake_at:
            heapq.heappush(self._heap, (when, next(self._order), owner))
        owner.wake_at = when

    def pop_due(self, now: float) -> Iterator[PartitionOwner]:
        """Owners whose time has come, each once."""
        while (at := self.first) is not None and at <= now:
            owner = heapq.heappop(self._heap)[2]
            owner.wake_at = None
            yield owner
