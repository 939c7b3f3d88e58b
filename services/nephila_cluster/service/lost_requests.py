"""Requests that a crashed downloader had in flight: reported before their leases expire.

Offsets of requests are committed before delivery, so no other member receives these requests. The member that takes a
lane over from a crashed one reads it backwards, for all its partitions at once, to the first lease that has ended. For
each request it publishes the outcome that the expired lease would have caused later. The bus calls `report` once no
earlier owner can dial. Invariant: a request that came after the takeover is never reported: here a newer request of the
same URL in the lane excludes it; in the scheduler, the start of its lease does. Requests that are not found are left to
their leases.
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
"""Records of a lane per read, from the newest back to those with a request whose lease has expired."""

Key = tuple[str, bytes]


class Log(Protocol):
    """The part of a bus with logs that is used here."""

    def publish(self, topic: Topic, partition: int, message: FetchOutcome) -> Receipt: ...

    def lanes(self, topic: Topic, partitions: Iterable[int]) -> dict[int, int]: ...

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
        lanes = self._bus.lanes(self._topic, starts)
        bounds = await self._bus.bounds(self._topic, starts)
        newer: dict[int, set[Key]] = {lane: set() for lane in lanes.values()}
        async for partition, records in self._bus.read(
            self._topic, {p: (at, bounds[p][1]) for p, at in starts.items()}
        ):
            newer[lanes[partition]].update((request.job, request.url_key) for _, request in records)
        lost: list[tuple[int, FetchRequest]] = []
        left = {p: min(at, bounds[p][1]) for p, at in starts.items()}
        while left := {p: at for p, at in left.items() if at > bounds[p][0]}:
            ranges = {p: (max(at - CHUNK, bounds[p][0]), at) for p, at in left.items()}
            read: dict[int, list[tuple[int, FetchRequest]]] = {lanes[p]: [] for p in left}
            async for partition, records in self._bus.read(self._topic, ranges):
                read[lanes[partition]] += [(partition, request) for _, request in records]
            ended = set()
            for lane, requests in read.items():
                more, live = self._waited_for(requests, newer[lane])
                lost += live
                if not more:
                    ended.add(lane)
            left = {p: start for p, (start, _) in ranges.items() if lanes[p] not in ended}
        return lost

    def _waited_for(
        self, requests: list[tuple[int, FetchRequest]], newer: set[Key]
    ) -> tuple[bool, list[tuple[int, FetchRequest]]]:
        """(whether older requests may have a valid lease, those with one whose URL has no newer request). The requests
        of one lane come nearly in the order of their leases."""
        now = self._clock.now()
        live: list[tuple[int, FetchRequest]] = []
        for partition, request in reversed(requests):
            key = (request.job, request.url_key)
            if request.lease_until >= now and key not in newer:
                live.append((partition, request))
            newer.add(key)
        return all(request.lease_until >= now for _, request in requests), live
