"""The scheduler of a cluster: one frontier per partition that this member owns, taken over and handed on.

    IN   jobs, seeds, outlinks, outcomes, receipts     OUT  requests, records, frontier, seeds of other partitions

Each delivery goes to the owner object of its partition. Partitions of one program share the pace per server address and
the capacity of the downloaders. See `partition/member.py` for when a partition takes a turn, `partition/owner.py` for
how changes are published, and `takeover.py` for how a partition is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nephila.kernel.bus.contract import Delivery, LogBus
from nephila.kernel.layout import Layout
from nephila.kernel.live_settings import DEPTH
from nephila.kernel.messages import CrawlJob
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, TemporaryError, UserError
from nephila.kernel.runtime.waits import OneTimer, sleep
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.scheduler.config import CREDITS, SchedulerConfig
from nephila.scheduler.engine.dispatch import AHEAD
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.partition.commit_pipeline import CommitPipeline, SchedulerCounters
from nephila.scheduler.partition.member import Member, MemberState
from nephila.scheduler.partition.owner import PartitionOwner
from nephila.scheduler.partition.owner_state import OwnerState
from nephila.scheduler.partition.shared_slots import SharedSlots
from nephila.scheduler.politeness.lead import Lead
from nephila.scheduler.tenants.shares import shares_of
from nephila_stores.remote.blobs import check_reachable, open_blobs

from nephila_cluster.scheduler.addresses.address_lock_topic import AddressLockTopic
from nephila_cluster.scheduler.addresses.shared_pace import SharedAddressQueue
from nephila_cluster.scheduler.explain_queries import ExplainQueryHandler
from nephila_cluster.scheduler.forwarding import Forwarding
from nephila_cluster.scheduler.input_patience import InputPatience
from nephila_cluster.scheduler.jobs.status_reporter import StatusReporter
from nephila_cluster.scheduler.missing_receipts import MissingReceipts
from nephila_cluster.scheduler.request_liveness import RequestLiveness
from nephila_cluster.scheduler.snapshot_store import SnapshotStore, StaleLayoutError, lock
from nephila_cluster.scheduler.splits import Splits
from nephila_cluster.scheduler.takeover import Takeover, claim
from nephila_cluster.scheduler.topic_parts import topic_parts
from nephila_cluster.scheduler.unknown_jobs import UnknownJobBuffer

log = logging.getLogger(__name__)

MIN_CONCURRENCY = 16
"""Least number of parallel fetches of a partition that has work."""
MIN_WINDOW = 64
STALE_S, STALE_TRIES = 0.5, 60
"""Interval at which a takeover asks again for a layout that its log has and the topic `settings` has not."""
SHARE_S = 1.0
"""Interval at which the capacity is shared again."""


class ClusterScheduler(Member):
    """All partitions of one member. The bus assigns and revokes them (`RebalanceListener`)."""

    def __init__(
        self,
        config: SchedulerConfig,
        bus: LogBus,
        clock: Clock,
        on_fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        networks = config.address_limits()
        self._pipelines: dict[int, CommitPipeline] = {}
        me = bus.member, int(clock.now() * 1000)
        self.address_queue = SharedAddressQueue(networks, clock.monotonic(), me, bus.layout.count, self._pipelines)
        super().__init__(config, clock, SchedulerCounters(), self.address_queue, on_fatal)
        self.bus = bus
        self.jobs: dict[str, CrawlJob] = {}
        """The latest desired state of every job, deleted ones included."""
        self._slots = self._shared_slots(config) if config.member_concurrency else None
        self._paced = not networks.unlimited
        self.address_locks = AddressLockTopic(bus, clock, self.address_queue, self._on_address_locks_changed)
        self.request_liveness = RequestLiveness(self.owners, config, bus, clock)
        self.missing_receipts = MissingReceipts(self.owners, config, bus, clock)
        self.reporter = StatusReporter(self, bus, clock, config.status_interval_s)
        self._explain_queries = ExplainQueryHandler(self, bus.member, bus, clock)
        self._blobs = open_blobs(config.blobs) if config.blobs else None
        self._started = clock.now()
        self._taking_over: dict[int, object] = {}
        """Partitions being taken over → the call of `on_assigned` that does it."""
        self._claims: dict[int, asyncio.Future[dict[int, int]]] = {}
        """Partitions being taken over → their claim, which may still be on its way to the broker."""
        self._share_timer = OneTimer(self.clock, self._share)
        self._depth_limit = -1
        self._unknown_jobs = UnknownJobBuffer(clock, lambda: bus.answering_since)
        self.forwarding = Forwarding(bus)
        self.splits = Splits(bus, clock, self.owners, self._take_over, self._release)
        self._patience = InputPatience(bus, "scheduler")
        self._lead = Lead(bus.beat)
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
        self.bus.watch_layout(self._on_layout)
        self._share()

    def _on_layout(self) -> None:
        self.address_queue.lock.table.partitions = self.bus.layout.count
        self.splits.check()

    @property
    def live_settings(self) -> Mapping[str, Callable[[Any], None]]:
        """What can be changed while it runs; None as value takes the default back."""
        return {DEPTH: self._set_depth}

    def _set_depth(self, depth: int | None) -> None:
        """Hold links that lie deeper, in the partitions of this member."""
        self._depth_limit = -1 if depth is None else depth
        for owner in self.owners.values():
            owner.limit_depth(self._depth_limit)

    async def reach(self) -> None:
        """Return when the snapshot store answers. Raises `NotReadyError`."""
        if self._blobs is not None:
            try:
                await asyncio.to_thread(check_reachable, self._blobs)
            except TemporaryError as error:
                raise NotReadyError(f"the blob store of snapshots does not answer: {error}") from None

    async def close(self) -> None:
        """Publish no more status. `on_revoking` finishes what the bus still revokes."""
        self.stop_dispatch()
        await asyncio.gather(
            *(part.close() for part in (self.reporter, self.request_liveness, self.missing_receipts, self.splits))
        )
        self.address_locks.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        self._share_timer.cancel()

    # ---- assigned and revoked partitions

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """The scheduler claims the partitions, restores them and serves them. New ones follow when the partitions
        that they are a part of are split."""
        # A partition that is lost and assigned again meanwhile is taken over twice; the later one counts.
        token = object()
        self._taking_over |= dict.fromkeys(partitions, token)
        born = await self.splits.born(partitions, lambda p: self._taking_over.get(p) is token)
        for partition in partitions - born:
            if self._taking_over.get(partition) is token:
                del self._taking_over[partition]
        await self._restore(born, token)

    async def _take_over(self, partitions: frozenset[int]) -> None:
        token = object()
        self._taking_over |= dict.fromkeys(partitions, token)
        await self._restore(partitions, token)

    async def _restore(self, partitions: frozenset[int], token: object) -> None:
        try:
            owners = await self._claimed(partitions, lambda p: self._taking_over.get(p) is token)
        except UserError as error:
            self.fatal(error)
            # Nothing of these partitions may be delivered until a person has acted.
            await asyncio.Event().wait()
        for owner in owners:
            if self._taking_over.get(owner.number) is token and not self.dead:
                del self._taking_over[owner.number], self._claims[owner.number]
                self._adopt(owner)
            else:
                self._abandon(owner)

    async def _claimed(self, partitions: frozenset[int], serves: Callable[[int], bool]) -> list[PartitionOwner]:
        for _ in range(STALE_TRIES):
            layout = self.bus.layout
            # A claim of a partition that is lost by now would fence its owner.
            mine = sorted(filter(serves, partitions))
            claiming = asyncio.ensure_future(claim(self.bus, mine, layout, self._started, self.clock.now()))
            self._claims |= dict.fromkeys(mine, claiming)
            epochs = await claiming
            takeover = Takeover(self.bus, self.clock, partial(self._new_owner, layout), serves, self._abandon)
            try:
                return await takeover.run(epochs)
            except StaleLayoutError as error:
                log.info("%s: waiting for the setting", error)
                trouble = str(error)
            await sleep(self.clock, STALE_S)
        raise UserError(f"{trouble}; the topic settings has no such number: it is of another system, or was deleted")

    def _abandon(self, owner: PartitionOwner) -> None:
        for address in owner.drop():
            self.address_queue.end(address, self.clock.monotonic())

    def _new_owner(self, layout: Layout, partition: int, epoch: int) -> tuple[PartitionOwner, SnapshotStore]:
        store = SnapshotStore(Path(self.config.directory), partition, layout, self._blobs, epoch)
        build = topic_parts(self.config, store, self.bus, self.clock, self.address_queue, self._lead)
        return PartitionOwner(build, self.bus, self.clock, self.counts, self, self._slots), store

    def _adopt(self, owner: PartitionOwner) -> None:
        self.owners[owner.number] = owner
        self._pipelines[owner.number] = owner.pipeline
        if self.state is not MemberState.RUNNING:
            owner.enter(OwnerState.DRAINING)
        else:
            owner.enter(OwnerState.ANNOUNCING if self._paced else OwnerState.SERVING)
        if self._paced:
            self.address_locks.own(owner.number, owner.epoch)
        owner.limit_depth(self._depth_limit)
        for uid, job in list(owner.frontier.jobs.items()):
            if uid in self.jobs:
                owner.put_job(self.jobs[uid])
            else:
                self._publish_lost_job(job.spec)
        self.reporter.share_quotas()
        self._share_capacity()
        self.splits.deliver(owner.number)
        self.splits.check()

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
        """Nothing more is dispatched for the partitions; returns when everything accepted is published."""
        self.splits.leave(partitions)
        going = [self.owners[p] for p in partitions if p in self.owners]
        claims = {self._claims[p] for p in partitions if p in self._claims}
        for partition in partitions:
            self._taking_over.pop(partition, None)  # nothing of it is claimed from now on
        try:
            # A claim that the broker takes after that of the next owner would fence the next owner.
            await asyncio.gather(*(owner.finish() for owner in going), *map(asyncio.shield, claims))
        finally:
            self.on_lost(partitions)

    def on_lost(self, partitions: frozenset[int]) -> None:
        """Another member owns the partitions."""
        self.splits.drop(partitions)
        for partition in partitions:
            self._taking_over.pop(partition, None)
            self._claims.pop(partition, None)
            if (owner := self.owners.get(partition)) is not None:
                self._release(owner)
        self._unknown_jobs.drop(partitions)
        self._share_capacity()

    def _release(self, owner: PartitionOwner) -> None:
        """The partition has another owner from now on, or will have one."""
        del self.owners[owner.number], self._pipelines[owner.number]
        if self._paced:
            self.address_locks.on_partition_lost(owner.number, owner.epoch, owner.drop())
        else:
            self._abandon(owner)

    # ---- in

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        job_before = self.jobs.get(job.uid)
        if job_before is None or job_before.generation <= job.generation or job_before.deleted:
            self.jobs[job.uid] = job
            self.reporter.on_job(job.uid)
            self._patience.on_job(job)
            for owner in self.owners.values():
                if job.uid in owner.frontier.jobs:
                    owner.put_job(job)
        delivery.ack()
        self._unknown_jobs.on_job_known(job.uid)

    def _job(self, delivery: Delivery, handler: Callable[[Delivery], None]) -> tuple[PartitionOwner, Job] | None:
        """The partition and the job of a delivery; None when the delivery is done, or waits for its job."""
        if self.splits.keeps(delivery, handler):
            return None
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
        if fresh:
            owner.put_job(spec)
            for other in self.owners.values():
                job_there = other.frontier.jobs.get(uid)
                if job_there is not None:
                    owner.anchors(uid, list(job_there.scope.anchors))
            self.reporter.soon(uid)
        return owner, owner.frontier.jobs[uid]

    def _on_seed(self, delivery: Delivery) -> None:
        target = self._job(delivery, self._on_seed)
        if target is not None:
            target[0].seed(delivery, target[1])

    def _on_outlinks(self, delivery: Delivery) -> None:
        target = self._job(delivery, self._on_outlinks)
        if target is not None and not self.forwarding.outlinks(target[0], delivery):
            target[0].outlinks(delivery)

    def _on_outcome(self, delivery: Delivery) -> None:
        if self.splits.keeps(delivery, self._on_outcome):
            return
        owner = self.owners.get(delivery.partition)
        if owner is not None and not self.forwarding.outcome(owner, delivery):
            owner.outcome(delivery)

    def _on_receipts(self, delivery: Delivery) -> None:
        if self.splits.keeps(delivery, self._on_receipts):
            return
        owner = self.owners.get(delivery.partition)
        if owner is not None:
            self.forwarding.receipts(owner, delivery, owner.receipts)

    # ---- turns

    def _on_address_locks_changed(self) -> None:
        """Serve partitions that are announced by now; hosts may be first in their address queues."""
        if self.dead:
            return
        for owner in self.owners.values():
            announcing = owner.state is OwnerState.ANNOUNCING
            if announcing and self.address_locks.may_fetch(owner.number, owner.epoch):
                owner.enter(OwnerState.SERVING)
                self.wake(owner)
        self._arm()

    def after_turns(self) -> None:
        self.address_locks.soon()

    def turn_at(self, when: float) -> float:
        return self.bus.beat.next(when)

    # ---- capacity

    def _shared_slots(self, config: SchedulerConfig) -> SharedSlots:
        limit = config.member_concurrency + config.member_concurrency // AHEAD
        return SharedSlots(
            limit,
            shares_of(config.tenants),
            lambda: sum(frontier.in_flight.slots for frontier in self.frontiers),
            self._wake_partition,
        )

    def _wake_partition(self, number: int) -> None:
        if (owner := self.owners.get(number)) is not None:
            self.wake(owner)

    def _share(self) -> None:
        """Periodic: which partitions have work has changed."""
        for owner in self.owners.values():
            owner.check_snapshot_age()
        self._share_timer.start(SHARE_S)
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

    # ---- read by metrics and status

    @property
    def unsettled(self) -> str:
        """Why partitions dispatch nothing yet, in one line."""
        waiting = sum(owner.state is OwnerState.ANNOUNCING for owner in self.owners.values())
        return f"{waiting} partitions are announced to the other schedulers" if waiting else ""

    @property
    def known_jobs(self) -> int:
        return sum(not job.deleted for job in self.jobs.values())


def build(
    config: SchedulerConfig, bus: LogBus, clock: Clock, on_fatal: Callable[[BaseException], None] | None = None
) -> ClusterScheduler:
    """The scheduler of a cluster."""
    return ClusterScheduler(config, bus, clock, on_fatal)
