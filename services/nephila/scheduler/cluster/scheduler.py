"""The scheduler of a cluster: one frontier per partition that this member owns, taken over and handed on.

    IN   jobs, seeds, outlinks, outcomes, receipts     OUT  requests, records, frontier, seeds of other partitions

Each delivery goes to the owner object of its partition. A partition takes a turn in the next pass of the event loop
after an input, or when its wake-up time comes. One timer serves all partitions, and an idle partition costs nothing.
Partitions of one program share the pace per server address and the capacity of the downloaders. See `partition.py` for
how changes are published and `takeover.py` for how a partition is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nephila.kernel.blobs import check_reachable, open_blobs
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.live_settings import DEPTH
from nephila.kernel.messages import CrawlJob
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import NotReadyError, TemporaryError, UserError
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.scheduler.cluster.addresses.address_lock_topic import AddressLockTopic
from nephila.scheduler.cluster.addresses.shared_pace import SharedAddressQueue
from nephila.scheduler.cluster.commit_pipeline import CommitPipeline, LogBus, SchedulerCounters
from nephila.scheduler.cluster.explain_queries import ExplainQueryHandler
from nephila.scheduler.cluster.jobs.status_reporter import StatusReporter
from nephila.scheduler.cluster.missing_receipts import MissingReceipts
from nephila.scheduler.cluster.partition import OwnerState, PartitionOwner
from nephila.scheduler.cluster.request_liveness import RequestLiveness
from nephila.scheduler.cluster.shared_slots import SharedSlots
from nephila.scheduler.cluster.snapshot_store import SnapshotStore, lock
from nephila.scheduler.cluster.takeover import Takeover, claim
from nephila.scheduler.cluster.unknown_jobs import UnknownJobBuffer
from nephila.scheduler.cluster.wakeups import WakeupHeap
from nephila.scheduler.config import CREDITS, LOOK_S, SchedulerConfig
from nephila.scheduler.engine.dispatch import AHEAD
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters
from nephila.scheduler.frontier.job_state import Job
from nephila.scheduler.frontier.shares import Shares
from nephila.scheduler.frontier.tenants import tenants

log = logging.getLogger(__name__)

BLOCKED_S = 0.1
"""Interval at which a blocked partition checks whether it may emit."""
MIN_CONCURRENCY = 16
"""Least number of parallel fetches of a partition that has work."""
MIN_WINDOW = 64
SHARE_S = 1.0
"""Interval at which the capacity is shared again."""
SLICE_S = 0.05
"""Longest time that partitions take turns before the event loop runs other tasks."""
MAX_TURNS = 1000
"""Rounds of serving address queues in one pass of the loop."""


class ClusterScheduler:
    """All partitions of one member. The bus assigns and revokes them (`RebalanceListener`)."""

    def __init__(
        self,
        config: SchedulerConfig,
        bus: LogBus,
        clock: Clock,
        on_fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.config = config
        self.bus = bus
        self.clock = clock
        self.jobs: dict[str, CrawlJob] = {}
        """The latest desired state of every job, deleted ones included."""
        self.owners: dict[int, PartitionOwner] = {}
        self.counts = SchedulerCounters()
        self.on_fatal = on_fatal
        networks = AddressLimits(config.per_address, config.address_gap_s, config.networks, "scheduler.networks")
        self._pipelines: dict[int, CommitPipeline] = {}
        me = bus.member, int(clock.now() * 1000)
        self._slots = self._shared_slots(config) if config.member_concurrency else None
        self.address_queue = SharedAddressQueue(networks, clock.monotonic(), me, config.partitions, self._pipelines)
        self._paced = not networks.unlimited
        self.address_locks = AddressLockTopic(bus, clock, self.address_queue, self._on_address_locks_changed)
        self.request_liveness = RequestLiveness(self.owners, config, bus, clock)
        self.missing_receipts = MissingReceipts(self.owners, config, bus, clock)
        self.reporter = StatusReporter(self, bus, clock, config.status_interval_s)
        self._explain_queries = ExplainQueryHandler(self, config.partitions, bus.member, bus, clock)
        self._blobs = open_blobs(config.blobs) if config.blobs else None
        self._started = clock.now()
        self._taking_over: dict[int, object] = {}
        """Partitions being taken over → the call of `on_assigned` that does it."""
        self._due: list[PartitionOwner] = []
        self._turn_due = False
        self._wakeups = WakeupHeap()
        self._timer: tuple[float, Timer] | None = None
        self._share_timer: Timer | None = None
        self._depth_limit = -1
        self._unknown_jobs = UnknownJobBuffer(clock)
        self._emitting = True
        self._dead = False
        self._lock = -1

    # ---- life

    async def start(self) -> None:
        """Subscribe to the topics. Raises `UserError` when another scheduler uses the directory."""
        self._lock = lock(Path(self.config.directory))
        self.bus.subscribe(JOBS, "scheduler", self._on_job, credits=CREDITS)
        for topic, handler in (
            (SEEDS, self._on_seed),
            (OUTLINKS, self._on_outlinks),
            (OUTCOMES, self._on_outcome),
            (RECEIPTS, self._on_receipts),
        ):
            self.bus.subscribe(topic, "scheduler", handler, credits=CREDITS)
        for part in (
            *(self.reporter, self.request_liveness, self.missing_receipts),
            *(self.address_locks, self._explain_queries),
        ):
            part.start()
        self._share()

    @property
    def live_settings(self) -> Mapping[str, Callable[[Any], None]]:
        """What can be changed while it runs; None as value takes the default back."""
        return {DEPTH: self._set_depth}

    def _set_depth(self, depth: int | None) -> None:
        """Admit no links that lie deeper, in the partitions of this member."""
        self._depth_limit = -1 if depth is None else depth
        for owner in self.owners.values():
            owner.frontier.depth_limit = self._depth_limit

    async def reach(self) -> None:
        """Return when the snapshot store answers. Raises `NotReadyError`."""
        if self._blobs is not None:
            try:
                await asyncio.to_thread(check_reachable, self._blobs)
            except TemporaryError as error:
                raise NotReadyError(f"the blob store of snapshots does not answer: {error}") from None

    async def drain(self, grace_s: float) -> None:
        """Dispatch nothing more. The bus revokes the partitions afterwards and waits until they are published."""
        self._emitting = False
        for owner in self.owners.values():
            owner.enter(OwnerState.DRAINING)

    async def close(self) -> None:
        """Publish no more status. `on_revoking` finishes what the bus still revokes."""
        self._emitting = False
        await asyncio.gather(self.reporter.close(), self.request_liveness.close(), self.missing_receipts.close())
        self.address_locks.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self._share_timer is not None:
            self._share_timer.cancel()

    # ---- assigned and revoked partitions

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`: claim the partitions, restore them, serve them."""
        # A partition that is lost and assigned again meanwhile is taken over twice; the later one counts.
        token = object()
        self._taking_over |= dict.fromkeys(partitions, token)
        try:
            epochs = await claim(self.bus, sorted(partitions), self._started, self.clock.now())
            takeover = Takeover(
                self.bus, self.clock, self._new_owner, lambda p: self._taking_over.get(p) is token, self._abandon
            )
            owners = await takeover.run(epochs)
        except UserError as error:
            self.fatal(error)
            # Nothing of these partitions may be delivered until a person has acted.
            await asyncio.Event().wait()
        for owner in owners:
            if self._taking_over.get(owner.number) is token and not self._dead:
                del self._taking_over[owner.number]
                self._adopt(owner)
            else:
                self._abandon(owner)

    def _abandon(self, owner: PartitionOwner) -> None:
        for address in owner.drop():
            self.address_queue.end(address, self.clock.monotonic())

    def _new_owner(self, partition: int, epoch: int) -> PartitionOwner:
        files = SnapshotStore(Path(self.config.directory), partition, self.config.partitions, self._blobs, epoch)
        owner = PartitionOwner(
            self.config, files, self.bus, self.clock, self.address_queue, self.counts, self, self._slots
        )
        owner.frontier.depth_limit = self._depth_limit
        return owner

    def _adopt(self, owner: PartitionOwner) -> None:
        self.owners[owner.number] = owner
        self._pipelines[owner.number] = owner.pipeline
        if not self._emitting:
            owner.enter(OwnerState.DRAINING)
        else:
            owner.enter(OwnerState.ANNOUNCING if self._paced else OwnerState.SERVING)
        if self._paced:
            self.address_locks.own(owner.number, owner.epoch)
        for uid, job in list(owner.frontier.jobs.items()):
            if uid in self.jobs:
                owner.change_job(self.jobs[uid])
            else:
                self._publish_lost_job(job.spec)
        self.reporter.share_quotas()
        self._share_capacity()

    def _publish_lost_job(self, spec: CrawlJob) -> None:
        """The topic `jobs`, read to its end, does not have a job of the frontier. Deleted jobs stay in the topic, so it
        was deleted or its broker lost data."""
        log.warning(
            "the topic jobs has no job %r, and the frontier has it: the topic was deleted or its broker lost data; the "
            "job is published again in its generation %d; apply later changes again (nephila jobs apply)",
            spec.uid,
            spec.generation,
        )
        self.jobs[spec.uid] = spec
        self.bus.publish(JOBS, 0, spec)

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`: dispatch nothing more for them; return when everything accepted is published."""
        going = [self.owners[p] for p in partitions if p in self.owners]
        try:
            await asyncio.gather(*(owner.finish() for owner in going))
        finally:
            self.on_lost(partitions)

    def on_lost(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`: another member owns them."""
        for partition in partitions:
            self._taking_over.pop(partition, None)
            owner = self.owners.pop(partition, None)
            if owner is not None:
                del self._pipelines[partition]
                self._give_away(owner)
        self._unknown_jobs.drop(partitions)
        self._share_capacity()

    def _give_away(self, owner: PartitionOwner) -> None:
        if self._paced:
            self.address_locks.on_partition_lost(owner.number, owner.epoch, owner.drop())
        else:
            self._abandon(owner)

    # ---- in

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        known = self.jobs.get(job.uid)
        if known is None or known.generation <= job.generation or known.deleted:
            self.jobs[job.uid] = job
            for owner in self.owners.values():
                owner.change_job(job)
        delivery.ack()
        self._unknown_jobs.on_job_known(job.uid)

    def _job(self, delivery: Delivery, handler: Callable[[Delivery], None]) -> tuple[PartitionOwner, Job] | None:
        """The partition and the job of a delivery; None when the delivery is done, or waits for its job."""
        owner = self.owners.get(delivery.partition)
        uid = delivery.message.job
        spec = self.jobs.get(uid)
        if owner is None:
            return None  # the partition is lost: its next owner gets the message
        if spec is None:
            self._unknown_jobs.wait(uid, delivery, handler)
            return None
        if spec.deleted:
            owner.taken(delivery)
            return None
        fresh = uid not in owner.frontier.jobs
        job = owner.job(uid, spec)
        if fresh:
            for other in self.owners.values():
                known = other.frontier.jobs.get(uid)
                for place in list(known.scope.anchors) if known is not None else ():
                    owner.anchor(uid, place)
            self.reporter.soon(uid)
        return owner, job

    def _on_seed(self, delivery: Delivery) -> None:
        found = self._job(delivery, self._on_seed)
        if found is not None:
            found[0].seed(delivery, found[1])

    def _on_outlinks(self, delivery: Delivery) -> None:
        found = self._job(delivery, self._on_outlinks)
        if found is not None:
            found[0].outlinks(delivery)

    def _on_outcome(self, delivery: Delivery) -> None:
        owner = self.owners.get(delivery.partition)
        if owner is not None:
            owner.outcome(delivery)

    def _on_receipts(self, delivery: Delivery) -> None:
        owner = self.owners.get(delivery.partition)
        if owner is not None:
            owner.receipts(delivery)

    def anchored(self, owner: PartitionOwner, uid: str, place: str) -> None:
        """See `OwnerHost`: partitions of this program need not wait for the message."""
        for other in self.owners.values():
            if other is not owner:
                other.anchor(uid, place)

    # ---- turns

    def _on_address_locks_changed(self) -> None:
        """Serve partitions that are announced by now; hosts may be first in their address queues."""
        if self._dead:
            return
        for owner in self.owners.values():
            announcing = owner.state is OwnerState.ANNOUNCING
            if announcing and self.address_locks.may_fetch(owner.number, owner.epoch):
                owner.enter(OwnerState.SERVING)
                self.wake(owner)
        self._arm()

    def wake(self, owner: PartitionOwner) -> None:
        """See `OwnerHost`."""
        if owner.due or owner.lost:
            return
        owner.due = True
        self._due.append(owner)
        if not self._turn_due:
            self._turn_due = True
            self.clock.call_soon(self._turn)

    def _turn(self) -> None:
        """One pass: every due partition, and those whose server address has a free slot."""
        if self._dead:
            return
        now = self.clock.monotonic()
        try:
            for owner in self._woken(now):
                self.wake(owner)
            for _ in range(MAX_TURNS):
                called = self.address_queue.call(now)
                self._take_turns(now + SLICE_S)
                if self._due or not called:
                    break
        except Exception as error:
            self.fatal(error)
            return
        self._turn_due = False
        if self._due:
            self._turn_due = True
            self.clock.call_soon(self._turn)
        self._arm()
        self.address_locks.soon()

    def _take_turns(self, until: float) -> None:
        """Turns of due partitions, within the time slice: heartbeats wait meanwhile."""
        due, self._due = self._due, []
        for done, owner in enumerate(due, 1):
            owner.turn()
            self._note_wake(owner)
            if self.clock.monotonic() > until:
                self._due = due[done:] + self._due
                return

    def _woken(self, now: float) -> Iterator[PartitionOwner]:
        for owner in self._wakeups.pop_due(now):
            if owner.blocked:
                owner.advance()
            yield owner

    def _note_wake(self, owner: PartitionOwner) -> None:
        if owner.lost:
            return
        now = owner.frontier.time.now
        when = owner.dispatcher.next_event() if owner.state is OwnerState.SERVING else None
        if when is not None:
            when = min(max(when, now), now + LOOK_S)
        if owner.blocked:
            when = min(when, now + BLOCKED_S) if when is not None else now + BLOCKED_S
        self._wakeups.set(owner, when)

    def _arm(self) -> None:
        """Set the one timer."""
        instants = (self._wakeups.first, self.address_queue.next_ready() if self.owners else None)
        when = min((at for at in instants if at is not None), default=None)
        if when is None or (self._timer is not None and self._timer[0] == when):
            return
        if self._timer is not None:
            self._timer[1].cancel()
        self._timer = (when, self.clock.call_at(when, self._timer_fired))

    def _timer_fired(self) -> None:
        self._timer = None
        if not self._turn_due:
            self._turn_due = True
            self._turn()

    # ---- capacity

    def _shared_slots(self, config: SchedulerConfig) -> SharedSlots:
        known = tenants(config.tenants)
        shares = Shares(lambda tenant: known[tenant].share if tenant in known else 1.0)
        limit = config.member_concurrency + config.member_concurrency // AHEAD
        return SharedSlots(
            limit, shares, lambda: sum(len(one.in_flight.leases) for one in self.frontiers), self._wake_partition
        )

    def _wake_partition(self, number: int) -> None:
        if (owner := self.owners.get(number)) is not None:
            self.wake(owner)

    def _share(self) -> None:
        """Periodic: which partitions have work has changed."""
        for owner in self.owners.values():
            owner.check_snapshot_age()
        self._share_timer = self.clock.call_at(self.clock.monotonic() + SHARE_S, self._share)
        self._share_capacity()

    def _share_capacity(self) -> None:
        """Share the downloaders' capacity among the partitions that have work. O(partitions)."""
        busy = [owner for owner in self.owners.values() if owner.has_work]
        parts = max(len(busy), 1)
        room = self.config.member_concurrency or max(self.config.concurrency // parts, MIN_CONCURRENCY)
        window = max(self.config.window // parts, MIN_WINDOW)
        for owner in self.owners.values():
            frontier = owner.frontier
            more = room > frontier.concurrency or window > frontier.window
            frontier.set_limits(room, window)
            if more and frontier.in_flight.urls:
                self.wake(owner)

    def fatal(self, error: BaseException) -> None:
        """See `OwnerHost`."""
        self._dead = True
        if self.on_fatal is None:
            raise error
        self.on_fatal(error)

    # ---- read by metrics and status

    @property
    def unsettled(self) -> str:
        """Why partitions dispatch nothing yet, in one line."""
        waiting = sum(owner.state is OwnerState.ANNOUNCING for owner in self.owners.values())
        return f"{waiting} partitions are announced to the other schedulers" if waiting else ""

    @property
    def requests(self) -> int:
        """See `AnyScheduler`."""
        return self.counts.requests

    @property
    def errors(self) -> Counter[str]:
        """See `AnyScheduler`."""
        return self.counts.errors

    @property
    def commits(self) -> int:
        """See `AnyScheduler`."""
        return self.counts.commits

    @property
    def frontiers(self) -> list[Frontier]:
        """See `AnyScheduler`."""
        return [owner.frontier for owner in self.owners.values()]

    @property
    def known_jobs(self) -> int:
        """See `AnyScheduler`."""
        return sum(not job.deleted for job in self.jobs.values())

    @property
    def counters(self) -> FrontierCounters:
        """See `AnyScheduler`."""
        return self.counts.frontier

    @property
    def snapshot_age_s(self) -> float:
        """See `AnyScheduler`."""
        return max((owner.snapshot_age_s for owner in self.owners.values()), default=0.0)

    @property
    def log_bytes(self) -> int:
        """See `AnyScheduler`."""
        return sum(owner.log_bytes for owner in self.owners.values())


def build(
    config: SchedulerConfig, bus: LogBus, clock: Clock, on_fatal: Callable[[BaseException], None] | None = None
) -> ClusterScheduler:
    """The scheduler of a cluster."""
    return ClusterScheduler(config, bus, clock, on_fatal)
