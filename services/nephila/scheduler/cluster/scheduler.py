"""The scheduler over a broker: one frontier for each partition that is this member's, taken over and handed on.

IN   jobs, seeds, outlinks, outcomes, receipts     OUT  requests, records, frontier, seeds of other partitions

A delivery goes to the shard of its partition. Shards to which something has happened take a turn in the next pass of
the loop, and those whose time has come: one timer for all of them, and none that has nothing to do costs anything.
What they share is the pace by server address, and the room that the downloaders have. How a partition's changes
get out is `shard.py`, how it comes here is `takeover.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nephila.kernel.blobs import open_blobs, reach
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import CrawlJob, Outcome
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import NotReadyError, TemporaryError, UserError
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.scheduler.cluster.addresses.address_lock_topic import TurnDesk
from nephila.scheduler.cluster.addresses.shared_pace import Lines
from nephila.scheduler.cluster.commit_pipeline import Counts, Gates, Outside
from nephila.scheduler.cluster.explain_queries import Asked
from nephila.scheduler.cluster.jobs.status_reporter import Reporter
from nephila.scheduler.cluster.partition import Shard
from nephila.scheduler.cluster.request_liveness import Listener
from nephila.scheduler.cluster.snapshot_store import ShardFiles, lock
from nephila.scheduler.cluster.takeover import Takeover, claim
from nephila.scheduler.cluster.unknown_jobs import Strangers
from nephila.scheduler.cluster.wakeups import WakeupHeap
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.job_state import Job
from nephila.scheduler.standalone import CREDITS, LOOK_S

log = logging.getLogger(__name__)

BLOCKED_S = 0.1
"""Before it is asked again whether this member may still speak."""
LEAST_ROOM = 16
"""Fetches that every partition with something to do may have at once."""
LEAST_WINDOW = 64
SHARE_S = 1.0
"""How often room is shared out anew."""
SLICE_S = 0.05
"""How long partitions take turns before somebody else may do something."""
MAX_TURNS = 1000
"""Rounds of serving lines of server addresses in one pass of the loop."""


class Shards:
    """See the module; the bus tells it which partitions come and go (`RebalanceListener`)."""

    def __init__(self, config: SchedulerConfig, bus: Outside, clock: Clock) -> None:
        self.config = config
        self.bus = bus
        self.clock = clock
        self.jobs: dict[str, CrawlJob] = {}
        """Every job as it was told last, deleted ones too."""
        self.shards: dict[int, Shard] = {}
        self.counts = Counts()
        self.on_fatal: Callable[[BaseException], None] | None = None
        networks = AddressLimits(config.per_address, config.address_gap_s, config.networks, "scheduler.networks")
        self._gates: dict[int, Gates] = {}
        me = bus.member, int(clock.now() * 1000)
        self.lines = Lines(networks, clock.monotonic(), me, config.partitions, self._gates)
        self._paced = not networks.unlimited
        self.turns = TurnDesk(bus, clock, self.lines, self._turns_changed)
        self.listener = Listener(self.shards, config, bus, clock)
        self.reporter = Reporter(self, bus, clock, config.status_interval_s)
        self._asked = Asked(self, config.partitions, bus.member, bus, clock)
        self._blobs = open_blobs(config.blobs) if config.blobs else None
        self._started = clock.now()
        self._coming: dict[int, object] = {}
        """Partitions that are being taken over, and which call of `on_assigned` does it."""
        self._due: list[Shard] = []
        self._turn_due = False
        self._wakes = WakeupHeap()
        self._timer: tuple[float, Timer] | None = None
        self._share_timer: Timer | None = None
        self._strangers = Strangers(clock)
        self._emitting = True
        self._dead = False
        self._lock = -1

    # ---- life

    async def start(self) -> None:
        """Read the topics; partitions come by themselves. Raises `UserError` when the directory is another's."""
        self._lock = lock(Path(self.config.directory))
        self.bus.subscribe(JOBS, "scheduler", self._on_job, credits=CREDITS)
        for topic, handler in (
            (SEEDS, self._on_seed),
            (OUTLINKS, self._on_outlinks),
            (OUTCOMES, self._on_outcome),
            (RECEIPTS, self._on_receipts),
        ):
            self.bus.subscribe(topic, "scheduler", handler, credits=CREDITS)
        for part in (self.reporter, self.listener, self.turns, self._asked):
            part.start()
        self._share()

    async def reach(self) -> None:
        """Return when the store of snapshots answers. Raises `NotReadyError`."""
        if self._blobs is not None:
            try:
                await asyncio.to_thread(reach, self._blobs)
            except TemporaryError as error:
                raise NotReadyError(f"the blob store of snapshots does not answer: {error}") from None

    async def drain(self, grace_s: float) -> None:
        """Hand out nothing more; the bus takes the partitions back afterwards, and waits for what is on its way."""
        self._emitting = False
        for shard in self.shards.values():
            shard.stopped = True

    async def close(self) -> None:
        """Tell nothing more; what the bus still hands back in `on_revoking` is finished there."""
        self._emitting = False
        await asyncio.gather(self.reporter.close(), self.listener.close())
        self.turns.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self._share_timer is not None:
            self._share_timer.cancel()

    # ---- partitions come and go

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`: claim them, restore them, go on."""
        # What is lost and gained again meanwhile is taken over twice, and the later one counts.
        token = object()
        self._coming |= dict.fromkeys(partitions, token)
        try:
            epochs = await claim(self.bus, sorted(partitions), self._started, self.clock.now())
            takeover = Takeover(
                self.bus, self.clock, self._new_shard, lambda p: self._coming.get(p) is token, self._discard
            )
            shards = await takeover.run(epochs)
        except UserError as error:
            self.fatal(error)
            # Nothing of these partitions may be delivered: the program ends, or a person has to look.
            await asyncio.Event().wait()
        for shard in shards:
            if self._coming.get(shard.number) is token and not self._dead:
                del self._coming[shard.number]
                self._adopt(shard)
            else:
                self._discard(shard)

    def _discard(self, shard: Shard) -> None:
        for address in shard.drop():
            self.lines.end(address, self.clock.monotonic())

    def _new_shard(self, partition: int, epoch: int) -> Shard:
        files = ShardFiles(Path(self.config.directory), partition, self.config.partitions, self._blobs, epoch)
        return Shard(self.config, files, self.bus, self.clock, self.lines, self.counts, self)

    def _adopt(self, shard: Shard) -> None:
        self.shards[shard.number] = shard
        self._gates[shard.number] = shard.gates
        shard.waits = self._paced
        shard.stopped = shard.waits or not self._emitting
        if shard.waits:
            self.turns.own(shard.number, shard.epoch)
        for uid in list(shard.frontier.jobs):
            if uid in self.jobs:
                shard.change_job(self.jobs[uid])
        self._divide()

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`: hand out nothing more of them, let go when all that was taken is out."""
        going = [self.shards[p] for p in partitions if p in self.shards]
        try:
            await asyncio.gather(*(shard.finish() for shard in going))
        finally:
            self.on_lost(partitions)

    def on_lost(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`: they are another's."""
        for partition in partitions:
            self._coming.pop(partition, None)
            shard = self.shards.pop(partition, None)
            if shard is not None:
                del self._gates[partition]
                self._give_away(shard)
        self._strangers.on_lost(partitions)
        self._divide()

    def _give_away(self, shard: Shard) -> None:
        if self._paced:
            self.turns.give_away(shard.number, shard.epoch, shard.drop())
        else:
            self._discard(shard)

    # ---- in

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        known = self.jobs.get(job.uid)
        if known is None or known.generation <= job.generation or known.deleted:
            self.jobs[job.uid] = job
            for shard in self.shards.values():
                shard.change_job(job)
        delivery.ack()
        self._strangers.told(job.uid)

    def _job(self, delivery: Delivery, handler: Callable[[Delivery], None]) -> tuple[Shard, Job] | None:
        """Where a seed or links belong; None when they need not be looked at, or wait for their job."""
        shard = self.shards.get(delivery.partition)
        uid = delivery.message.job
        spec = self.jobs.get(uid)
        if shard is None:
            return None  # the partition is lost: it comes again where it is
        if spec is None:
            self._strangers.wait(uid, delivery, handler)
            return None
        if spec.deleted:
            shard.taken(delivery)
            return None
        fresh = uid not in shard.frontier.jobs
        job = shard.job(uid, spec)
        if fresh:
            for other in self.shards.values():
                known = other.frontier.jobs.get(uid)
                for place in list(known.scope.anchors) if known is not None else ():
                    shard.anchor(uid, place)
            self.reporter.soon(uid)
        return shard, job

    def _on_seed(self, delivery: Delivery) -> None:
        found = self._job(delivery, self._on_seed)
        if found is not None:
            found[0].seed(delivery, found[1])

    def _on_outlinks(self, delivery: Delivery) -> None:
        found = self._job(delivery, self._on_outlinks)
        if found is not None:
            found[0].outlinks(delivery)

    def _on_outcome(self, delivery: Delivery) -> None:
        shard = self.shards.get(delivery.partition)
        if shard is not None:
            shard.outcome(delivery)

    def _on_receipts(self, delivery: Delivery) -> None:
        shard = self.shards.get(delivery.partition)
        if shard is not None:
            shard.receipts(delivery)

    def anchored(self, shard: Shard, uid: str, place: str) -> None:
        """See `Owner`: those that are here need not wait for the message."""
        for other in self.shards.values():
            if other is not shard:
                other.anchor(uid, place)

    # ---- turns

    def _turns_changed(self) -> None:
        """What everybody knows to be here may begin; hosts may be next in their lines."""
        if self._dead:
            return
        for shard in self.shards.values():
            if shard.waits and self._emitting and self.turns.may_begin(shard.number, shard.epoch):
                shard.waits = shard.stopped = False
                self.wake(shard)
        self._arm()

    def wake(self, shard: Shard) -> None:
        """See `Owner`."""
        if shard.due or shard.dead:
            return
        shard.due = True
        self._due.append(shard)
        if not self._turn_due:
            self._turn_due = True
            self.clock.call_soon(self._turn)

    def _turn(self) -> None:
        """One pass: every shard that is due, and those whose server address has room."""
        if self._dead:
            return
        now = self.clock.monotonic()
        try:
            for shard in self._woken(now):
                self.wake(shard)
            for _ in range(MAX_TURNS):
                called = self.lines.call(now)
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
        self.turns.soon()

    def _take_turns(self, until: float) -> None:
        """Those that are due, as long as there is time: heartbeats wait meanwhile."""
        due, self._due = self._due, []
        for done, shard in enumerate(due, 1):
            shard.turn()
            self._note_wake(shard)
            if self.clock.monotonic() > until:
                self._due = due[done:] + self._due
                return

    def _woken(self, now: float) -> Iterator[Shard]:
        for shard in self._wakes.come(now):
            if shard.blocked:
                shard.advance()
            yield shard

    def _note_wake(self, shard: Shard) -> None:
        if shard.dead:
            return
        now = shard.frontier.now
        when = shard.dispatcher.next_event() if not shard.stopped else None
        if when is not None:
            when = min(max(when, now), now + LOOK_S)
        if shard.blocked:
            when = min(when, now + BLOCKED_S) if when is not None else now + BLOCKED_S
        self._wakes.set(shard, when)

    def _arm(self) -> None:
        """Set the one timer."""
        instants = (self._wakes.first, self.lines.next_ready() if self.shards else None)
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

    # ---- room

    def _share(self) -> None:
        """Now and then: who has something to do has changed."""
        for shard in self.shards.values():
            shard.look_at_age()
        self._share_timer = self.clock.call_at(self.clock.monotonic() + SHARE_S, self._share)
        self._divide()

    def _divide(self) -> None:
        """Share the downloaders' room out among the partitions that have something to do. O(partitions)."""
        busy = [shard for shard in self.shards.values() if shard.has_work]
        parts = max(len(busy), 1)
        room = max(self.config.concurrency // parts, LEAST_ROOM)
        window = max(self.config.window // parts, LEAST_WINDOW)
        for shard in self.shards.values():
            frontier = shard.frontier
            more = room > frontier.concurrency or window > frontier.window
            frontier.concurrency, frontier.window = room, window
            if more and frontier.outstanding:
                self.wake(shard)

    def fatal(self, error: BaseException) -> None:
        """See `Owner`."""
        self._dead = True
        if self.on_fatal is None:
            raise error
        self.on_fatal(error)

    # ---- seen from outside

    def jobs_here(self) -> Iterable[Job]:
        """The jobs of all shards, each as often as it has a partition."""
        return (job for shard in self.shards.values() for job in shard.frontier.jobs.values())

    @property
    def unsettled(self) -> str:
        """Why partitions that are here hand nothing out yet, in one line."""
        waiting = sum(shard.waits for shard in self.shards.values())
        return f"{waiting} partitions are announced to the other schedulers" if waiting else ""

    @property
    def queued(self) -> int:
        """URLs waiting in queues."""
        return sum(job.queued for job in self.jobs_here())

    def ended(self) -> Counter[str]:
        """URLs that have ended, by outcome."""
        found: Counter[Outcome] = Counter()
        for job in self.jobs_here():
            found.update(job.ended)
        return Counter({outcome.name.lower(): count for outcome, count in found.items()})

    def total(self, read: Callable[[Shard], int]) -> int:
        """The sum of something over all shards."""
        return sum(map(read, self.shards.values()))


def build(config: SchedulerConfig, bus: Outside, clock: Clock) -> Shards:
    """The scheduler of a system, with its real parts."""
    return Shards(config, bus, clock)
