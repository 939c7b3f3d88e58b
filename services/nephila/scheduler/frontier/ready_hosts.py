"""Hosts that may be fetched from now, by job: the best head of a queue first, then who has been ready longest.

A host stands here once for each job that has URLs on it. Taking it for one job takes it for all: what the others have
of it is recognised as stale by its stamp when they come upon it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

_HOST_BITS = 32
_STAMP_BITS = 40
_SPARE = 64


class ReadyHosts:
    """Operations are O(log hosts) amortised, memory that of hosts x jobs. Hosts and jobs are small integers."""

    def __init__(self) -> None:
        self._heaps: dict[int, list[int]] = {}
        """Job → heap of order, stamp, host in one integer: a third of the memory of a tuple."""
        self._hosts: dict[int, tuple[Any, ...]] = {}
        """Host → stamp, instant, then the jobs it is listed for; in the order of the stamps."""
        self._stamp = 0

    def __len__(self) -> int:
        """Hosts that are ready."""
        return len(self._hosts)

    def __contains__(self, host: int) -> bool:
        return host in self._hosts

    def add(self, host: int, heads: Iterable[tuple[int, int]], now: float = 0.0) -> None:
        """A host is ready from `now` on; `heads`: each job that has URLs there, and the order of its first."""
        self._stamp += 1
        jobs = []
        for job, order in heads:
            self._push(job, order, self._stamp, host)
            jobs.append(job)
        self._hosts[host] = (self._stamp, now, *jobs)

    def offer(self, host: int, job: int, order: int) -> None:
        """A job has its first URL on a host that is ready already; no effect where the host is listed for that job."""
        stamp, since, *jobs = self._hosts[host]
        if job not in jobs:
            self._push(job, order, stamp, host)
            self._hosts[host] = (stamp, since, *jobs, job)

    def ready_since(self) -> float | None:
        """When the host that has been ready longest became so; None without any."""
        return next((known[1] for known in self._hosts.values()), None)

    def _push(self, job: int, order: int, stamp: int, host: int) -> None:
        entry = order << (_STAMP_BITS + _HOST_BITS) | stamp << _HOST_BITS | host
        heap = self._heaps.setdefault(job, [])
        if len(heap) > 2 * len(self._hosts) + _SPARE:
            # Behind a head that its job is slow to take others come and go.
            heap[:] = filter(self._counts, heap)
            heapq.heapify(heap)
        heapq.heappush(heap, entry)

    def _counts(self, entry: int) -> bool:
        known = self._hosts.get(entry & ((1 << _HOST_BITS) - 1))
        return known is not None and known[0] == entry >> _HOST_BITS & ((1 << _STAMP_BITS) - 1)

    def jobs(self) -> list[int]:
        """Jobs with a host that is ready."""
        return [job for job in list(self._heaps) if self._first(job) is not None]

    def count(self, job: int) -> int:
        """Hosts that are ready for a job. O(hosts that were ready for it)."""
        return sum(map(self._counts, self._heaps.get(job, ())))

    def _first(self, job: int) -> int | None:
        """The first host of a job; what is stale is dropped on the way."""
        heap = self._heaps[job]
        while heap:
            if self._counts(heap[0]):
                return heap[0] & ((1 << _HOST_BITS) - 1)
            heapq.heappop(heap)
        del self._heaps[job]
        return None

    def take(self, job: int) -> int:
        """Take out the first host of a job; -1 when none is ready."""
        host = self._first(job) if job in self._heaps else None
        if host is None:
            return -1
        heapq.heappop(self._heaps[job])
        del self._hosts[host]
        return host

    def discard(self, host: int) -> bool:
        """Take a host out; True when it was here."""
        return self._hosts.pop(host, None) is not None

    def hosts(self) -> list[int]:
        """Hosts that are ready, in no order."""
        return list(self._hosts)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(everything)."""
        found: dict[int, set[int]] = {}
        for job, heap in self._heaps.items():
            for i, entry in enumerate(heap[1:], 1):
                assert heap[(i - 1) // 2] <= entry, "heap order is broken"
            for entry in filter(self._counts, heap):
                host = entry & ((1 << _HOST_BITS) - 1)
                assert job not in found.setdefault(host, set()), f"host {host} stands twice for job {job}"
                found[host].add(job)
        for host, known in self._hosts.items():
            assert found.get(host, set()) == set(known[2:]), f"host {host} is not where it should be"
