"""One partition of a distributed frontier: its in-memory state, its log, and what may be published when.

Inputs change the state. A turn dispatches requests and submits all changes to the commit pipeline. The state in memory
runs ahead of the log; what is published never does. A snapshot passes the same pipeline. `scheduler.py` decides which
partitions exist here and when each takes a turn.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import msgspec

from nephila.kernel.bus.contract import Delivery
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import (
    CrawlJob,
    FetchOutcome,
    FrontierCommit,
    FrontierManifest,
    Outlinks,
    QuotaUse,
    Receipts,
    Seed,
)
from nephila.kernel.outcomes import is_error
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import FRONTIER
from nephila.native import HostStore, UrlError
from nephila.scheduler.cluster.addresses.shared_pace import PartitionView, SharedAddressQueue
from nephila.scheduler.cluster.changelog import RECORD_BYTES, commit_bytes, split_commit
from nephila.scheduler.cluster.commit_pipeline import Batch, CommitPipeline, LogBus, SchedulerCounters
from nephila.scheduler.cluster.fencing import EpochFence
from nephila.scheduler.cluster.shared_slots import SharedSlots
from nephila.scheduler.cluster.snapshot_store import SnapshotStore
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.snapshots import cleanup, snapshots
from nephila.scheduler.engine.admission import add_forwarded, add_links, add_seed, note_anchor
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.frontier.job_state import Job
from nephila.scheduler.frontier.scope import anchored_in
from nephila.scheduler.frontier.seen import new_seen

log = logging.getLogger(__name__)

SHARES = 16
"""A partition may keep 1/SHARES of the scheduler's limit of hosts in memory."""
LEAST_HOT_HOSTS = 256
ANCHORS_PER_MESSAGE = 2000


class OwnerState(Enum):
    """The life of a partition at one owner. Only a serving partition dispatches requests and takes snapshots."""

    LOADING = "loading"
    ANNOUNCING = "announcing"
    """The other schedulers do not know yet that it is here, and what it has in flight."""
    SERVING = "serving"
    DRAINING = "draining"
    LOST = "lost"


NEXT_STATES: dict[OwnerState, tuple[OwnerState, ...]] = {
    OwnerState.LOADING: (OwnerState.ANNOUNCING, OwnerState.SERVING, OwnerState.DRAINING, OwnerState.LOST),
    OwnerState.ANNOUNCING: (OwnerState.SERVING, OwnerState.DRAINING, OwnerState.LOST),
    OwnerState.SERVING: (OwnerState.DRAINING, OwnerState.LOST),
    # The program drains, and then the bus revokes the partition.
    OwnerState.DRAINING: (OwnerState.DRAINING, OwnerState.LOST),
    OwnerState.LOST: (),
}


class OwnerHost(Protocol):
    """The scheduler that holds the partitions of a program."""

    def wake(self, owner: PartitionOwner) -> None:
        """The partition is to take a turn."""

    def fatal(self, error: BaseException) -> None:
        """The program cannot go on."""

    def anchored(self, owner: PartitionOwner, uid: str, place: str) -> None:
        """The scope of a job has got a further anchor."""


