"""Which requests of leases are at the broker: a search backwards in the lanes of their partitions.

An owner publishes the requests of its partition in the order of their leases, so only the newest can be missing. Other
partitions share the lane, so its last records may hold none of this one. The search of a partition ends where all its
requests are found, or at an older lease than that of its newest request, or at the begin of the lane, which the broker
keeps for an hour. So only a partition that rested and lacks a request costs its lane.

Leases tell the order of owners only where their lengths are equal, and `lease_s` may be lowered: a lease that ends long
after the newest request may be an earlier one, and is searched in the whole lane. A missing request of the shorter
lease may count as sent beside longer ones: it is left to its lease. Rejected: a fixed number of records, which in a
lane of busy partitions holds nothing of a quiet one; the instant at which a lease was given, which needs its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nephila.kernel.bus.contract import LogReader
from nephila.kernel.messages import FetchRequest
from nephila.kernel.topics import REQUESTS, REQUESTS_BROWSER, Topic, requests_topic

TAIL = 64
"""Records at the end of a lane that are read first; each further step reads four times as many."""
NEAR_S = 5.0
"""A lease that ends this much later than the newest one was given after a rest, or by an owner with longer leases."""
SAME_S = 1e-3
"""Leases of one turn differ by less."""

RequestName = tuple[str, bytes, int, int, float]


def name_of(request: FetchRequest) -> RequestName:
    """The name of the lease of a request; the request that repeats it at a takeover has the same."""
    return request.job, request.url_key, request.fetch_no, request.attempt, request.lease_until


async def sent_requests(bus: LogReader, requests: Iterable[tuple[int, FetchRequest]]) -> frozenset[RequestName]:
    """The names of those of these requests, each with its partition, that are published. Raises `TemporaryError`."""
    searches: dict[Topic, dict[int, _Search]] = {REQUESTS: {}, REQUESTS_BROWSER: {}}
    for partition, request in requests:
        searches[requests_topic(request)].setdefault(partition, _Search()).add(request)
    for topic, by_partition in searches.items():
        if by_partition:
            await _search(bus, topic, by_partition)
    return frozenset(
        name for by_partition in searches.values() for search in by_partition.values() for name in search.sent
    )


class _Search:
    """The search for the requests of one partition. Pure."""

    def __init__(self) -> None:
        self.sent: set[RequestName] = set()
        self._missing: dict[RequestName, float] = {}
        """`lease_until` of each request that is not found yet."""
        self._newest: float | None = None
        """`lease_until` of the last request in the lane."""
        self._oldest = float("inf")

    def add(self, request: FetchRequest) -> None:
        self._missing[name_of(request)] = request.lease_until

    def take(self, requests: list[FetchRequest]) -> None:
        """The next requests of the partition, older than those before, in the order of the lane."""
        for request in requests:
            if self._missing.pop(name := name_of(request), None) is not None:
                self.sent.add(name)
            self._oldest = min(self._oldest, request.lease_until)
        if requests and self._newest is None:
            self._newest = requests[-1].lease_until

    @property
    def is_done(self) -> bool:
        """Whether older records of the lane would change nothing."""
        if not self._missing or self._newest is None:
            return not self._missing
        return self._oldest < self._newest - SAME_S and max(self._missing.values()) <= self._newest + NEAR_S

    def finish(self) -> None:
        """Requests with an older lease than the newest one were published before it."""
        if self._newest is not None:
            self.sent.update(name for name, until in self._missing.items() if until < self._newest - SAME_S)


async def _search(bus: LogReader, topic: Topic, searches: Mapping[int, _Search]) -> None:
    left = await bus.bounds(topic, searches)
    records = TAIL
    while left:
        ranges = {partition: (max(first, end - records), end) for partition, (first, end) in left.items()}
        requests: dict[int, list[FetchRequest]] = {partition: [] for partition in left}
        async for partition, messages in bus.read(topic, ranges):
            requests[partition] += [request for _, request in messages]
        for partition, (start, _) in ranges.items():
            searches[partition].take(requests[partition])
            first = left.pop(partition)[0]
            if start > first and not searches[partition].is_done:
                left[partition] = first, start
        records *= 4
    for search in searches.values():
        search.finish()
