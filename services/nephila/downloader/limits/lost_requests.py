"""Requests that a downloader had in hand when it ended without a word: reported before their leases end.

Positions of requests are committed before delivery, so nobody else is given these. Whoever takes a partition over
from a member that did not let go reads them in the log again and publishes for each the outcome that the lease would
have brought later. The bus calls once no earlier owner can dial any more. Invariant: a request that came after the
take-over is never reported, by its URL in the log and, at the scheduler, by the instant at which its lease was given.
What cannot be read is left to the leases.
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
"""Records read at once, from the newest back to the first request whose lease has ended."""

Key = tuple[str, bytes]


class Log(Protocol):
    """What is needed of a bus with logs."""

    def publish(self, topic: Topic, partition: int, message: FetchOutcome) -> Receipt:
        """See `Bus.publish`."""

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """See `LogReader.bounds`."""

    def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]:
        """See `LogReader.read`."""


class LostRequests:
    """See the module."""

    def __init__(self, bus: Log, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self.reported = 0
        """Requests of members that ended without a word."""

    async def report(self, starts: Mapping[int, int], gone_at: float) -> None:
        """Report what was taken before these offsets and may still be waited for. `gone_at`: an instant, in seconds
        since 1970 UTC, at which no earlier owner could dial any more and the present one had not begun."""
        try:
            found = await self._read(starts)
        except (TemporaryError, UserError) as error:
            log.warning("requests of a member that ended are left to their leases: %s", error)
            return
        count = 0
        for partition, request in found:
            self._bus.publish(OUTCOMES, partition, gone(request, gone_at))
            count += 1
        self.reported += count
        if count:
            log.info("%d requests that a member which ended may have had in hand are reported", count)

    async def _read(self, starts: Mapping[int, int]) -> list[tuple[int, FetchRequest]]:
        bounds = await self._bus.bounds(REQUESTS, starts)
        known: dict[int, set[Key]] = {p: set() for p in starts}
        async for partition, records in self._bus.read(REQUESTS, {p: (at, bounds[p][1]) for p, at in starts.items()}):
            known[partition].update((request.job, request.url_key) for _, request in records)
        found: list[tuple[int, FetchRequest]] = []
        left = {p: min(at, bounds[p][1]) for p, at in starts.items()}
        while left := {p: at for p, at in left.items() if at > bounds[p][0]}:
            ranges = {p: (max(at - CHUNK, bounds[p][0]), at) for p, at in left.items()}
            read: dict[int, list[FetchRequest]] = {p: [] for p in left}
            async for partition, records in self._bus.read(REQUESTS, ranges):
                read[partition] += [request for _, request in records]
            for partition, requests in read.items():
                more, live = self._waited_for(requests, known[partition])
                found += [(partition, request) for request in live]
                left[partition] = ranges[partition][0] if more else 0
        return found

    def _waited_for(self, requests: list[FetchRequest], known: set[Key]) -> tuple[bool, list[FetchRequest]]:
        """(whether older ones may be waited for too, those whose leases go on and of whose URL none is newer)."""
        now = self._clock.now()
        live: list[FetchRequest] = []
        for request in reversed(requests):
            if request.lease_until < now:
                return False, live
            key = (request.job, request.url_key)
            if key not in known:
                known.add(key)
                live.append(request)
        return True, live
