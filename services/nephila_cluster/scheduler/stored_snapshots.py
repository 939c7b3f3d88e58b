"""Snapshots of a partition over a broker: written to its directory, committed there, then copied to the blob store.

A snapshot in the blob store lets the broker delete the part of the log before it. While the blob store does not
answer, the log is kept.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable
from enum import Enum

from nephila.kernel.bus.contract import LogBus
from nephila.kernel.messages import FrontierManifest, FrontierSnapshot
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.runtime.states import checked
from nephila.kernel.topics import FRONTIER
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.partition.ports import OwnerEvents

from nephila_cluster.scheduler.snapshot_store import SnapshotStore
from nephila_cluster.scheduler.topic_log import TopicLog

log = logging.getLogger(__name__)

PART_RETRY_S = 5.0
"""Time between two tries to store the first snapshot after a split."""


class SnapshotState(Enum):
    """What becomes of the newest snapshot."""

    STORED = "stored"
    FAILED = "failed"
    """It is not in the blob store. The next one is tried when the log has grown again."""
    WRITTEN = "written"
    """Its commits may not be in the log yet."""
    STORING = "storing"


NEXT_STATES: dict[SnapshotState, tuple[SnapshotState, ...]] = {
    SnapshotState.STORED: (SnapshotState.WRITTEN,),
    SnapshotState.FAILED: (SnapshotState.WRITTEN,),
    SnapshotState.WRITTEN: (SnapshotState.STORING,),
    SnapshotState.STORING: (SnapshotState.STORED, SnapshotState.FAILED),
}


class StoredSnapshots:
    def __init__(
        self,
        config: SchedulerConfig,
        store: SnapshotStore,
        topic: TopicLog,
        bus: LogBus,
        clock: Clock,
        owner: OwnerEvents,
    ) -> None:
        self.limit_bytes = config.snapshot_bytes
        self.state = SnapshotState.STORED
        self._max_age_s = config.snapshot_age_s
        self._store = store
        self._log = topic
        self._bus = bus
        self._clock = clock
        self._owner = owner
        self._behind = False
        """The newest snapshot failed, and none was stored since."""
        self._part_due_at = -math.inf
        self._task: asyncio.Task[None] | None = None
        self._begun_at = self._stored_at = clock.monotonic()
        """When the last snapshot was begun, and when the last one was complete, in the blob store as well."""

    @property
    def ready(self) -> bool:
        return self.state in (SnapshotState.STORED, SnapshotState.FAILED)

    @property
    def overdue(self) -> bool:
        now = self._clock.monotonic()
        if self._store.is_part:
            return now >= self._part_due_at
        return bool(self._log.size) and now > self._begun_at + self._max_age_s

    @property
    def age_s(self) -> float:
        return self._clock.monotonic() - self._stored_at if self._log.size or self._behind else 0.0

    def write(self, states: Iterable[FrontierSnapshot], sequence: int) -> None:
        self._enter(SnapshotState.WRITTEN)
        self._begun_at = self._clock.monotonic()
        self._part_due_at = self._begun_at + PART_RETRY_S
        self._store.write_state(states, sequence)
        self._log.size = 0

    def commit(self, sequence: int, offset: int) -> None:
        """The snapshot is stored off the event loop."""
        self._enter(SnapshotState.STORING)
        self._task = asyncio.ensure_future(self._run(sequence, offset))

    def drop(self) -> None:
        self._store.dropped = True

    async def _run(self, sequence: int, offset: int) -> None:
        try:
            await self._save(sequence, offset)
            self._stored_at, self._behind = self._clock.monotonic(), False
            self._store.is_part = False
            self._enter(SnapshotState.STORED)
        except TemporaryError as error:
            self._behind = True
            self._enter(SnapshotState.FAILED)
            where = f"partition {self._store.partition}"
            log.warning("%s: the snapshot is not in the blob store, the log is kept: %s", where, error)
        except Exception as error:
            self._enter(SnapshotState.FAILED)
            self._owner.fail(error)
        finally:
            self._task = None

    async def _save(self, sequence: int, offset: int) -> None:
        manifest = await asyncio.to_thread(self._store.commit, self._log.epoch, sequence, offset, self._clock.now())
        if self._store.blobs is not None:
            await self._upload(manifest)

    async def _upload(self, manifest: FrontierManifest) -> None:
        """Copy the snapshot to the blob store; then delete what it makes redundant."""
        if not await asyncio.to_thread(self._store.upload, manifest) or not self._bus.may_emit("scheduler"):
            return
        if not await asyncio.to_thread(self._store.has_all_parts):
            return
        await self._bus.delete_before(FRONTIER, {manifest.partition: manifest.offset})
        await asyncio.to_thread(self._store.delete_redundant, manifest)

    def _enter(self, state: SnapshotState) -> None:
        self.state = checked(NEXT_STATES, self.state, state, "a snapshot")
