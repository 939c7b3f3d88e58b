"""One partition of a frontier: its in-memory state, its log, and what may be published when.

Inputs change the state. A turn dispatches requests and submits all changes to the commit pipeline. The state in memory
runs ahead of the log; what is published never does. A snapshot passes the same pipeline. A `Member` decides when the
partition takes a turn. Log, ownership and snapshots are given (`ports.py`): files in one program, topics in a cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import (
    CrawlJob,
    FetchOutcome,
    FrontierCommit,
    FrontierSnapshot,
    Outlinks,
    QuotaUse,
    Receipts,
    Seed,
)
from nephila.kernel.outcomes import is_error
from nephila.kernel.process.process_setup import free_unused_memory
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.states import checked
from nephila.native import UrlError
from nephila.scheduler.durability.recovery import Replay
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.durability.snapshots import cleanup, snapshots
from nephila.scheduler.engine.admission import add_forwarded, add_links, add_seed, limit_depth, note_anchors
from nephila.scheduler.engine.dispatch import Dispatcher, Slots
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.engine.seed_admission import add_seeds
from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import unpack
from nephila.scheduler.jobs.scope import anchored_in
from nephila.scheduler.partition.commit_pipeline import Batch, CommitPipeline, SchedulerCounters
from nephila.scheduler.partition.owner_state import NEXT_STATES, SNAPSHOTS, OwnerState
from nephila.scheduler.partition.ports import Build

log = logging.getLogger(__name__)

WRITTEN_PER_SNAPSHOT = 4
"""Limit of host states in memory that the next snapshot writes, in limits of the log's growth. A host with the largest
robots.txt takes half a megabyte of memory for each short entry of the log."""
ANCHORS_PER_MESSAGE = 2000


class OwnerHost(Protocol):
    """The scheduler that holds the partitions of a program."""

    def wake(self, owner: PartitionOwner) -> None:
        """The partition is to take a turn."""

    def fatal(self, error: BaseException) -> None:
        """The program cannot go on."""

    def anchored(self, owner: PartitionOwner, uid: str, anchors: Sequence[str]) -> None:
        """The scope of a job has got further anchors."""


class PartitionOwner:
    """Owns one partition from its recovery until it is handed on, lost, or its program ends."""

    def __init__(
        self,
        build: Build,
        bus: Bus,
        clock: Clock,
        counts: SchedulerCounters,
        host: OwnerHost,
        slots: Slots | None = None,
    ) -> None:
        """`slots`: of all partitions of the program; None: each partition has its own."""
        self.clock = clock
        self.counts = counts
        self._host = host
        self._anchors: dict[str, list[str]] = {}
        """Job → anchors that other partitions need before the commit that makes them known here."""
        self.due = False
        """A turn is requested."""
        self.wake_at: float | None = None
        """Time of the next turn without an input."""
        self.state = OwnerState.LOADING
        self.epoch = 0
        self.frontier, self.log, ownership, self.snapshots = build(self, counts.frontier)
        self._time = self.frontier.time
        self.number, self.layout = self.frontier.partition_slice.number, self.frontier.partition_slice.layout
        self.dispatcher = Dispatcher(self.frontier, slots)
        self.pipeline = CommitPipeline(bus, counts, self.log, ownership, self.advance, self._on_blocked)
        self._ownership = ownership
        self._replay: Replay | None = Replay(self.dispatcher)
        """Until the partition is recovered."""
        self._out = TurnOutput()
        self._acks: list[Delivery] = []
        self._turning = False
        self._quiet = asyncio.Event()

    # ---- life

    def wake(self) -> None:
        """Request a turn."""
        self._host.wake(self)

    def replay(self, entry: FrontierSnapshot | FrontierCommit) -> None:
        """Apply the next entry of the log, before `recovered`. Raises `UserError` when it cannot be read."""
        assert self._replay is not None
        if isinstance(entry, FrontierCommit):
            self.log.replayed(entry)
        self._replay.take(entry)

    def keep_part(self, part: PartitionSlice, *, born: bool) -> None:
        """The state up to here is of a partition that was split; `born`: `part` is new. One that keeps its number
        publishes its anchors once more: others may have sent theirs by the layout before."""
        assert self._replay is not None
        self._replay.keep_part(part, born=born)
        if not born:
            self._anchors = {uid: list(job.scope.anchors) for uid, job in self.frontier.jobs.items()}

    @property
    def leases_until(self) -> float:
        """The latest `lease_until` in the state so far, before `recovered`; 0.0 without a lease. O(URLs in flight)."""
        assert self._replay is not None
        return max((leased.lease_until for leased in self._replay.found.leases.values()), default=0.0)

    def recovered(self) -> Restored:
        """All entries of the log are applied. O(hosts + outstanding URLs)."""
        assert self._replay is not None
        replay, self._replay = self._replay, None
        return replay.finish(self.begin_turn(), self.clock.now())

    def begin(self, epoch: int, again: TurnOutput) -> None:
        """The partition belongs to this program, with this epoch. The first turn publishes the messages that the owner
        before may not have."""
        self.epoch = epoch
        for partition in self.frontier.partitions:
            partition.epoch = epoch
        self.log.begin(epoch)
        self._ownership.begin(epoch)
        for _, request in again.requests:
            request.epoch = epoch
        self._out = again
        self.wake()

    async def finish(self) -> None:
        """Dispatch nothing more; return when everything accepted has been published, or the partition is lost."""
        if self.lost:
            return
        self.enter(OwnerState.DRAINING)
        self.wake()
        await self.settled()

    async def settled(self) -> None:
        """Return when everything accepted has been published, or the partition is lost."""
        while not self.quiet and not self.lost:
            self._quiet.clear()
            await self._quiet.wait()

    def fail(self, error: BaseException) -> None:
        """A lost partition does not stop its program."""
        if not self.lost:
            self._host.fatal(error)

    def enter(self, state: OwnerState) -> None:
        """Change the state. Raises `RuntimeError` where `NEXT_STATES` does not allow it: an error of the program."""
        self.state = checked(NEXT_STATES, self.state, state, f"partition {self.number}")

    def hold(self, held: bool) -> None:
        """Dispatch nothing while a change comes in; `held=False` continues. No effect on a partition that drains."""
        if held and self.state in (OwnerState.LOADING, OwnerState.SERVING):
            self.enter(OwnerState.HELD)
        elif not held and self.state is OwnerState.HELD:
            self.enter(OwnerState.SERVING)
            self.wake()

    @property
    def lost(self) -> bool:
        """The partition belongs to another member, or the program ends."""
        return self.state is OwnerState.LOST

    @property
    def has_work(self) -> bool:
        """Whether anything needs capacity. O(jobs)."""
        frontier = self.frontier
        return bool(frontier.in_flight.urls) or any(job.queue.length for job in frontier.jobs.values())

    @property
    def quiet(self) -> bool:
        """Nothing is in the pipeline, and no turn is due."""
        return not (len(self.pipeline) or self._acks or self.due)

    def drop(self) -> list[str]:
        """The partition belongs to another member. Nothing more is published. Returns the addresses of its fetches in
        flight: they count here until the next owner has announced them."""
        self.enter(OwnerState.LOST)
        self.wake_at = None
        self.dispatcher.stop()
        self.snapshots.drop()
        frontier = self.frontier
        for slot in frontier.readiness.waiting_for_address.values():
            frontier.addresses.leave(slot)
        self.pipeline.close()
        self._acks.clear()
        self._quiet.set()
        return frontier.in_flight.addresses_in_use()

    # ---- in

    def begin_turn(self) -> float:
        """Take the current time over into the frontier; returns it (monotonic)."""
        return self._time.read(self.clock)

    def put_job(self, spec: CrawlJob) -> None:
        """The desired state of a job. No effect where it is the present one: a program that starts publishes the jobs
        that it got from its scheduler."""
        present = self.frontier.jobs.get(spec.uid)
        if present is not None and present.spec == spec:
            return
        self.begin_turn()
        mode = present.scope.mode if present is not None else None
        put_job(self.frontier, spec)
        if present is not None and present.scope.mode != mode:
            # With another mode the anchors belong to other partitions.
            self._anchors[spec.uid] = list(present.scope.anchors)
        self.wake()

    def resume_job(self, job: Job) -> None:
        """The job may use more than before."""
        self.begin_turn()
        self.frontier.readiness.resume_hosts(job)
        self.wake()

    def limit_depth(self, limit: int) -> None:
        """The live setting of depth has changed; -1: no limit."""
        self.begin_turn()
        limit_depth(self.frontier, limit)
        self.wake()

    def share_quotas(self, uses: Mapping[str, QuotaUse]) -> None:
        """Other partitions have spent so much of the quotas."""
        self.begin_turn()
        self.frontier.quotas.set_elsewhere(uses)
        self.frontier.holds.apply_quotas()
        self.wake()

    def anchors(self, uid: str, anchors: Sequence[str]) -> None:
        """The scope of a job has anchors that were found in another partition."""
        job = self.frontier.jobs.get(uid)
        new = [anchor for anchor in anchors if anchor not in job.scope.anchors] if job is not None else []
        if job is not None and new:
            note_anchors(self.frontier, job, new)
            self.wake()

    def note_anchors(self, uid: str, anchors: Sequence[str]) -> None:
        self._anchors.setdefault(uid, []).extend(anchors)
        self._host.anchored(self, uid, anchors)

    def seed(self, delivery: Delivery, job: Job) -> None:
        """A seed, or a URL or anchors that another partition has sent."""
        seed: Seed = delivery.message
        if seed.anchors:
            self.anchors(job.uid, seed.anchors)
            self.taken(delivery)
            return
        entry = unpack(seed.entry) if seed.entry else None
        url = entry.url if entry is not None else seed.url
        try:
            parts = parse_for(job.compiled.routes, url)
        except UrlError as error:
            self.counts.refused_seeds.append((url, str(error)))
        else:
            if entry is not None:
                self.begin_turn()
                add_forwarded(self.frontier, job, seed, entry, parts)
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
                    self.counts.refused_seeds.append((url, refused))
        self.taken(delivery)

    def seeds(self, links: Outlinks) -> None:
        """Seeds of a file. Those of a job that is gone are dropped."""
        job = self.frontier.jobs.get(links.job)
        if job is not None:
            self.begin_turn()
            self.counts.refused_seeds.extend(add_seeds(self.frontier, job, links))
            self.wake()

    def outlinks(self, delivery: Delivery) -> None:
        links: Outlinks = delivery.message
        self._time.read(self.clock)
        add_links(self.frontier, links)
        self.taken(delivery)

    def outcome(self, delivery: Delivery) -> None:
        outcome: FetchOutcome = delivery.message
        if outcome.reason and is_error(outcome):
            self.counts.errors[outcome.reason] += 1
        self.dispatcher.outcomes.outcome(outcome, self._time.read(self.clock), self._out)
        self.taken(delivery)

    def receipts(self, delivery: Delivery) -> None:
        """The rows of these URLs are durable in storage."""
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
        if not self.due:
            self._host.wake(self)

    # ---- a turn

    def turn(self) -> None:
        """Dispatch, commit, then publish and ack."""
        self.due = False
        if self.state is OwnerState.LOST:
            return
        now = self.begin_turn()
        frontier = self.frontier
        out, self._out = self._out, TurnOutput()
        acks, self._acks = self._acks, []
        self._turning = True
        if self.state is OwnerState.SERVING:
            self.dispatcher.dispatch(now, out)
        else:
            self.dispatcher.stop()
        foreign = frontier.take_for_other_partitions()
        if self._anchors:
            foreign += self._anchors_for_others()
        if self.snapshots.overdue and self.wants_snapshot:
            # A snapshot is named by its last commit: two without a commit between them would have one name.
            frontier.pending.of(frontier.partitions[0])
        commits = frontier.pending.commits()
        if commits or foreign or acks or out.requests or out.records:
            fitting = self.log.fit(commits)
            if fitting is not commits and fitting:
                frontier.partitions[0].sequence = fitting[-1].sequence
            self.pipeline.submit(Batch(fitting, out, acks), foreign)
        if self.wants_snapshot:
            self.take_snapshot()
        self.dispatcher.trim_hosts()
        self.advance()
        self._turning = False

    def _anchors_for_others(self) -> list[tuple[int, Seed]]:
        anchors, self._anchors = self._anchors, {}
        messages = []
        for uid, added in anchors.items():
            job = self.frontier.jobs.get(uid)
            if job is None:
                continue
            for partition, part in anchored_in(job.scope.mode, added, self.layout).items():
                if partition != self.number:
                    cuts = range(0, len(part), ANCHORS_PER_MESSAGE)
                    messages += [(partition, Seed(uid, anchors=part[at : at + ANCHORS_PER_MESSAGE])) for at in cuts]
        return messages

    def advance(self) -> None:
        """Publish what was held back and may now be published."""
        self.pipeline.advance()
        self._quiet.set()

    def _on_blocked(self) -> None:
        if not self._turning:
            self.wake()  # after its turn the scheduler calls `advance` until it succeeds

    # ---- snapshots

    @property
    def wants_snapshot(self) -> bool:
        """The log, or the host store's data in memory, has grown enough for a snapshot, or a commit is too old."""
        parts, limit = self.snapshots, self.snapshots.limit_bytes
        grown = self.log.size > limit or self.frontier.hosts.written_bytes > WRITTEN_PER_SNAPSHOT * limit
        return (grown or parts.overdue) and self.state in SNAPSHOTS and parts.ready

    def check_snapshot_age(self) -> None:
        """Have the next turn take a snapshot if the last one is too old."""
        if self.snapshots.overdue:
            self.wake()

    def take_snapshot(self) -> None:
        """Write the state after the last commit of this turn. It counts when that commit is in the log."""
        sequence = self.frontier.partitions[0].sequence
        self.snapshots.write(snapshots(self.dispatcher), sequence)
        self.frontier.hosts.checkpointed()
        then = partial(self._on_snapshot_committed, sequence)
        self.pipeline.submit(Batch([], TurnOutput(), [], then=then))

    def _on_snapshot_committed(self, sequence: int, offset: int) -> None:
        # The files of the snapshot before are not needed: the log and the snapshots have their content.
        cleanup(self.frontier)
        # URLs and states that were in memory are in files: the C library would keep their pages.
        free_unused_memory()
        self.snapshots.commit(sequence, offset)
