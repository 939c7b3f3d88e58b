"""When a lease expires, was the request ever consumed? If all downloaders were down, the attempt does not count.

Downloaders may be down for hours. Requests published meanwhile are published again, and no URL fails because of that. A
URL whose request was consumed and then got no outcome fails as usual. Outcomes prove consumption. While there are none,
the committed offsets of the downloaders' group at the broker do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from nephila.kernel.bus.contract import LogReader
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import REQUESTS, REQUESTS_BROWSER, Topic
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.frontier import Frontier

from nephila_cluster.scheduler.read_progress import read_partitions

log = logging.getLogger(__name__)

LOOK_S = 20.0
READERS = (("downloader", REQUESTS), ("browser", REQUESTS_BROWSER))
"""Consumer groups of the downloaders without and with a browser, and their topics."""


class HasFrontier(Protocol):
    """A partition with its frontier."""

    frontier: Frontier


class RequestLiveness:
    """Checks for the partitions of one scheduler whether their requests are consumed."""

    def __init__(
        self, owners: Mapping[int, HasFrontier], config: SchedulerConfig, bus: LogReader, clock: Clock
    ) -> None:
        self._owners = owners
        self._config = config
        self._bus = bus
        self._clock = clock
        self._timer = OneTimer(clock, self._look)
        self._question: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Check every LOOK_S from now on."""
        self._timer.start(LOOK_S)

    async def close(self) -> None:
        """Check no more."""
        self._timer.cancel()
        if self._question is not None:
            self._question.cancel()
            await asyncio.wait([self._question])

    def _look(self) -> None:
        self.start()
        before = self._clock.monotonic() - self._config.start_by_s
        silent = {
            number: owner for number, owner in self._owners.items() if owner.frontier.in_flight.waits_since(before)
        }
        if silent and (self._question is None or self._question.done()):
            self._question = asyncio.get_running_loop().create_task(self._ask(silent, before))

    async def _ask(self, silent: Mapping[int, HasFrontier], before: float) -> None:
        """Requests leased by `before` have been published by now."""
        topics = enumerate(READERS)
        await asyncio.gather(*(self._ask_of(silent, before, *reader, bool(number)) for number, reader in topics))

    async def _ask_of(
        self, silent: Mapping[int, HasFrontier], before: float, group: str, topic: Topic, rendered: bool
    ) -> None:
        """Note each partition as soon as its requests are read: others may be in a lane without reader."""
        # Before a split, requests were published on the partition that was split.
        left = {number: self._bus.layout.lineage(number) for number in silent}
        ancestors = {ancestor for line in left.values() for ancestor in line}
        try:
            async for read in read_partitions(self._bus, self._clock, group, topic, ancestors):
                for number in [number for number, line in left.items() if read.issuperset(line)]:
                    del left[number]
                    # A newer owner of the partition may have published requests again since the call.
                    if self._owners.get(number) is silent[number]:
                        silent[number].frontier.in_flight.note_consumed(before, rendered)
        except TemporaryError as error:
            log.info("the offsets of the group %s cannot be read: %s", group, error)
