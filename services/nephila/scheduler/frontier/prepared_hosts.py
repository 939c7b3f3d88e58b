"""Prepared hosts: their robots.txt is requested or fetched, and the page that it is for is not requested yet. Pure.

A prepared host comes before all others as soon as its pace allows, so robots.txt files and pages alternate however many
hosts there are. Each prepared host counts as one page of the job that it is prepared for. Invariant: a prepared host
has a fetch in flight or a queued URL. Not durable: after a restart at most these robots.txt files are early.
"""

from __future__ import annotations

import heapq
from collections import Counter

VALID_S = 3600.0
"""A robots.txt counts for the page that it is for, even where it has expired by then; at most this long."""
_SPARE = 64


class _Prepared:
    """`fetched_at` is infinite before the robots.txt has come; `ready_at` is None while the host waits for no time."""

    __slots__ = ("fetched_at", "job", "origin", "ready_at")

    def __init__(self, job: int, origin: str) -> None:
        self.job = job
        self.origin = origin
        self.fetched_at = float("inf")
        self.ready_at: float | None = None


class PreparedHosts:
    """Operations are O(log prepared hosts) amortised; memory is O(prepared hosts)."""

    def __init__(self) -> None:
        self.by_number: dict[int, _Prepared] = {}
        """The prepared hosts; attributes, since a look-up of each dispatched page must not cost a call."""
        self._by_job: Counter[int] = Counter()
        self.scheduled: list[tuple[float, int]] = []
        """A heap of (when, host); an entry that differs from the host's `ready_at` is stale."""

    def __len__(self) -> int:
        return len(self.by_number)

    def count(self, job: int) -> int:
        """Hosts that are prepared for pages of a job."""
        return self._by_job[job]

    def job(self, host: int) -> int:
        """Number of the job that a host is prepared for; -1 for a host that is not prepared."""
        prepared = self.by_number.get(host)
        return prepared.job if prepared is not None else -1

    def is_valid(self, host: int, origin: str, now: float) -> bool:
        """Whether the robots.txt of an origin was fetched for the next page of the host."""
        prepared = self.by_number.get(host)
        return prepared is not None and prepared.origin == origin and 0.0 <= now - prepared.fetched_at <= VALID_S

    def requested(self, host: int, job: int, origin: str) -> None:
        """The robots.txt of an origin is requested for a page of a job."""
        self.discard(host)
        self.by_number[host] = _Prepared(job, origin)
        self._by_job[job] += 1

    def fetched(self, host: int, job: int, origin: str, now: float) -> None:
        """The robots.txt of an origin has come; `job`: the page is for this one where the request is unknown."""
        prepared = self.by_number.get(host)
        if prepared is None or prepared.origin != origin:
            self.requested(host, job, origin)
        self.by_number[host].fetched_at = now

    def discard(self, host: int) -> bool:
        """The page is requested, or none comes; True when the host was prepared."""
        prepared = self.by_number.pop(host, None)
        if prepared is None:
            return False
        self._by_job[prepared.job] -= 1
        if not self._by_job[prepared.job]:
            del self._by_job[prepared.job]
        return True

    def drop_job(self, job: int) -> None:
        """A job was deleted. O(prepared hosts)."""
        for host in [host for host, prepared in self.by_number.items() if prepared.job == job]:
            self.discard(host)

    def schedule(self, host: int, at: float) -> None:
        """A prepared host is ready then; no effect for a host that is not prepared."""
        prepared = self.by_number.get(host)
        if prepared is None:
            return
        prepared.ready_at = at
        heapq.heappush(self.scheduled, (at, host))
        if len(self.scheduled) > 2 * len(self.by_number) + _SPARE:
            waiting = ((prepared.ready_at, host) for host, prepared in self.by_number.items())
            self.scheduled = [(at, host) for at, host in waiting if at is not None]
            heapq.heapify(self.scheduled)

    def next_ready(self) -> float | None:
        """When the first prepared host that waits for time is ready; None without any."""
        heap = self.scheduled
        while heap:
            at, host = heap[0]
            prepared = self.by_number.get(host)
            if prepared is not None and prepared.ready_at == at:
                return at
            heapq.heappop(heap)
        return None

    def ready_at(self, host: int) -> float | None:
        """The instant of the last `schedule`; None where `take` has returned the host since."""
        return self.by_number[host].ready_at

    def take(self, now: float) -> int:
        """A host that is ready; -1 for none. It waits for no time any more, and stays prepared."""
        at = self.next_ready()
        if at is None or at > now:
            return -1
        host = heapq.heappop(self.scheduled)[1]
        self.by_number[host].ready_at = None
        return host

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        counts = Counter(prepared.job for prepared in self.by_number.values())
        assert counts == self._by_job, f"prepared hosts by job: {counts}, counted {self._by_job}"
        entries = set(self.scheduled)
        for host, prepared in self.by_number.items():
            assert prepared.ready_at is None or (prepared.ready_at, host) in entries, f"host {host} is never taken"
