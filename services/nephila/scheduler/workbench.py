"""The workbench: a heap of hosts by the instant at which they may be fetched from (BUbiNG's term).

Nothing polls: one timer waits for the earliest host. Entries are invalidated lazily: an entry counts only while it is
the host's current one.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """What the workbench needs of a host: where it stands in the heap."""

    ready_at: float | None


H = TypeVar("H", bound=Waiting)


class Workbench(Generic[H]):
    """Hosts that have something queued and no full set of fetches in flight. Operations are O(log hosts)."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, H]] = []
        self._order = itertools.count()
        self._size = 0

    def __len__(self) -> int:
        """Hosts in the heap."""
        return self._size

    def schedule(self, host: H, ready_at: float) -> None:
        """Put the host in, or move it, to be taken at `ready_at` (monotonic seconds)."""
        if host.ready_at == ready_at:
            return
        self._size += host.ready_at is None
        host.ready_at = ready_at
        heapq.heappush(self._heap, (ready_at, next(self._order), host))

    def remove(self, host: H) -> None:
        """Take the host out; harmless when it is not in."""
        self._size -= host.ready_at is not None
        host.ready_at = None

    def next_ready(self) -> float | None:
        """When the first host is ready; None when no host waits."""
        heap = self._heap
        while heap and heap[0][2].ready_at != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take(self, now: float) -> H | None:
        """Take out the host that has been ready the longest; None when none is ready."""
        ready = self.next_ready()
        if ready is None or ready > now:
            return None
        host = heapq.heappop(self._heap)[2]
        host.ready_at = None
        self._size -= 1
        return host

    def waiting(self) -> list[H]:
        """Hosts in the heap, in no order. O(hosts)."""
        return [host for at, _, host in self._heap if host.ready_at == at]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        for i, entry in enumerate(self._heap[1:], 1):
            assert self._heap[(i - 1) // 2] <= entry, "heap order is broken"
