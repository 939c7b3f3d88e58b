"""Which requests of leases are at the broker: a search backwards in the lanes of their partitions.

An owner publishes the requests of its partition in the order of their leases, so only the newest can be missing. Other
partitions share the lane, so its last records may hold none of this one. The search of a partition ends at a request
with an older lease than its newest ones, or where the broker took records before the oldest of the leases was given.
Its cost follows the requests since then, not the length of the log. Rejected: a fixed number of records, which in a
lane of busy partitions holds nothing of a quiet one.
"""

from __future__ import annotations

from collections.abc import Iterable

from nephila.kernel.bus.contract import LogReader
from nephila.kernel.messages import FetchRequest
from nephila.kernel.topics import REQUESTS, REQUESTS_BROWSER, Topic, requests_topic

TAIL = 64
"""Records at the end of a lane that are read first; each further step reads four times as many."""
CLOCKS_S = 30.0
"""Most that the clocks of scheduler and broker, and an earlier `lease_s`, are thought to differ."""
SAME_S = 1e-3
"""Leases of one turn differ by less."""

RequestName = tuple[str, bytes, int, int, float]


def name_of(request: FetchRequest) -> RequestName:
    """The name of the lease of a request; the request that repeats it at a takeover has the same."""
    return request.job, request.url_key, request.fetch_no, request.attempt, request.lease_until


async def sent_requests(
    bus: LogReader, requests: Iterable[tuple[int, FetchRequest]], lease_s: float
) -> frozenset[RequestName]:
    """The names of those of these requests, each with its partition, that are published. `lease_s`: the length of a
    lease. Raises `TemporaryError`."""
    by_topic: dict[Topic, dict[int, list[FetchRequest]]] = {REQUESTS: {}, REQUESTS_BROWSER: {}}
    for partition, request in requests:
        by_topic[requests_topic(request)].setdefault(partition, []).append(request)
    names: set[RequestName] = set()
    for topic, by_partition in by_topic.items():
        if not by_partition:
            continue
        oldest = min(request.lease_until for leased in by_partition.values() for request in leased)
        newest = await _newest(bus, topic, by_partition, oldest - lease_s - CLOCKS_S)
        for partition, leased in by_partition.items():
            names |= _sent(leased, newest[partition])
    return frozenset(names)


def _sent(leased: list[FetchRequest], newest: list[FetchRequest]) -> set[RequestName]:
    """Names of the requests that are among the newest of their partition, or older than those."""
    if not newest:
        return set()
    published, until = set(map(name_of, newest)), newest[-1].lease_until - SAME_S
    return {name for request in leased if (name := name_of(request)) in published or request.lease_until < until}


async def _newest(
    bus: LogReader, topic: Topic, partitions: Iterable[int], since: float
) -> dict[int, list[FetchRequest]]:
    """The newest requests of each partition since an instant, up to an older lease; none where it has none."""
    left = await bus.bounds(topic, partitions, since)
    newest: dict[int, list[FetchRequest]] = {partition: [] for partition in left}
    records = TAIL
    while left:
        ranges = {partition: (max(first, end - records), end) for partition, (first, end) in left.items()}
        older: dict[int, list[FetchRequest]] = {partition: [] for partition in left}
        async for partition, messages in bus.read(topic, ranges):
            older[partition] += [request for _, request in messages]
        for partition, (start, _) in ranges.items():
            newest[partition] = older[partition] + newest[partition]
            first = left.pop(partition)[0]
            if start > first and not _has_older_lease(newest[partition]):
                left[partition] = first, start
        records *= 4
    return newest


def _has_older_lease(requests: list[FetchRequest]) -> bool:
    return bool(requests) and requests[0].lease_until < requests[-1].lease_until - SAME_S
