"""A heap of the times at which partitions take their next turn. Pure; times are monotonic seconds."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from nephila.scheduler.cluster.partition import PartitionOwner


class WakeupHeap:
    """Invariant: an owner's `wake_at` is the time that counts; other entries of it in the heap are stale."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PartitionOwner]] = []
        self._order = itertools.count()

    @property
    def first(self) -> float | None:
        """A lower bound of the next wake-up; None when there is none."""
        return self._heap[0][0] if self._heap else None

    def set(self, owner: PartitionOwner, when: float | None) -> None:
        """Set the wake-up of an owner, or clear it; replaces the one before. O(log n)."""
        if when is not None and when != owner.wake_at:
            heapq.heappush(self._heap, (when, next(self._order), owner))
        owner.wake_at = when

    def pop_due(self, now: float) -> Iterator[PartitionOwner]:
        """Owners whose time has come, each once."""
        while self._heap and self._heap[0][0] <= now:
            at, _, owner = heapq.heappop(self._heap)
            if owner.wake_at == at and not owner.lost:
                owner.wake_at = None
                yield owner