class PartitionOwner:
    """Owns one partition from its takeover until it is handed on or lost."""

    def __init__(
        self,
        config: SchedulerConfig,
        store: SnapshotStore,
        bus: LogBus,
        clock: Clock,
        address_queue: SharedAddressQueue,
        counts: SchedulerCounters,
        host: OwnerHost,
        slots: SharedSlots | None = None,
    ) -> None:
        """`slots`: of all partitions of the program; None: each partition has its own."""
        self.number = store.partition
        self.store = store
        self.bus = bus
        self.clock = clock
        self.counts = counts
        directory = str(store.directory)
        self.config = msgspec.structs.replace(
            config,
            partitions=1,
            directory=directory,
            hot_hosts=max(config.hot_hosts // SHARES, LEAST_HOT_HOSTS),
            hot_robots_bytes=config.hot_robots_bytes // SHARES,
        )
        self._host = host
        self._share = PartitionView(address_queue, self.wake)
        self.frontier = Frontier(
            self.config,
            HostStore(directory),
            lambda number: new_seen(directory, number),
            partition_slice=PartitionSlice(store.partition, store.partitions),
            addresses=self._share,
            consumed_until=-math.inf,
            on_anchor=self._anchored,
            counters=counts.frontier,
        )
        self._anchors: dict[str, list[str]] = {}
        """Job → anchors that other partitions need before the commit that makes them known here."""
        self.dispatcher = Dispatcher(self.frontier, slots)
        self.due = False
        """A turn is requested."""
        self.wake_at: float | None = None
        """Time of the next turn without an input."""
        self.state = OwnerState.LOADING
        self.log_bytes = 0
        """Approximate size of the log since the last snapshot."""
        self.epoch = 0
        self._out = TurnOutput()
        self._acks: list[Delivery] = []
        self._fence = EpochFence(self.number, bus, clock, self.wake, host.fatal)
        self.pipeline = CommitPipeline(self.number, bus, counts, self._fence, self._on_blocked)
        self._turning = False
        self._quiet = asyncio.Event()
        self._snapshot: asyncio.Task[None] | None = None
        self._taking = False
        self._snapshot_at = clock.monotonic()
        """When the last snapshot was started."""
        self._stored_at = self._snapshot_at
        """When the last snapshot was complete, in the blob store as well where there is one."""
        self._snapshot_failed = False

    # ---- life

    def wake(self) -> None:
        """Request a turn."""
        self._host.wake(self)

    def begin(self, epoch: int, again: TurnOutput) -> None:
        """The claim with this epoch is ours. The first turn publishes what the owner before may not have."""
        self.epoch = self.pipeline.epoch = self.frontier.partitions[0].epoch = epoch
        self._fence.start(epoch)
        for _, request in again.requests:
            request.epoch = epoch
        self._out = again
        self.wake()

    def restored(self, commit: FrontierCommit) -> None:
        """Count a commit that was replayed from the log."""
        self.log_bytes += commit_bytes(commit)

    async def finish(self) -> None:
        """Dispatch nothing more; return when everything accepted has been published, or the partition is lost."""
        if self.lost:
            return
        self.enter(OwnerState.DRAINING)
        self.wake()
        while not self.quiet and not self.lost:
            self._quiet.clear()
            await self._quiet.wait()

    def enter(self, state: OwnerState) -> None:
        """Change the state. Raises `RuntimeError` where `NEXT_STATES` does not allow it: an error of the program."""
        if state not in NEXT_STATES[self.state]:
            raise RuntimeError(f"partition {self.number}: {state.value} cannot follow {self.state.value}")
        self.state = state

    @property
    def lost(self) -> bool:
        """The partition belongs to another member."""
        return self.state is OwnerState.LOST

    @property
    def has_work(self) -> bool:
        """Whether anything needs capacity. O(jobs)."""
        frontier = self.frontier
        return bool(frontier.in_flight.urls) or any(job.queued for job in frontier.jobs.values())

    @property
    def quiet(self) -> bool:
        """Nothing is in the pipeline, and no turn is due."""
        return not (len(self.pipeline) or self._acks or self.due)

    def drop(self) -> list[str]:
        """The partition belongs to another member. Nothing more is published. Returns the addresses of its fetches in
        flight: they count here until the next owner has announced them."""
        self.enter(OwnerState.LOST)
        self.dispatcher.stop()
        self.store.dropped = True
        frontier = self.frontier
        for place in frontier.readiness.waiting_for_address.values():
            self._share.leave(place)
        self.pipeline.close()
        self._acks.clear()
        self._quiet.set()
        return frontier.in_flight.addresses_in_use()

    # ---- in

    def begin_turn(self) -> float:
        """Take the current time over into the frontier; returns it (monotonic)."""
        now = self.clock.monotonic()
        self.frontier.begin_turn(now, self.clock.now())
        return now

    def job(self, uid: str, spec: CrawlJob) -> Job:
        """The job in this partition; it is created here if it had nothing in it."""
        job = self.frontier.jobs.get(uid)
        if job is None:
            self.begin_turn()
            job = put_job(self.frontier, spec)
            assert job is not None
        return job

    def change_job(self, spec: CrawlJob) -> None:
        """A new desired state of a job that has something in this partition."""
        known = self.frontier.jobs.get(spec.uid)
        if known is not None and known.spec != spec:
            self.begin_turn()
            mode = known.scope.mode
            put_job(self.frontier, spec)
            if known.scope.mode != mode:
                # With another mode the anchors belong to other partitions.
                self._anchors[spec.uid] = list(known.scope.anchors)
            self.wake()

    def resume_job(self, job: Job) -> None:
        """The job may use more than before."""
        self.begin_turn()
        self.frontier.readiness.resume_hosts(job)
        self.wake()

    def share_quotas(self, uses: Mapping[str, QuotaUse]) -> None:
        """Other partitions have spent so much of the quotas."""
        self.begin_turn()
        self.frontier.quotas.set_elsewhere(uses)
        self.frontier.holds.apply_quotas()
        self.wake()

    def anchor(self, uid: str, place: str) -> None:
        """The scope of a job has an anchor that was found in another partition."""
        job = self.frontier.jobs.get(uid)
        if job is not None and place not in job.scope.anchors:
            note_anchor(self.frontier, job, place)
            self.wake()

    def _anchored(self, uid: str, place: str) -> None:
        self._anchors.setdefault(uid, []).append(place)
        self._host.anchored(self, uid, place)

    def seed(self, delivery: Delivery, job: Job) -> None:
        """A seed, or a URL or anchors that another partition has sent."""
        seed: Seed = delivery.message
        if seed.anchors:
            for place in seed.anchors:
                self.anchor(job.uid, place)
            self.taken(delivery)
            return
        self.begin_turn()
        try:
            parts = parse_for(job.routes, seed.url)
        except UrlError as error:
            self.counts.refused_seeds.append((seed.url, str(error)))
        else:
            if seed.sent_on:
                add_forwarded(self.frontier, job, seed, parts)
            else:
                refused = add_seed(
                    self.frontier,
                    job,
                    parts.host_key,
                    parts.path_query,
                    parts.href,
                    parts.fingerprint,
                    seed.context,
                    seed.render,
                )
                if refused:
                    self.counts.refused_seeds.append((seed.url, refused))
        self.taken(delivery)

    def outlinks(self, delivery: Delivery) -> None:
        """Links of a page."""
        links: Outlinks = delivery.message
        self.begin_turn()
        add_links(self.frontier, links)
        self.taken(delivery)

    def outcome(self, delivery: Delivery) -> None:
        """A fetch has ended."""
        outcome: FetchOutcome = delivery.message
        if is_error(outcome):
            self.counts.errors[outcome.reason] += 1
        self.dispatcher.outcomes.outcome(outcome, self.begin_turn(), self._out)
        self.taken(delivery)

    def receipts(self, delivery: Delivery) -> None:
        """URLs are durable in storage."""
        receipts: Receipts = delivery.message
        self.begin_turn()
        self.dispatcher.endings.receipts(receipts)
        self.taken(delivery)

    def receipts_lost(self, before: float) -> None:
        """The messages of all URLs without receipt whose outcomes came by `before` are lost."""
        count = self.dispatcher.outcomes.receipts_lost(before, self.begin_turn(), self._out)
        if count:
            log.warning(
                "partition %d: %d URLs have an outcome and no receipt, though all messages were read: messages were "
                "lost; the URLs are fetched again",
                self.number,
                count,
            )
            self.wake()

    def taken(self, delivery: Delivery) -> None:
        """Ack the delivery when its effect is in the log."""
        self._acks.append(delivery)
        self.wake()

    # ---- a turn

    def turn(self) -> None:
        """Dispatch, and submit all changes to the pipeline."""
        self.due = False
        if self.lost:
            return
        now = self.begin_turn()
        frontier = self.frontier
        out, self._out = self._out, TurnOutput()
        acks, self._acks = self._acks, []
        if self.state is OwnerState.SERVING:
            self.dispatcher.dispatch(now, out)
        else:
            self.dispatcher.stop()
        foreign = frontier.take_for_other_partitions()
        foreign += self._anchors_for_others()
        commits = frontier.pending.commits()
        if commits or foreign or acks or out.requests or out.records:
            self.pipeline.submit(Batch(self._fitting(commits), out, acks, then=self._on_published), foreign)
        if self.wants_snapshot:
            self._take_snapshot()
        self.dispatcher.trim_hosts()
        self._turning = True
        self.advance()
        self._turning = False

    def _anchors_for_others(self) -> list[tuple[int, Seed]]:
        found, self._anchors = self._anchors, {}
        messages = []
        for uid, places in found.items():
            job = self.frontier.jobs.get(uid)
            if job is None:
                continue
            by_partition: dict[int, list[str]] = {}
            for place in places:
                for partition in anchored_in(job.scope.mode, place, self.store.partitions) - {self.number}:
                    by_partition.setdefault(partition, []).append(place)
            for partition, some in by_partition.items():
                for at in range(0, len(some), ANCHORS_PER_MESSAGE):
                    part = some[at : at + ANCHORS_PER_MESSAGE]
                    messages.append((partition, Seed(uid, sent_on=True, anchors=part)))
        return messages

    def _fitting(self, commits: list[FrontierCommit]) -> list[FrontierCommit]:
        """The commits split to the size of a record, and counted."""
        found = []
        for commit in commits:
            size = commit_bytes(commit)
            self.log_bytes += size
            if size <= RECORD_BYTES:
                found.append(commit)
                continue
            parts = list(split_commit(commit))
            self.frontier.partitions[0].sequence = parts[-1].sequence
            found += parts
        return found

    def advance(self) -> None:
        """Publish what was held back and may now be published."""
        self.pipeline.advance()
        self._quiet.set()

    def _on_published(self, offset: int) -> None:
        self._quiet.set()

    def _on_blocked(self) -> None:
        if not self._turning:
            self.wake()  # after its turn the scheduler calls `advance` until it succeeds

    @property
    def blocked(self) -> bool:
        """Batches wait until it is known that the partition is still ours."""
        return self.pipeline.blocked

    # ---- snapshots

    @property
    def wants_snapshot(self) -> bool:
        """The log, or the host store's data in memory, has grown enough for a snapshot."""
        limit = self.config.snapshot_bytes
        grown = self.log_bytes > limit or self.frontier.hosts.written_bytes > 4 * limit
        return grown and not self._taking and self.state is OwnerState.SERVING

    @property
    def snapshot_age_s(self) -> float:
        """Seconds since the last snapshot was stored, or since the takeover; 0 while it holds everything."""
        stale = self.log_bytes or self._snapshot_failed
        return self.clock.monotonic() - self._stored_at if stale else 0.0

    def check_snapshot_age(self) -> None:
        """Have the next turn take a snapshot if the last one is too old."""
        if self.log_bytes and self.clock.monotonic() > self._snapshot_at + self.config.snapshot_age_s:
            self.log_bytes = max(self.log_bytes, self.config.snapshot_bytes + 1)
            self.wake()

    def _take_snapshot(self) -> None:
        """Write the state after the last commit of this turn. It counts when that commit is in the log."""
        self._taking = True
        self._snapshot_at = self.clock.monotonic()
        sequence = self.frontier.partitions[0].sequence
        self.store.write_state(snapshots(self.dispatcher), sequence)
        self.log_bytes = 0
        self.frontier.hosts.checkpointed()
        self.pipeline.submit(
            Batch([], TurnOutput(), [], then=lambda offset: self._on_snapshot_committed(sequence, offset))
        )

    def _on_snapshot_committed(self, sequence: int, offset: int) -> None:
        # The files of the snapshot before are not needed: the log and the blob store have their content.
        cleanup(self.frontier)
        self._snapshot = asyncio.ensure_future(self._store_snapshot(sequence, offset))

    async def _store_snapshot(self, sequence: int, offset: int) -> None:
        try:
            manifest = await asyncio.to_thread(self.store.commit, self.epoch, sequence, offset, self.clock.now())
            if self.store.blobs is not None:
                await self._upload(manifest)
            self._stored_at, self._snapshot_failed = self.clock.monotonic(), False
        except TemporaryError as error:
            self._snapshot_failed = True
            log.warning("partition %d: the snapshot is not in the blob store, the log is kept: %s", self.number, error)
        except Exception as error:
            if not self.lost:
                self._host.fatal(error)
        finally:
            self._taking = False
            self._snapshot = None

    async def _upload(self, manifest: FrontierManifest) -> None:
        """Copy the snapshot to the blob store; then delete what it makes redundant."""
        if not await asyncio.to_thread(self.store.upload, manifest) or not self.bus.may_emit("scheduler"):
            return
        await self.bus.delete_before(FRONTIER, {self.number: manifest.offset})
        await asyncio.to_thread(self.store.delete_redundant, manifest)
