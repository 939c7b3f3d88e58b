"""Ready hosts by job: prepared hosts, then the host with the best queue head, then the one that has been ready longest.

A host is listed once for each job that has URLs there. To take it for one job takes it for all: entries of other jobs
become stale, and their stamp shows it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

_HOST_BITS = 32
_STAMP_BITS = 40
_HOST = (1 << _HOST_BITS) - 1
_STAMP = (1 << _STAMP_BITS) - 1
_SPARE = 64
_PREPARED = -1
"""Order of a prepared host, before every order of a queue."""


class ReadyHosts:
    """Operations are O(log hosts) amortised; memory is O(hosts x jobs). Hosts and jobs are small integers."""

    def __init__(self) -> None:
        self._heaps: dict[int, list[int]] = {}
        """Job → heap of (order, stamp, host), packed into one integer: a third of the memory of a tuple."""
        self.by_host: dict[int, tuple[Any, ...]] = {}
        """Host → stamp, instant, and the jobs it is listed for; in the order of the stamps."""
        self._stamp = 0

    def __len__(self) -> int:
        return len(self.by_host)

    def __contains__(self, host: int) -> bool:
        return host in self.by_host

    def add(self, host: int, heads: Iterable[tuple[int, int]], now: float = 0.0, prepared: bool = False) -> None:
        """A host is ready from `now` on; `heads`: each job that has URLs there, and the order of its first; `prepared`:
        it comes before all hosts that are not."""
        self._stamp += 1
        jobs = []
        for job, order in heads:
            self._push(job, _PREPARED if prepared else order, self._stamp, host)
            jobs.append(job)
        self.by_host[host] = (self._stamp, now, *jobs)

    def offer(self, host: int, job: int, order: int) -> None:
        """A job has its first URL on a host that is ready already. No effect where the host is listed for that job."""
        stamp, since, *jobs = self.by_host[host]
        if job not in jobs:
            self._push(job, order, stamp, host)
            self.by_host[host] = (stamp, since, *jobs, job)

    def ready_since(self) -> float | None:
        """When the host that has been ready longest became so; None without any."""
        return next((ready[1] for ready in self.by_host.values()), None)

    def _push(self, job: int, order: int, stamp: int, host: int) -> None:
        entry = order << (_STAMP_BITS + _HOST_BITS) | stamp << _HOST_BITS | host
        heap = self._heaps.setdefault(job, [])
        if len(heap) > 2 * len(self.by_host) + _SPARE:
            # A head that its job does not take would keep the stale entries behind it for ever.
            heap[:] = filter(self._counts, heap)
            heapq.heapify(heap)
        heapq.heappush(heap, entry)

    def _counts(self, entry: int) -> bool:
        ready = self.by_host.get(entry & _HOST)
        return ready is not None and ready[0] == entry >> _HOST_BITS & _STAMP

    def jobs(self) -> list[int]:
        """Jobs that have a ready host."""
        return [job for job in list(self._heaps) if self._first(job) is not None]

    def count(self, job: int) -> int:
        """Ready hosts of a job. O(entries of the job)."""
        return sum(map(self._counts, self._heaps.get(job, ())))

    def _first(self, job: int) -> int | None:
        """The first host of a job; removes stale entries before it."""
        heap, by_host = self._heaps[job], self.by_host
        while heap:
            entry = heap[0]
            ready = by_host.get(entry & _HOST)
            if ready is not None and ready[0] == entry >> _HOST_BITS & _STAMP:
                return entry & _HOST
            heapq.heappop(heap)
        del self._heaps[job]
        return None

    def first_is_prepared(self, job: int) -> bool:
        """Whether the first host of a job is a prepared one."""
        return job in self._heaps and self._first(job) is not None and self._heaps[job][0] < 0

    def take(self, job: int) -> int:
        """Remove and return the first host of a job; -1 when none is ready."""
        heap, by_host = self._heaps.get(job), self.by_host
        if heap is None:
            return -1
        while heap:
            entry = heapq.heappop(heap)
            host = entry & _HOST
            ready = by_host.get(host)
            if ready is not None and ready[0] == entry >> _HOST_BITS & _STAMP:
                del by_host[host]
                return host
        del self._heaps[job]
        return -1

    def discard(self, host: int) -> bool:
        """Remove a host; True when it was ready."""
        return self.by_host.pop(host, None) is not None

    def hosts(self) -> list[int]:
        """Hosts that are ready, in no order."""
        return list(self.by_host)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(everything)."""
        listed: dict[int, set[int]] = {}
        for job, heap in self._heaps.items():
            for i, entry in enumerate(heap[1:], 1):
                assert heap[(i - 1) // 2] <= entry, "heap order is broken"
            for entry in filter(self._counts, heap):
                host = entry & ((1 << _HOST_BITS) - 1)
                assert job not in listed.setdefault(host, set()), f"host {host} is listed twice for job {job}"
                listed[host].add(job)
        for host, ready in self.by_host.items():
            assert listed.get(host, set()) == set(ready[2:]), f"host {host} is not listed where it should be"
