"""What this scheduler has to do while the number of partitions grows.

A partition with fewer partitions around it than the layout has is taken over once more, by its own owner: that splits
it (`takeover.py`). A new partition waits for its birth record, which the owner of its parent writes. Deliveries of a
partition without an owner object are kept here meanwhile, in their order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from nephila.kernel.bus.contract import Delivery, LogBus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import FRONTIER
from nephila.scheduler.partition.owner import PartitionOwner

log = logging.getLogger(__name__)

LOOK_S = 0.2
"""Interval at which the logs of new partitions are looked at."""
AT_ONCE = 8
"""Partitions that are split together; the others work on meanwhile."""
Handler = Callable[[Delivery], None]


class Splits:
    """The partitions of one scheduler that wait for a split."""

    def __init__(
        self,
        bus: LogBus,
        clock: Clock,
        owners: Mapping[int, PartitionOwner],
        take_over: Callable[[frozenset[int]], Awaitable[None]],
        release: Callable[[PartitionOwner], None],
    ) -> None:
        """`take_over`: claims and restores partitions. `release`: removes an owner, because the next one follows."""
        self._bus = bus
        self._clock = clock
        self._owners = owners
        self._take_over = take_over
        self._release = release
        self._kept: dict[int, list[tuple[Handler, Delivery]]] = {}
        """Partition without an owner object → its deliveries."""
        self._unborn: set[int] = set()
        self._leaving: set[int] = set()
        """Partitions that are handed over now; their next owner splits them."""
        self._timer = OneTimer(clock, self._look)
        self._tasks: set[asyncio.Task[None]] = set()
        self._splitting = False

    @property
    def waiting(self) -> int:
        """Partitions that wait for their birth, or are split now."""
        return len(self._kept)

    async def close(self) -> None:
        """Start nothing more."""
        self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # ---- deliveries

    def keeps(self, delivery: Delivery, handler: Handler) -> bool:
        """Whether the delivery is kept for the next owner of its partition here."""
        waiting = self._kept.get(delivery.partition)
        if waiting is None:
            return False
        waiting.append((handler, delivery))
        return True

    def deliver(self, partition: int) -> None:
        """The partition has an owner: it gets what was kept."""
        for handler, delivery in self._kept.pop(partition, ()):
            handler(delivery)

    def leave(self, partitions: Iterable[int]) -> None:
        """These partitions are handed over: they are not claimed once more. `drop` follows."""
        self._leaving.update(partitions)
        self._unborn.difference_update(partitions)

    def drop(self, partitions: Iterable[int]) -> None:
        """Another member has these partitions."""
        self._leaving.difference_update(partitions)
        for partition in partitions:
            self._kept.pop(partition, None)
            self._unborn.discard(partition)

    # ---- new partitions

    async def born(self, partitions: frozenset[int], still_assigned: Callable[[int], bool]) -> frozenset[int]:
        """The newly assigned partitions that have a log; the others are taken over when they have one, unless
        they are lost before this returns."""
        new = {partition for partition in partitions if partition >= self._bus.layout.base}
        without_log = new - await self._with_log(new)
        unborn = set(filter(still_assigned, without_log))
        if unborn:
            log.info("%d new partitions wait for the split of those that they are a part of", len(unborn))
            self._unborn |= unborn
            self._kept.update({partition: [] for partition in unborn})
            self._timer.start(LOOK_S)
        return partitions - without_log

    async def _with_log(self, partitions: set[int]) -> set[int]:
        while partitions:
            try:
                return {
                    partition for partition, (_, end) in (await self._bus.bounds(FRONTIER, partitions)).items() if end
                }
            except TemporaryError as error:
                log.info("the logs of new partitions cannot be read: %s", error)
                await asyncio.sleep(LOOK_S)
        return set()

    def _look(self) -> None:
        if self._unborn:
            self._spawn(self._take_born())

    async def _take_born(self) -> None:
        count = self._bus.layout.count
        born = await self._with_log({partition for partition in self._unborn if partition < count}) & self._unborn
        self._unborn -= born
        if self._unborn:
            self._timer.start(LOOK_S)
        if born:
            await self._take_over(frozenset(born))

    # ---- partitions to split

    def check(self) -> None:
        """Split the partitions whose state is of fewer partitions than the layout has now."""
        if not self._splitting and self._to_split():
            self._splitting = True
            self._spawn(self._split())

    def _to_split(self) -> list[PartitionOwner]:
        count = self._bus.layout.count
        old = (owner for owner in self._owners.values() if owner.layout.count < count)
        return [owner for owner in old if owner.number not in self._leaving][:AT_ONCE]

    async def _split(self) -> None:
        try:
            while owners := self._to_split():
                began = self._clock.monotonic()
                self._kept.update({owner.number: [] for owner in owners})
                await asyncio.gather(*(owner.finish() for owner in owners))
                here = [
                    owner
                    for owner in owners
                    if self._owners.get(owner.number) is owner and owner.number not in self._leaving
                ]
                for owner in here:
                    self._release(owner)
                await self._take_over(frozenset(owner.number for owner in here))
                took_s = self._clock.monotonic() - began
                log.info("%d partitions are split into parts of %d: %.2f s", len(here), self._bus.layout.count, took_s)
        finally:
            self._splitting = False

    def _spawn(self, routine: Awaitable[None]) -> None:
        task = asyncio.ensure_future(routine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
