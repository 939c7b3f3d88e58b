"""The scheduler service of one program: a member with one partition, whose log is files.

IN   jobs, seeds, outlinks (what to crawl), outcomes (a fetch has ended), receipts (a URL is durable)

OUT  requests (at most `window` without receipt), records (terminal rows of URLs without a page)

Handlers only change the frontier. Once per pass of the event loop the partition takes a turn (`partition/owner.py`):
it dispatches URLs of ready hosts, writes all changes as one group of commits, and only then publishes and acknowledges.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.messages import Outcome, Outlinks, Quarantine
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.scheduler.config import CREDITS, SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.file_log import FileLog, FileSnapshots
from nephila.scheduler.durability.recovery import open_frontier
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.engine.dispatch import Slots
from nephila.scheduler.engine.exclusion_trial import ExclusionTrial, Partition
from nephila.scheduler.engine.forget_urls import Forgotten, forget_urls
from nephila.scheduler.engine.host_pace_changes import HostAction, change_host_pace
from nephila.scheduler.engine.refetch import Refetch
from nephila.scheduler.engine.release_quarantine import release_quarantine
from nephila.scheduler.frontier.frontier import FrontierCounters
from nephila.scheduler.partition.commit_pipeline import SchedulerCounters
from nephila.scheduler.partition.member import Member, MemberState
from nephila.scheduler.partition.owner import PartitionOwner
from nephila.scheduler.partition.owner_state import OwnerState
from nephila.scheduler.partition.ports import Build, OwnerEvents, Parts, SoleOwner
from nephila.scheduler.recrawl.freshness import measure

WAITING_SHOWN = 10_000
"""Hosts listed when a crawl ends because everything left waits too long."""
SAMPLED = 10_000
"""States that freshness is estimated from."""


def file_parts(
    config: SchedulerConfig,
    files: FileLog,
    clock: Clock,
    rng: random.Random | None = None,
) -> Build:
    """Builds the parts of a partition on files: one owner, and leases that end with the program."""

    def build(owner: OwnerEvents, counters: FrontierCounters) -> Parts:
        frontier = open_frontier(
            config,
            rng,
            restarted_at=clock.monotonic() if files.file.exists else -math.inf,
            counters=counters,
        )
        return Parts(frontier, files, SoleOwner(), FileSnapshots(files, clock, config.segment_bytes))

    return build


class Scheduler(Member):
    """One instance owns all partitions of one program, as one slice with one log."""

    def __init__(
        self,
        config: SchedulerConfig,
        bus: Bus,
        clock: Clock,
        rng: random.Random | None = None,
        *,
        on_turn: Callable[[], None] | None = None,
        on_fatal: Callable[[BaseException], None] | None = None,
        slots: Slots | None = None,
    ) -> None:
        """`on_turn` is called after each turn; the program shows progress and ends the crawl
        there. `on_fatal` is called once, when the log can no longer be written. `slots` chooses the job of each fetch;
        None: by the shares of the jobs."""
        super().__init__(config, clock, SchedulerCounters(refused_seeds=deque()), on_fatal=on_fatal)
        self.bus = bus
        self.log = CommitLog(Path(config.directory))
        self.files = FileLog(self.log, clock, config.fsync_interval_s, self.fatal)
        self._restored: Restored | None = None
        self.on_turn = on_turn
        build = file_parts(config, self.files, clock, rng)
        self.partition = PartitionOwner(build, bus, clock, self.counts, self, slots)
        self.owners[self.partition.number] = self.partition
        self.frontier = self.partition.frontier
        self.dispatcher = self.partition.dispatcher

    # ---- life

    def recover(self) -> Restored:
        """Rebuild the frontier from its log, once; later calls return the same. Raises `UserError`."""
        if self._restored is None:
            self.partition.begin_turn()
            for entry in self.log.recover():
                self.partition.replay(entry)
            self._restored = self.partition.recovered()
        return self._restored

    def begin_after(self, last_fetches: Mapping[str, int]) -> None:
        """The log is lost, and the table of rows is not. These jobs number their fetches from the highest number of a
        row, so that the row stays and later fetches count. Before `start`."""
        later = {uid: number - 1 for uid, number in last_fetches.items() if number > 1}
        if later and not self.recover().commits:
            self.frontier.jobs.restore_counts(0, later)
            self.log.open()
            self.snapshot()

    @property
    def all_ended(self) -> dict[str, int] | None:
        """Ended URLs by job, each with a durable row; None without a log."""
        if not self.recover().commits:
            return None
        return {uid: sum(job.counts.ended.values()) for uid, job in self.frontier.jobs.items()}

    async def start(self) -> None:
        """Recover the frontier, unless that is done, and subscribe to the topics."""
        partition = self.partition
        partition.begin(0, self.recover().to_republish)
        if partition.state is OwnerState.LOADING:
            partition.enter(OwnerState.SERVING)
        for topic, handler in (
            (JOBS, self._on_job),
            (SEEDS, self._on_seed),
            (OUTLINKS, partition.outlinks),
            (OUTCOMES, partition.outcome),
            (RECEIPTS, partition.receipts),
        ):
            self.bus.subscribe(topic, "scheduler", handler, credits=CREDITS)

    def hold(self, held: bool) -> None:
        """Stop dispatching while the seeds of a changed scope come in; `held=False` continues."""
        self.partition.hold(held)

    async def close(self) -> None:
        """Write the pending changes and close the log."""
        self.stop_dispatch()
        await self.files.synced()
        if not self.dead:
            self.wake(self.partition)
            self._pass()
        if not self.dead:
            self.files.close()
            self._end()

    def _end(self) -> None:
        self.enter(MemberState.DEAD)
        self.cancel_timer()
        if not self.partition.lost:
            self.partition.drop()

    def fatal(self, error: BaseException) -> None:
        """The member refuses everything that waits for the disk."""
        self.files.fail()
        self._end()
        super().fatal(error)

    def snapshot(self) -> None:
        """Write a snapshot and start a new segment of the log; nothing may be pending."""
        self.partition.take_snapshot()
        self.partition.advance()

    async def durable(self) -> None:
        """Return when everything received so far survives a power cut. Raises `UserError` when it cannot be written."""
        await self.partition.settled()
        await self.files.durable()

    def after_turns(self) -> None:
        if self.on_turn is not None:
            self.on_turn()

    # ---- in

    def _on_job(self, delivery: Delivery) -> None:
        self.partition.put_job(delivery.message)
        self.partition.taken(delivery)

    def _on_seed(self, delivery: Delivery) -> None:
        job = self.frontier.jobs.get(delivery.message.job)
        if job is None:
            self.partition.taken(delivery)
        else:
            self.partition.seed(delivery, job)

    def add_seeds(self, links: Outlinks) -> Receipt:
        """Admit seeds of a file, packed. They are durable as soon as the turn that commits them is."""
        self.partition.seeds(links)
        return Receipt(0)

    def refetch(self, uid: str) -> Refetch | None:
        """An object that queues ended URLs of a job again; None for an unknown job. Hold the scheduler meanwhile, and
        call `refetched` after each part, which is one commit."""
        job = self.frontier.jobs.get(uid)
        self.partition.begin_turn()
        return Refetch(self.dispatcher, job) if job is not None else None

    def refetched(self) -> None:
        """A part was queued; a turn commits it."""
        self.partition.begin_turn()
        self.partition.wake()

    # ---- views

    @property
    def known_jobs(self) -> int:
        return len(self.frontier.jobs)

    @property
    def queued(self) -> int:
        """Queued URLs of all jobs."""
        return sum(job.queue.length for job in self.frontier.jobs.values())

    @property
    def idle(self) -> bool:
        """Nothing outstanding, and every input is committed."""
        return not self.frontier.in_flight.urls and self.partition.quiet

    @property
    def refused_seeds(self) -> list[tuple[str, str]]:
        """(URL, reason) of the seeds that were refused."""
        return list(self.counts.refused_seeds)

    def take_refused_seeds(self) -> list[tuple[str, str]]:
        """(URL, reason) of the seeds that were refused since the last call."""
        refused = self.refused_seeds
        self.counts.refused_seeds.clear()
        return refused

    def ended(self, job: str) -> Counter[Outcome]:
        """Ended URLs of a job by outcome."""
        state = self.frontier.jobs.get(job)
        return state.counts.ended if state is not None else Counter()

    def quarantines(self, job: str) -> list[Quarantine]:
        """Path patterns that were closed for a job as traps, released ones too."""
        state = self.frontier.jobs.get(job)
        return list(state.quarantines.values()) if state is not None else []

    def release(self, job: str, host: str, pattern: str) -> bool:
        """Release a quarantine for good; False when that pattern is not closed."""
        self.partition.begin_turn()
        if not release_quarantine(self.frontier, job, host, pattern):
            return False
        self.partition.wake()
        return True

    def change_host_pace(self, host: str, action: HostAction, seconds: float) -> bool:
        """Change the pace of a host by a person's request; False for an unknown host."""
        self.partition.begin_turn()
        if not change_host_pace(self.frontier, host, action, seconds):
            return False
        self.partition.wake()
        return True

    def try_exclusion(self, job: str, exclude: Sequence[str]) -> ExclusionTrial | None:
        """A walk that tells which queued URLs of a job these expressions would remove; None without the job. Raises
        `UsageError` for an expression that is not one."""
        state = self.frontier.jobs.get(job)
        return ExclusionTrial([Partition(self.frontier, state)], exclude, self.clock) if state is not None else None

    def forget(self, job: str, urls: Iterable[tuple[str, Outcome]]) -> Forgotten | None:
        """Forget URLs of a job, each with how it has ended; None without the job."""
        self.partition.begin_turn()
        state = self.frontier.jobs.get(job)
        if state is None:
            return None
        forgotten = forget_urls(self.dispatcher, state, urls)
        if forgotten.forgotten:
            self.partition.wake()
        return forgotten

    def freshness(self, job: str) -> dict[str, Any] | None:
        """Age and freshness of a job's copies, where pages are fetched again."""
        state = self.frontier.jobs.get(job)
        if state is None or not state.compiled.recrawl.active or not len(state.due_table):
            return None
        sample = state.due_table.sample(SAMPLED)
        return msgspec.structs.asdict(measure(sample, self.clock.now(), state.compiled.recrawl.rate))

    @property
    def fetchable(self) -> int:
        """Queued URLs, without those on hosts whose budget is spent."""
        return sum(job.queue.waiting for job in self.frontier.jobs.values())

    def waiting_hosts(self) -> list[tuple[str, float, int]]:
        """(host, seconds until its next fetch, queued URLs) of hosts that wait for time, the earliest first."""
        now, store = self.clock.monotonic(), self.frontier.store
        waiting = [(store.name(host), at - now, store.queued(host)) for host, at in store.scheduled(WAITING_SHOWN)]
        return sorted(waiting, key=lambda row: row[1])

    def waiting_for_address(self) -> tuple[int, str]:
        """Hosts that wait until their server address takes one more fetch, and the address of most of them. O(addresses
        with such hosts)."""
        readiness = self.frontier.readiness
        addresses = readiness.addresses
        most = max(addresses.lined(), key=lambda address: len(addresses.line(address)), default="")
        return len(readiness.waiting_for_address), most

    def hosts_waiting(self) -> int:
        """Hosts with queued URLs that wait for time alone."""
        return self.frontier.store.waiting()


def build(
    config: SchedulerConfig,
    bus: Bus,
    clock: Clock,
    *,
    on_turn: Callable[[], None] | None = None,
    on_fatal: Callable[[BaseException], None] | None = None,
) -> Scheduler:
    return Scheduler(config, bus, clock, on_turn=on_turn, on_fatal=on_fatal)
