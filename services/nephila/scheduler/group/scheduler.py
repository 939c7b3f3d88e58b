"""The scheduler of one group: some of the partitions of one machine, each with a log of its own.

    IN   jobs, seeds, outlinks, outcomes, receipts     OUT  requests, records, seeds of other partitions

A group is a process that also fetches and parses. Its partitions are a range of `PARTITIONS`, which the directory has
from its first day; with another number of groups the ranges change, and no partition does. Addresses and page budgets
are leased from the main process (`address_leases.py`, `page_grants.py`).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.bus.pipe.protocol import JobReport
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob, Outcome, QuotaUse
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.native import HostStore
from nephila.scheduler.config import CREDITS, SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.file_log import FileLog, FileSnapshots
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.engine.dispatch import AHEAD
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters, PartitionSlice
from nephila.scheduler.frontier.in_flight import InFlight
from nephila.scheduler.group.held_addresses import HeldAddresses, LeasedAddresses
from nephila.scheduler.group.page_grants import AHEAD as PAGES_AHEAD
from nephila.scheduler.group.page_grants import PagePool
from nephila.scheduler.group.partition_logs import PARTITIONS, directory_of
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.jobs.seen import new_seen
from nephila.scheduler.partition.address_table import PartitionView
from nephila.scheduler.partition.commit_pipeline import SchedulerCounters
from nephila.scheduler.partition.member import Member, MemberState
from nephila.scheduler.partition.owner import PartitionOwner
from nephila.scheduler.partition.owner_state import OwnerState
from nephila.scheduler.partition.ports import Build, OwnerEvents, Parts, SoleOwner
from nephila.scheduler.partition.shared_slots import SharedSlots
from nephila.scheduler.tenants.quota_uses import quota_uses
from nephila.scheduler.tenants.shares import shares_of

MIN_WINDOW = 64
LEAST_HOT_HOSTS = 256
_NOWHERE = -1
"""Stands for the partitions of all other groups."""


class GroupScheduler(Member):
    """All partitions of one group."""

    def __init__(
        self,
        config: SchedulerConfig,
        numbers: Sequence[int],
        bus: Bus,
        clock: Clock,
        held: HeldAddresses,
        *,
        count: int = PARTITIONS,
        on_wider: Callable[[str], None] = lambda uid: None,
        on_turn: Callable[[], None] = lambda: None,
        on_fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        """`numbers`: its partitions of `count`. `on_wider(uid)`: the scope of a job has a new anchor. `on_turn` is
        called after each pass."""
        logs = {number: CommitLog(directory_of(Path(config.directory), number)) for number in numbers}
        restarted_at = clock.monotonic() if any(log.exists for log in logs.values()) else -math.inf
        self.held = held
        self.table = LeasedAddresses(config.address_limits(), restarted_at, held)
        super().__init__(config, clock, SchedulerCounters(refused_seeds=deque()), self.table, on_fatal)
        self.bus = bus
        self.pools: dict[str, PagePool] = {}
        """Job → its grant."""
        self._budgeted: dict[str, None] = {}
        """Jobs with a page budget."""
        self._on_turn = on_turn
        self._left: dict[str, int] = {}
        """Job → pages of its grant that no partition used at the end of the last pass."""
        slots = SharedSlots(
            config.concurrency + config.concurrency // AHEAD,
            shares_of(config.tenants),
            lambda: sum([len(part.leases) for part in self._in_flight]),
            lambda number: self.wake(self.owners[number]),
        )
        self._files: dict[int, FileLog] = {}
        self._in_flight: list[InFlight] = []
        """Of each partition."""
        for number, log in logs.items():
            files = self._files[number] = FileLog(log, clock, config.fsync_interval_s, self.fatal)
            build = group_parts(config, PartitionSlice(number, count), len(logs), files, clock, self.table, on_wider)
            owner = self.owners[number] = PartitionOwner(build, bus, clock, self.counts, self, slots)
            self._in_flight.append(owner.frontier.in_flight)

    # ---- life

    def recover(self) -> Restored:
        """Rebuild the frontiers from their logs. Raises `UserError`."""
        total = Restored()
        for number, owner in self.owners.items():
            owner.begin_turn()
            for entry in self._files[number].file.recover():
                owner.replay(entry)
            restored = owner.recovered()
            total.urls += restored.urls
            total.leased += restored.leased
            total.commits += restored.commits
            total.attempts.update(restored.attempts)
            owner.begin(0, restored.to_republish)
        return total

    def begin_after(self, last_fetches: Mapping[str, int]) -> None:
        """The logs are lost, and the table of rows is not: these jobs number their fetches after those of the rows."""
        for owner in self.owners.values():
            owner.frontier.jobs.restore_counts(0, last_fetches)
            owner.take_snapshot()
            owner.advance()

    def start(self, *, held: bool) -> None:
        """Serve the partitions. `held`: dispatch nothing before `hold(False)`."""
        for owner in self.owners.values():
            owner.enter(OwnerState.HELD if held else OwnerState.SERVING)
            self.wake(owner)
        for topic, handler in (
            (JOBS, self._on_job),
            (SEEDS, self._on_seed),
            (OUTLINKS, self._on_outlinks),
            (OUTCOMES, lambda delivery: self.owners[delivery.partition].outcome(delivery)),
            (RECEIPTS, lambda delivery: self.owners[delivery.partition].receipts(delivery)),
        ):
            self.bus.subscribe(topic, "scheduler", handler, credits=CREDITS)

    def hold(self, held: bool) -> None:
        """Dispatch nothing while a change comes in; `held=False` continues."""
        for owner in self.owners.values():
            owner.hold(held)

    async def durable(self) -> None:
        """Return when everything received so far survives a power cut. Raises `UserError` when it cannot be written."""
        for owner in self.owners.values():
            await owner.settled()
        for files in self._files.values():
            await files.durable()

    async def close(self) -> None:
        """Write the pending changes and close the logs."""
        self.stop_dispatch()
        for files in self._files.values():
            await files.synced()
        for owner in self.owners.values():
            self.wake(owner)
        while self._due and not self.dead:
            self._pass()
        if not self.dead:
            for files in self._files.values():
                files.close()
            self._end()

    def _end(self) -> None:
        self.enter(MemberState.DEAD)
        self.cancel_timer()
        for owner in self.owners.values():
            if not owner.lost:
                owner.drop()

    def fatal(self, error: BaseException) -> None:
        """No log is written any more."""
        if self.dead:
            return
        for files in self._files.values():
            files.fail()
        self._end()
        if self.on_fatal is None:
            raise error
        self.on_fatal(error)

    # ---- in

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        if job.deleted:
            self.pools.pop(job.uid, None)
            self._left.pop(job.uid, None)
        else:
            self.pools.setdefault(job.uid, PagePool())
        if not job.deleted and spec_of(job).scope.max_pages:
            self._budgeted[job.uid] = None
        else:
            self._budgeted.pop(job.uid, None)
        for owner in self.owners.values():
            owner.put_job(job)
        owner.taken(delivery)

    def _on_seed(self, delivery: Delivery) -> None:
        owner = self.owners[delivery.partition]
        job = owner.frontier.jobs.get(delivery.message.job)
        if job is None:
            owner.taken(delivery)
        else:
            owner.seed(delivery, job)

    def _on_outlinks(self, delivery: Delivery) -> None:
        owner, links = self.owners[delivery.partition], delivery.message
        if links.parent_key:
            owner.outlinks(delivery)
        else:  # seeds of a file
            owner.seeds(links)
            owner.taken(delivery)

    def check_late_address(self, job: str, url_key: bytes, attempt: int, address: str) -> bool:
        """Whether a leased fetch may start on an address that was not known before; it counts there from now on."""
        for owner in self.owners.values():
            if (job, url_key) in owner.frontier.in_flight.urls:
                if owner.frontier.in_flight.start_late((job, url_key), attempt, address, owner.begin_turn()):
                    return True
                self.held.want(address)
        return False

    # ---- leases of the main process

    def address_granted(self, address: str, not_before: float) -> None:
        """The group alone fetches from this address."""
        self.table.granted(address, not_before, self.clock.monotonic())
        self._arm()

    def address_recalled(self, address: str) -> None:
        """Another group waits for this address."""
        self.held.recall(address)
        self.held.return_unused(self.table, self.clock.monotonic())

    def pages_granted(self, uid: str, pages: int, *, spent: bool) -> None:
        """The job may use so many further pages."""
        pool = self.pools.setdefault(uid, PagePool())
        pool.pages += pages
        pool.spent = spent
        for owner in self.owners.values():
            self._share_pages(owner, uid)

    def take_pages_back(self, uid: str) -> int:
        """Pages that no partition uses are returned; none while a turn is due, whose effects are in no log."""
        if self._due or uid not in self.pools:
            return 0
        return self.pools[uid].take_back(self.claimed(uid), sum(job.queue.waiting for job in self._parts(uid)))

    def claimed(self, uid: str) -> int:
        """Pages of a job's budget that the partitions use."""
        return sum(job.budget.claimed for job in self._parts(uid))

    def _parts(self, uid: str) -> list[Job]:
        return [owner.frontier.jobs[uid] for owner in self.owners.values() if uid in owner.frontier.jobs]

    def _share_pages(self, owner: PartitionOwner, uid: str) -> None:
        job = owner.frontier.jobs.get(uid)
        if job is None or not job.budget.max_pages:
            return
        pool, budget = self.pools[uid], job.budget
        quota = pool.left(self.claimed(uid)) + budget.claimed
        if (budget.quota, budget.is_spent_elsewhere) == (quota, pool.spent):
            return
        more = quota > (budget.quota or 0) or budget.is_spent_elsewhere != pool.spent
        budget.set_quota(quota, pool.spent)
        if more:
            owner.resume_job(job)

    # ---- quotas

    @property
    def has_quotas(self) -> bool:
        """Whether a job has quotas."""
        return any(frontier.quotas.jobs() for frontier in self.frontiers)

    def quota_uses(self) -> list[QuotaUse]:
        """What all partitions of the group have spent."""
        mine: dict[int, list[QuotaUse]] = {
            number: owner.frontier.quotas.report() for number, owner in self.owners.items()
        }
        return list(quota_uses((), {**mine, _NOWHERE: []})[_NOWHERE].values())

    def share_quotas(self, elsewhere: Sequence[QuotaUse]) -> None:
        """Hand to each partition what all others have spent; `elsewhere`: those of other groups."""
        mine = {number: owner.frontier.quotas.report() for number, owner in self.owners.items()}
        for number, uses in quota_uses([(_NOWHERE, elsewhere)], mine).items():
            self.owners[number].share_quotas(uses)

    # ---- turns

    def before_turn(self, owner: PartitionOwner) -> None:
        for uid in self._budgeted:
            self._share_pages(owner, uid)

    def after_turns(self) -> None:
        self.held.return_unused(self.table, self.clock.monotonic())
        for uid in self._budgeted:
            pool = self.pools[uid]
            left = pool.left(self.claimed(uid))
            if left > self._left.get(uid, 0):
                for owner in self.owners.values():
                    self._share_pages(owner, uid)
            self._left[uid] = left
        self._on_turn()

    # ---- views

    @property
    def idle(self) -> bool:
        """Nothing outstanding, and every input is committed."""
        return all(not owner.frontier.in_flight.urls and owner.quiet for owner in self.owners.values())

    def job_report(self, uid: str) -> JobReport:
        """A job in all partitions of the group."""
        jobs = self._parts(uid)
        ended: Counter[Outcome] = Counter()
        for job in jobs:
            ended.update(job.counts.ended)
        waiting = sum(job.queue.waiting for job in jobs)
        pool = self.pools.get(uid, PagePool())
        claimed = self.claimed(uid)
        budgeted = bool(self.max_pages(uid))
        return JobReport(
            uid=uid,
            generation=min((job.spec.generation for job in jobs), default=0),
            queued=sum(job.queue.length for job in jobs),
            fetchable=waiting,
            leased=sum(job.counts.leased for job in jobs),
            ended=dict(ended),
            claimed=claimed,
            requested=max(min(waiting, PAGES_AHEAD) - pool.left(claimed), 0) if budgeted and not pool.spent else 0,
            out_of_scope=sum(job.refused.out_of_scope for job in jobs),
            links_held=sum(len(job.refused.held) for job in jobs),
            links_lost=sum(job.refused.held.lost for job in jobs),
            quota=max((job.holds.text(Hold.QUOTA) for job in jobs), default=""),
            window=max((job.holds.text(Hold.WINDOW) for job in jobs), default=""),
            redirect_anchors=sorted({anchor for job in jobs for anchor in job.redirect_anchors}),
        )

    def max_pages(self, uid: str) -> int:
        """The page budget of a job, 0 without one."""
        return max((job.budget.max_pages for job in self._parts(uid)), default=0)

    @property
    def known_jobs(self) -> int:
        """Jobs that are not deleted."""
        return len(self.jobs())

    def anchors(self, uid: str) -> set[str]:
        """Anchors of a job's scope."""
        return {anchor for job in self._parts(uid) for anchor in job.scope.anchors}

    def jobs(self) -> dict[str, CrawlJob]:
        """The jobs of the logs."""
        return {uid: job.spec for frontier in self.frontiers for uid, job in frontier.jobs.items()}

    def next_fetch(self) -> float | None:
        """Monotonic instant of the next fetch that only waits for time; None when there is none."""
        instants = [self.table.next_ready()]
        for owner in self.owners.values():
            instants += [owner.dispatcher.next_fetch(), owner.frontier.holds.next_opening()]
        return min((at for at in instants if at is not None), default=None)

    def waiting_for_address(self) -> tuple[int, str]:
        """Hosts that wait until their server address takes one more fetch, and the address of most of them."""
        most = max(self.table.lined(), key=lambda address: len(self.table.line(address)), default="")
        return sum(len(frontier.readiness.waiting_for_address) for frontier in self.frontiers), most

    def waiting_hosts(self, most: int) -> list[tuple[str, float, int]]:
        """(host, seconds until its next fetch, queued URLs) of hosts that wait for time, the earliest first."""
        now = self.clock.monotonic()
        hosts = [
            (store.name(host), at - now, store.queued(host))
            for store in (frontier.store for frontier in self.frontiers)
            for host, at in store.scheduled(most)
        ]
        return sorted(hosts, key=lambda row: row[1])[:most]


def group_parts(
    config: SchedulerConfig,
    part: PartitionSlice,
    partitions: int,
    files: FileLog,
    clock: Clock,
    table: LeasedAddresses,
    on_wider: Callable[[str], None],
) -> Build:
    """Builds the parts of one of `partitions` partitions of a group."""
    directory = str(directory_of(Path(config.directory), part.number))
    own = msgspec.structs.replace(
        config,
        partitions=1,
        directory=directory,
        hot_hosts=max(config.hot_hosts // partitions, LEAST_HOT_HOSTS),
        hot_robots_bytes=config.hot_robots_bytes // partitions,
        window=max(config.window // partitions, MIN_WINDOW),
    )

    def build(owner: OwnerEvents, counters: FrontierCounters) -> Parts:
        Path(directory).mkdir(parents=True, exist_ok=True)
        frontier = Frontier(
            own,
            HostStore(directory),
            lambda number: new_seen(directory, number),
            partition_slice=part,
            addresses=PartitionView(table, owner.wake),
            on_wider=on_wider,
            on_anchors=owner.note_anchors,
            counters=counters,
            page_quota=0,
        )
        return Parts(frontier, files, SoleOwner(), FileSnapshots(files, clock, config.segment_bytes // partitions))

    return build
