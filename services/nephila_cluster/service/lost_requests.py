"""Requests that a crashed downloader had in flight: reported before their leases expire.

Offsets of requests are committed before delivery, so no other member receives these requests. The member that takes a
partition over from a crashed one reads them from the log again. For each it publishes the outcome that the expired
lease would have caused later. The bus calls `report` once no earlier owner can dial. Invariant: a request that came
after the takeover is never reported: here a newer request of the
same URL in the log excludes it; in the scheduler, the start of its lease does.
Requests that cannot be read are left to their leases.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Protocol

from nephila.kernel.bus.contract import LogRecords, Receipt
from nephila.kernel.messages import FetchOutcome, FetchRequest
from nephila.kernel.outcomes import gone
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.kernel.topics import OUTCOMES, REQUESTS, Topic

log = logging.getLogger(__name__)

CHUNK = 256
"""Records per read, from the newest back to the first request whose lease has expired."""

Key = tuple[str, bytes]


class Log(Protocol):
    """The part of a bus with logs that is used here."""

    def publish(self, topic: Topic, partition: int, message: FetchOutcome) -> Receipt: ...

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]: ...

    def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]: ...


class LostRequests:
    """Finds and reports the lost requests of partitions."""

    def __init__(self, bus: Log, clock: Clock, topic: Topic = REQUESTS) -> None:
        """The downloader of `topic` has lost the requests."""
        self._topic = topic
        self._bus = bus
        self._clock = clock
        self.reported = 0
        """Requests reported for members that crashed."""

    async def report(self, starts: Mapping[int, int], gone_at: float) -> None:
        """Report requests before these offsets whose leases are still valid.

        `gone_at`: an instant, in seconds since 1970 UTC, at which no earlier owner could dial and the present one had
        not started.
        """
        try:
            lost = await self._read(starts)
        except (TemporaryError, UserError) as error:
            log.warning("requests of a crashed downloader are left to their leases: %s", error)
            return
        count = 0
        for partition, request in lost:
            self._bus.publish(OUTCOMES, partition, gone(request, gone_at))
            count += 1
        self.reported += count
        if count:
            log.info("reported %d requests that a crashed downloader may have had in flight", count)

    async def _read(self, starts: Mapping[int, int]) -> list[tuple[int, FetchRequest]]:
        bounds = await self._bus.bounds(self._topic, starts)
        newer: dict[int, set[Key]] = {p: set() for p in starts}
        async for partition, records in self._bus.read(
            self._topic, {p: (at, bounds[p][1]) for p, at in starts.items()}
        ):
            newer[partition].update((request.job, request.url_key) for _, request in records)
        lost: list[tuple[int, FetchRequest]] = []
        left = {p: min(at, bounds[p][1]) for p, at in starts.items()}
        while left := {p: at for p, at in left.items() if at > bounds[p][0]}:
            ranges = {p: (max(at - CHUNK, bounds[p][0]), at) for p, at in left.items()}
            read: dict[int, list[FetchRequest]] = {p: [] for p in left}
            async for partition, records in self._bus.read(self._topic, ranges):
                read[partition] += [request for _, request in records]
            for partition, requests in read.items():
                more, live = self._waited_for(requests, newer[partition])
                lost += [(partition, request) for request in live]
                left[partition] = ranges[partition][0] if more else 0
        return lost

    def _waited_for(self, requests: list[FetchRequest], newer: set[Key]) -> tuple[bool, list[FetchRequest]]:
        """(whether older requests may have a valid lease, those with one whose URL has no newer request)."""
        now = self._clock.now()
        live: list[FetchRequest] = []
        for request in reversed(requests):
            if request.lease_until < now:
                return False, live
            key = (request.job, request.url_key)
            if key not in newer:
                newer.add(key)
                live.append(request)
        return True, live
