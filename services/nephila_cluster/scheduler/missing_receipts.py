"""When the receipt of a URL does not come: is a service slow, or was a message lost?

A broker that lost data, or a start with `accept_loss`, loses pages, records and receipts. Their URLs would stay in
flight for ever. The offsets that the groups have committed at the broker prove a loss: the parser has read every page
that existed, then storage every record, then the scheduler every receipt, and the receipt is still missing. A service
that is slow or down proves nothing, and its URLs wait.
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
from nephila.kernel.topics import PAGES, RECEIPTS, RECORDS
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.frontier import Frontier

from nephila_cluster.scheduler.read_progress import read_by_now

log = logging.getLogger(__name__)

LOOK_S = 20.0
"""Time between two looks for URLs without receipt."""
ROUTE = (("parser", PAGES), ("storage", RECORDS), ("scheduler", RECEIPTS), ("scheduler", RECEIPTS))
"""Consumer groups between an outcome and its receipt, in order, with their topics. Receipts twice: those on a partition
that was split are forwarded."""


class Awaiting(Protocol):
    """A partition whose receipts are awaited."""

    frontier: Frontier

    def receipts_lost(self, before: float) -> None:
        """The messages of all URLs without receipt whose outcomes came by `before` are lost."""


class MissingReceipts:
    """Checks the partitions of one scheduler."""

    def __init__(self, owners: Mapping[int, Awaiting], config: SchedulerConfig, bus: LogReader, clock: Clock) -> None:
        self._owners = owners
        self._config = config
        self._bus = bus
        self._clock = clock
        self._timer = OneTimer(clock, self._look)
        self._check: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Check every LOOK_S from now on."""
        self._timer.start(LOOK_S)

    async def close(self) -> None:
        """Check no more."""
        self._timer.cancel()
        if self._check is not None:
            self._check.cancel()
            await asyncio.wait([self._check])

    def _look(self) -> None:
        self.start()
        before = self._clock.monotonic() - self._config.receipt_s
        numbers = {
            number: owner
            for number, owner in self._owners.items()
            if next(iter(owner.frontier.in_flight.without_receipt.values()), before + 1) <= before
        }
        if numbers and (self._check is None or self._check.done()):
            self._check = asyncio.get_running_loop().create_task(self._run(numbers, before))

    async def _run(self, suspected: Mapping[int, Awaiting], before: float) -> None:
        numbers = frozenset(suspected)
        lines = {number: self._bus.layout.lineage(number) for number in numbers}
        try:
            for group, topic in ROUTE:
                ancestors = {ancestor for number in numbers for ancestor in lines[number]}
                read = await read_by_now(self._bus, self._clock, group, topic, ancestors)
                numbers = frozenset(number for number in numbers if read.issuperset(lines[number]))
                if not numbers:
                    return
        except TemporaryError as error:
            log.info("the offsets of the group %s cannot be read: %s", group, error)
            return
        for number in numbers:
            if self._owners.get(number) is suspected[number]:
                suspected[number].receipts_lost(before)
