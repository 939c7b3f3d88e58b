"""Whether requests of which no outcome comes were taken at all, where downloaders are programs of their own.

They may all be away for hours. What was handed out meanwhile is handed out again, and no URL fails of it; one that was
taken and ended who took it does. Outcomes say so, and else the broker, which is asked only while all is silent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from nephila.kernel.bus.contract import LogReader
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import REQUESTS
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.frontier import Frontier, Key

log = logging.getLogger(__name__)

LOOK_S = 20.0
DOWNLOADERS = "downloader"
"""Name of their group."""


class HasFrontier(Protocol):
    """A partition."""

    frontier: Frontier


class RequestLiveness:
    """Asks for the partitions of one scheduler what has been read of their requests."""

    def __init__(
        self, owners: Mapping[int, HasFrontier], config: SchedulerConfig, bus: LogReader, clock: Clock
    ) -> None:
        self._owners = owners
        self._config = config
        self._bus = bus
        self._clock = clock
        self._timer: Timer | None = None
        self._question: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on."""
        self._timer = self._clock.call_at(self._clock.monotonic() + LOOK_S, self._look)

    async def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._question is not None:
            self._question.cancel()
            await asyncio.wait([self._question])

    def _look(self) -> None:
        self.start()
        before = self._clock.monotonic() - self._config.start_by_s
        silent = [number for number, owner in self._owners.items() if _waits_since(owner.frontier, before)]
        if silent and (self._question is None or self._question.done()):
            self._question = asyncio.get_running_loop().create_task(self._ask(silent, before))

    async def _ask(self, silent: list[int], before: float) -> None:
        """What was handed out by `before` has been published since, whatever the broker's mood."""
        try:
            taken = await self._bus.fully_read(DOWNLOADERS, REQUESTS, silent)
        except TemporaryError as error:
            log.info("nobody can say whether requests are taken: %s", error)
            return
        for number in taken & self._owners.keys():
            frontier = self._owners[number].frontier
            frontier.consumed_until = max(frontier.consumed_until, before)


def was_consumed(frontier: Frontier, until: float) -> bool:
    """Whether somebody has taken the request of a lease that ends then."""
    return frontier.consumed_until >= _given_at(frontier, until)


def lease_given_at(frontier: Frontier, key: Key) -> float:
    """When the lease of a URL was given, in seconds since 1970 UTC."""
    return _given_at(frontier, frontier.leases[key]) + frontier.utc_offset


def _given_at(frontier: Frontier, until: float) -> float:
    """When a lease that ends then was given, or taken over."""
    return until - frontier.config.start_by_s - frontier.config.lease_s


def _waits_since(frontier: Frontier, before: float) -> bool:
    """Whether a request of then has no outcome, and nothing was heard after it."""
    until = next(iter(frontier.leases.values()), None)
    return until is not None and not was_consumed(frontier, until) and _given_at(frontier, until) <= before
