"""When partitions are to take a turn by time alone, the next first. Pure; instants are monotonic seconds."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from nephila.scheduler.cluster.partition import PartitionOwner


class WakeupHeap:
    """Invariant: a owner's `wake_at` is the instant that counts; what else the heap has of it is passed over."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PartitionOwner]] = []
        self._order = itertools.count()

    @property
    def first(self) -> float | None:
        """The next instant, or one before it; None when nobody waits."""
        return self._heap[0][0] if self._heap else None

    def set(self, owner: PartitionOwner, when: float | None) -> None:
        """Wake it then, or not at all; what was set before does not count any more. O(log n)."""
        if when is not None and when != owner.wake_at:
            heapq.heappush(self._heap, (when, next(self._order), owner))
        owner.wake_at = when

    def pop_due(self, now: float) -> Iterator[PartitionOwner]:
        """Those whose instant has come; each is told once."""
        while self._heap and self._heap[0][0] <= now:
            at, _, owner = heapq.heappop(self._heap)
            if owner.wake_at == at and not owner.dead:
                owner.wake_at = None
                yield owner
