"""Takes partitions over: claim, newest snapshot, replay of the log behind it, then requests that may be missing.

The claim comes first, so later writes of the previous owner do not count. All commits up to the claim form the state;
leases continue. A request that is committed but not in the topic `requests` is published again (sent_requests.py).
Nothing is delivered to the partition meanwhile.

A takeover with more partitions than before splits the partition: the state is reduced to the own part, and a birth
record in the log of each child names the log and the offset with which that one begins. A child differs from its parent
by one bit: after a growth by several bits, the child writes the births of its own children. So the parent of a
partition depends on its number alone, in every order of growths and takeovers. Invariant: a partition serves, and takes
snapshots, only when its births are in their logs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nephila.kernel.bus.contract import LogBus
from nephila.kernel.layout import Layout
from nephila.kernel.messages import FrontierBirth, FrontierClaim, FrontierManifest, FrontierRecord
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UserError
from nephila.kernel.topics import FRONTIER
from nephila.scheduler.durability.commit_log import read_snapshot
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.partition.owner import PartitionOwner

from nephila_cluster.scheduler.changelog import LogFilter
from nephila_cluster.scheduler.sent_requests import name_of, sent_requests
from nephila_cluster.scheduler.snapshot_store import SnapshotStore, StaleLayoutError, snapshot_name

log = logging.getLogger(__name__)

AGAIN_S = 1.0
TRIES = 5
SLICE_S = 0.05
"""Longest time without returning to the event loop: heartbeats and timers wait meanwhile."""
DUE_PER_TURN = 8
"""Partitions whose snapshots are fetched in parallel."""


@dataclass(slots=True)
class _Opening:
    """One partition during its takeover."""

    owner: PartitionOwner
    store: SnapshotStore
    epoch: int
    reading: LogFilter
    start: int
    partitions: int
    """Number of partitions of the system at the begin of this log, or at its snapshot."""
    found: Restored | None = None


async def claim(bus: LogBus, partitions: Iterable[int], layout: Layout, started: float, now: float) -> dict[int, int]:
    """Claim partitions; returns the epoch of each."""
    record = FrontierRecord(FrontierClaim(bus.member, started, now, layout.count))
    epochs: dict[int, int] = {}
    left = list(partitions)
    while left:
        before = {p: bus.last_offset(FRONTIER, p) for p in left}
        for receipt in [bus.publish(FRONTIER, p, record) for p in left]:
            await receipt
        epochs |= {p: bus.last_offset(FRONTIER, p) for p in left}
        # A broker that deduplicated a record may not return its offset; the same claim again is the same claim.
        left = [p for p in left if epochs[p] <= before[p]]
    return epochs


class Takeover:
    """Restores claimed partitions. `new` builds an empty owner and its files; `serves`: whether a partition is
    still to be taken over; `discard` ends an owner whose leases are loaded but which will not serve."""

    def __init__(
        self,
        bus: LogBus,
        clock: Clock,
        new: Callable[[int, int], tuple[PartitionOwner, SnapshotStore]],
        serves: Callable[[int], bool],
        discard: Callable[[PartitionOwner], None],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._new = new
        self._wanted = serves
        self._abandon = discard

    async def run(self, epochs: dict[int, int]) -> list[PartitionOwner]:
        """All partitions, ready for their first turn. Raises `UserError` for what a person has to correct, and
        `StaleLayoutError`."""
        tries = TRIES
        while any(map(self._wanted, epochs)):
            try:
                return await self._all(epochs)
            except StaleLayoutError:
                raise
            except TemporaryError as error:
                log.warning("partitions are not loaded: %s; retrying", error)
            except PermanentError as error:
                # The snapshot may have been replaced while it was read.
                log.warning("partitions are not loaded: %s; retrying", error)
                tries -= 1
                if not tries:
                    raise UserError(f"{error}; restore the blob store, or configure the one that has it") from None
            except (UserError, OSError) as error:
                # A second takeover of the same partitions may have removed the files.
                if any(map(self._wanted, epochs)):
                    raise UserError(f"partitions cannot be taken over: {error}") from None
            await asyncio.sleep(AGAIN_S)
        return []

    async def _all(self, epochs: dict[int, int]) -> list[PartitionOwner]:
        bounds = await self._bus.bounds(FRONTIER, epochs)
        slots = asyncio.Semaphore(DUE_PER_TURN)
        openings = await asyncio.gather(*(self._open(p, epoch, bounds[p], slots) for p, epoch in epochs.items()))
        by_number = {opening.owner.number: opening for opening in openings}
        ranges = {p: (opening.start, opening.epoch + 1) for p, opening in by_number.items()}
        turned = self._clock.monotonic()
        async for partition, records in self._bus.read(FRONTIER, ranges):
            self._replay(by_number[partition].owner, by_number[partition].reading, records)
            if not any(map(self._wanted, epochs)):
                return []
            if self._clock.monotonic() > turned + SLICE_S:
                await asyncio.sleep(0)
                turned = self._clock.monotonic()
        try:
            for opening in openings:
                self._finish(opening)
                await asyncio.sleep(0)
            await self._publish_births(openings)
            await self._drop_sent(openings)
        except BaseException:
            for opening in openings:
                if opening.found is not None:
                    self._abandon(opening.owner)
            raise
        for opening in openings:
            assert opening.found is not None
            opening.owner.begin(opening.epoch, opening.found.to_republish)
        self._report(openings)
        return [opening.owner for opening in openings]

    @staticmethod
    def _report(openings: list[_Opening]) -> None:
        """One line for all partitions; those of each partition have the level debug."""
        replays = [opening.found for opening in openings if opening.found is not None]
        log.info(
            "%d partitions taken over: %d commits, %d URLs queued, %d in flight, %d requests published again",
            len(openings),
            sum(replay.commits for replay in replays),
            sum(replay.urls for replay in replays),
            sum(len(opening.owner.frontier.in_flight) for opening in openings),
            sum(len(replay.to_republish.requests) for replay in replays),
        )

    async def _open(self, partition: int, epoch: int, bounds: tuple[int, int], slots: asyncio.Semaphore) -> _Opening:
        owner, store = self._new(partition, epoch)
        async with slots:
            manifest = await asyncio.to_thread(store.prepare)
        owner.begin_turn()
        if manifest is not None:
            self._check(manifest, bounds)
            reading, start = self._load(owner, store, manifest, bounds)
            return _Opening(owner, store, epoch, reading, start, manifest.partitions)
        self._check_begin(partition, bounds)
        count = owner.layout.base
        if (birth := await self._birth(partition)) is not None:
            await self._load_part(owner, store, birth, partition)
            # The parent may have given longer leases than its owner at the birth.
            count, store.leases_until = birth.partitions, max(birth.leases_until, owner.leases_until)
        return _Opening(owner, store, epoch, LogFilter(partition), bounds[0], count)

    @staticmethod
    def _load(
        owner: PartitionOwner, store: SnapshotStore, manifest: FrontierManifest, bounds: tuple[int, int]
    ) -> tuple[LogFilter, int]:
        """Apply a snapshot; returns where its log continues."""
        for state in read_snapshot(store.directory / snapshot_name(manifest.sequence)):
            owner.replay(state)
        reading = LogFilter(manifest.partition, manifest.epoch, manifest.sequence)
        return reading, max(manifest.offset, bounds[0])

    async def _birth(self, partition: int) -> FrontierBirth | None:
        """The first record of a log, where it is a birth. Partitions of the first layout have none, and are not read:
        each reading has a connection of its own."""
        if partition < self._bus.layout.base:
            return None
        async for _, records in self._bus.read(FRONTIER, {partition: (0, 1)}):
            first: FrontierRecord = records[0][1]
            return first.birth
        return None

    async def _load_part(self, owner: PartitionOwner, store: SnapshotStore, birth: FrontierBirth, number: int) -> None:
        """Apply the state with which a partition begins: that of its parent up to the split, of which it keeps a part.
        The log of a partition that was split again needs the whole part of its first split."""
        bounds = (await self._bus.bounds(FRONTIER, [birth.parent]))[birth.parent]
        manifest = await asyncio.to_thread(store.prepare_part, birth)
        if manifest is not None:
            reading, start = self._load(owner, store, manifest, bounds)
            if bounds[0] > start:
                raise TemporaryError(f"frontier/{birth.parent} begins behind its snapshot")
        else:
            self._check_begin(birth.parent, bounds)
            if (before := await self._birth(birth.parent)) is not None:
                await self._load_part(owner, store, before, birth.parent)
            reading, start = LogFilter(birth.parent), 0
        async for _, records in self._bus.read(FRONTIER, {birth.parent: (start, birth.offset)}):
            self._replay(owner, reading, records)
            await asyncio.sleep(0)
        owner.keep_part(PartitionSlice(number, birth.partitions, owner.layout.base), born=True)
        store.is_part = True

    @staticmethod
    def _check_begin(partition: int, bounds: tuple[int, int]) -> None:
        if bounds[0] > 0:
            raise UserError(
                f"frontier/{partition} begins at {bounds[0]}, and no snapshot covers the part before; configure the "
                "blob store that has it (scheduler: blobs)"
            )

    async def _publish_births(self, openings: list[_Opening]) -> None:
        """Write the births of children whose logs are empty. An owner serves only behind the births of its layout, so
        such a child has its URLs in this state, whatever the claims before this one name."""
        births = {
            child: self._birth_of(opening, child)
            for opening in openings
            for child in opening.owner.layout.children(opening.owner.number)
        }
        if not births:
            return
        bounds = await self._bus.bounds(FRONTIER, births)
        unborn = [number for number, (_, end) in bounds.items() if not end]
        for receipt in [self._bus.publish(FRONTIER, child, FrontierRecord(birth=births[child])) for child in unborn]:
            await receipt

    def _birth_of(self, opening: _Opening, child: int) -> FrontierBirth:
        owner = opening.owner
        config = owner.frontier.config
        leases_until = self._clock.now() + config.start_by_s + config.lease_s
        return FrontierBirth(owner.number, opening.epoch, 1 << child.bit_length(), leases_until)

    @staticmethod
    def _check(manifest: FrontierManifest, bounds: tuple[int, int]) -> None:
        first, last = bounds
        where = f"frontier/{manifest.partition}"
        if manifest.offset >= last:
            raise UserError(
                f"{where} ends at {last}, and its snapshot was taken at {manifest.offset}: the topic was deleted, or "
                "its broker lost data; start a new system with its own directory and blob store"
            )
        if first > manifest.offset + 1:
            raise UserError(
                f"{where}: the newest snapshot was taken at {manifest.offset}, and the log begins at {first}; "
                "configure the blob store that has a later one (scheduler: blobs)"
            )

    @staticmethod
    def _replay(owner: PartitionOwner, reading: LogFilter, records: list[tuple[int, FrontierRecord]]) -> None:
        owner.begin_turn()
        for offset, record in records:
            commit = reading.take(offset, record)
            if commit is not None:
                owner.replay(commit)

    def _finish(self, opening: _Opening) -> None:
        owner = opening.owner
        count = max(opening.partitions, opening.reading.partitions)
        if count > owner.layout.count:
            raise StaleLayoutError(
                f"partition {owner.number} is of {count} partitions, and {owner.layout.count} are known"
            )
        if opening.partitions < owner.layout.count:
            owner.keep_part(owner.frontier.partition_slice, born=False)
            opening.store.is_part = True
        opening.found = owner.recovered()
        log.debug(
            "partition %d: epoch %d, %d commits, %d ignored, %d URLs queued, %d in flight",
            *(owner.number, opening.epoch, opening.found.commits, opening.reading.ignored, opening.found.urls),
            len(owner.frontier.in_flight),
        )

    async def _drop_sent(self, openings: list[_Opening]) -> None:
        """Remove from the requests to publish those that are published already."""
        requests = []
        for opening in openings:
            assert opening.found is not None
            # Leases of the parent are in the log of its requests.
            own = [
                pair for pair in opening.found.to_republish.requests if pair[1].lease_until > opening.store.leases_until
            ]
            opening.found.to_republish.requests = own
            requests += own
        if not requests:
            return
        sent = await sent_requests(self._bus, requests)
        for opening in openings:
            assert opening.found is not None
            own = [pair for pair in opening.found.to_republish.requests if name_of(pair[1]) not in sent]
            opening.found.to_republish.requests = own
            if own:
                log.debug("partition %d: %d requests are published again", opening.owner.number, len(own))
