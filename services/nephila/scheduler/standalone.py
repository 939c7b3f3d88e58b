"""The scheduler service of one program.

IN   jobs, seeds, outlinks (what to crawl), outcomes (a fetch has ended), receipts (a URL is durable)

OUT  requests (at most `window` without receipt), records (terminal rows of URLs without a page)

Handlers only change the frontier. Once per pass of the event loop, `_turn` dispatches URLs of ready hosts, writes all
changes as one group of commits, and only then publishes and acknowledges: commit first, emit after.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import CrawlJob, FetchOutcome, Outcome, Outlinks, Quarantine, Receipts, Seed
from nephila.kernel.outcomes import is_error
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, RECORDS, SEEDS, requests_topic
from nephila.native import UrlError
from nephila.scheduler.config import CREDITS, LOOK_S, SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog, disk_error
from nephila.scheduler.durability.recovery import Restored, open_frontier, restore
from nephila.scheduler.durability.snapshots import cleanup, snapshots
from nephila.scheduler.engine.admission import add_links, add_seed
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.forget_urls import Forgotten, forget_urls
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.engine.refetch import Refetch
from nephila.scheduler.engine.release_quarantine import release_quarantine
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.recrawl.freshness import measure

WAITING_SHOWN = 10_000
"""Hosts listed when a crawl ends because everything left waits too long."""
SAMPLED = 10_000
"""States that freshness is estimated from."""
WRITTEN_PER_SEGMENT = 4
"""Limit of host states written between two snapshots, in segment sizes."""


class Scheduler:
    """One instance owns all partitions of one program."""

    def __init__(
        self,
        config: SchedulerConfig,
        bus: Bus,
        clock: Clock,
        rng: random.Random | None = None,
        on_wider: Callable[[str], None] = lambda uid: None,
        *,
        on_turn: Callable[[], None] | None = None,
        on_fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        """`on_wider(uid)`: the scope of a job has a new anchor. Links that were filtered out because they had been sent
        before must be sent again. `on_turn` is called after each turn; the program shows progress and ends the crawl
        there. `on_fatal` is called once, when the log can no longer be written."""
        self.config = config
        self.bus = bus
        self.clock = clock
        self.log = CommitLog(Path(config.directory))
        restarted_at = clock.monotonic() if self.log.exists else -math.inf
        self.frontier = open_frontier(config, rng, restarted_at=restarted_at, on_wider=on_wider)
        self.dispatcher = Dispatcher(self.frontier)
        self.restored = Restored()
        self.errors: Counter[str] = Counter()
        self.requests = 0
        self.commits = 0
        """Commits written."""
        self.refused_seeds: list[tuple[str, str]] = []
        self.on_turn = on_turn
        self.on_fatal = on_fatal
        self._out = TurnOutput()
        self._acks: list[Delivery] = []
        self._turn_due = False
        self._turned = asyncio.Event()
        self._turned.set()
        self._timer: tuple[float, Timer] | None = None
        self._sync: asyncio.Task[None] | None = None
        self._unsynced = False
        self._sync_due = False
        self._emitting = True
        self._held = False
        self._dead = False
        self._recovered = False
        self._snapshot_at = clock.monotonic()

    # ---- life

    def recover(self) -> None:
        """Rebuild the frontier from its log, once. Raises `UserError`."""
        now, utc = self.clock.monotonic(), self.clock.now()
        self.restored = restore(self.dispatcher, self.log.recover(), now, utc)
        self._recovered = True

    def begin_after(self, last_fetches: Mapping[str, int]) -> None:
        """The log is lost, and the table of rows is not. These jobs number their fetches from the highest number of a
        row, so that the row stays and later fetches count. Before `start`."""
        later = {uid: number - 1 for uid, number in last_fetches.items() if number > 1}
        if later and not self.restored.commits:
            self.frontier.jobs.restore_counts(0, later)
            self.log.open()
            self._snapshot()

    @property
    def all_ended(self) -> dict[str, int] | None:
        """Ended URLs by job, each with a durable row; None without a log."""
        if not self.restored.commits:
            return None
        return {uid: sum(job.ended.values()) for uid, job in self.frontier.jobs.items()}

    async def start(self) -> None:
        """Recover the frontier, unless that is done, and subscribe to the topics."""
        if not self._recovered:
            self.recover()
        self.log.open()
        for topic, handler in (
            (JOBS, self._on_job),
            (SEEDS, self._on_seed),
            (OUTLINKS, self._on_outlinks),
            (OUTCOMES, self._on_outcome),
            (RECEIPTS, self._on_receipts),
        ):
            self.bus.subscribe(topic, "scheduler", handler, credits=CREDITS)
        self._later()

    async def drain(self, grace_s: float) -> None:
        """Dispatch nothing more; outcomes and receipts still come in."""
        self._emitting = False

    def hold(self, held: bool) -> None:
        """Stop dispatching while the seeds of a changed scope come in; `held=False` continues."""
        self._held = held
        if not held and not self._turn_due:
            self._later()

    async def close(self) -> None:
        """Write the pending changes and close the log."""
        self._emitting = False
        if self._timer is not None:
            self._timer[1].cancel()
        if self._sync is not None:
            await asyncio.wait([self._sync])
        if not self._dead:
            self._turn()
        if not self._dead:
            self.log.close()
        self._dead = True

    def refetch(self, uid: str) -> Refetch | None:
        """An object that queues ended URLs of a job again; None for an unknown job. Hold the scheduler meanwhile, and
        call `refetched` after each part, which is one commit."""
        job = self.frontier.jobs.get(uid)
        self._now()
        return Refetch(self.dispatcher, job) if job is not None else None

    def refetched(self) -> None:
        """A part was queued; a turn commits it."""
        self._now()
        if not self._turn_due:
            self._later()

    def check_late_address(self, job: str, url_key: bytes, attempt: int, address: str) -> bool:
        """Whether a leased fetch may start on an address that was not known before; it counts there from now on."""
        return self.frontier.in_flight.start_late((job, url_key), attempt, address, self._now())

    def sent(self, address: str, at: float) -> None:
        """A request has reached a paced address at this monotonic instant; the gap counts from then."""
        self.frontier.addresses.sent(address, at)

    # ---- in

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        self._now()
        known = self.frontier.jobs.get(job.uid)
        # At its start a program publishes the jobs that it got from this scheduler.
        if known is None or known.spec != job:
            put_job(self.frontier, job)
        self._taken(delivery)

    def _on_seed(self, delivery: Delivery) -> None:
        seed: Seed = delivery.message
        job = self.frontier.jobs.get(seed.job)
        if job is not None:
            try:
                parts = parse_for(job.routes, seed.url)
            except UrlError as error:
                self.refused_seeds.append((seed.url, str(error)))
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
                    self.refused_seeds.append((seed.url, refused))
        self._taken(delivery)

    def _on_outlinks(self, delivery: Delivery) -> None:
        links: Outlinks = delivery.message
        self._now()
        add_links(self.frontier, links)
        self._taken(delivery)

    def _on_outcome(self, delivery: Delivery) -> None:
        outcome: FetchOutcome = delivery.message
        if is_error(outcome):
            self.errors[outcome.reason] += 1
        self.dispatcher.outcomes.outcome(outcome, self._now(), self._out)
        self._taken(delivery)

    def _on_receipts(self, delivery: Delivery) -> None:
        receipts: Receipts = delivery.message
        self._now()
        self.dispatcher.endings.receipts(receipts)
        self._taken(delivery)

    def _taken(self, delivery: Delivery) -> None:
        self._acks.append(delivery)
        if not self._turn_due:
            self._later()

    def _later(self) -> None:
        self._turn_due = True
        self._turned.clear()
        self.clock.call_soon(self._turn)

    # ---- out

    def _now(self) -> float:
        """The current instant. The offset to UTC is measured again, because clocks are set and machines sleep."""
        now = self.clock.monotonic()
        self.frontier.begin_turn(now, self.clock.now())
        return now

    def _turn(self) -> None:
        """Dispatch, commit, then publish and acknowledge."""
        self._turn_due = False
        self._turned.set()
        if self._dead:
            return
        now = self._now()
        out, self._out = self._out, TurnOutput()
        acks, self._acks = self._acks, []
        try:
            if self._emitting and not self._held:
                self.dispatcher.dispatch(now, out)
            commits = self.frontier.pending.commits()
            if commits:
                self.log.append(commits)
                self.commits += len(commits)
                self._unsynced = True
            if self._sync is None and self._wants_snapshot:
                self._snapshot()
            self.dispatcher.trim_hosts()
        except Exception as error:
            self._fatal(error)
            return
        publish = self.bus.publish
        for partition, record in out.records:
            publish(RECORDS, partition, record)
        for delivery in acks:
            delivery.ack()
        self.requests += len(out.requests)
        for partition, request in out.requests:
            publish(requests_topic(request), partition, request)
        self._sync_later()
        self._arm()
        if self.on_turn is not None:
            self.on_turn()

    @property
    def _wants_snapshot(self) -> bool:
        """Whether the log has grown enough, or the memory that the host store needs until the next snapshot. A host
        with the largest robots.txt takes half a megabyte of memory for each short entry of the log."""
        limit = self.config.segment_bytes
        return self.log.size > limit or self.frontier.hosts.written_bytes > WRITTEN_PER_SEGMENT * limit

    def _snapshot(self) -> None:
        """Write a snapshot and start a new segment of the log."""
        try:
            self.log.snapshot(snapshots(self.dispatcher))
            self._snapshot_at = self.clock.monotonic()
            cleanup(self.frontier)
            self.frontier.hosts.checkpointed()
        except OSError as error:
            raise disk_error(error, self.log.directory) from None

    def _arm(self) -> None:
        """Set the one timer to the next instant at which time alone gives work."""
        when = self.dispatcher.next_event() if self._emitting and not self._held else None
        if when is None or self._turn_due:
            return
        when = min(when, self.frontier.time.now + LOOK_S)
        if self._timer is not None:
            if self._timer[0] == when:
                return
            self._timer[1].cancel()
        self._timer = (when, self.clock.call_at(when, self._timer_fired))

    def _timer_fired(self) -> None:
        self._timer = None
        self._turn()

    def _sync_later(self) -> None:
        if self._unsynced and not self._sync_due:
            self._sync_due = True
            self.clock.call_at(self.clock.monotonic() + self.config.fsync_interval_s, self._start_sync)

    def _start_sync(self) -> None:
        """fsync the log off the event loop: at most once per interval, and when `durable` waits for it."""
        if self._dead or self._sync is not None:
            return
        if not self._unsynced:
            self._sync_due = False
            return
        self._unsynced = False
        self._sync = asyncio.ensure_future(self._sync_now())

    async def _sync_now(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.log.sync)
        except OSError as error:
            self._fatal(disk_error(error, self.log.directory))
        finally:
            self._sync = None
            self._sync_due = False
        # Commits made during the sync may be the last for a long time, and no further turn is certain.
        if not self._dead:
            self._sync_later()

    async def durable(self) -> None:
        """Return when everything received so far survives a power cut. Raises `UserError` when it cannot be written."""
        await self._turned.wait()
        # Twice: a sync that runs already may have started too early. Later input is not waited for.
        for _ in range(2):
            if self._unsynced:
                self._start_sync()
            if self._sync is not None:
                await asyncio.wait([self._sync])
        if self._dead:
            raise UserError("the program ended before this was written; do it again")

    def _fatal(self, error: BaseException) -> None:
        self._dead = True
        if self.on_fatal is not None:
            self.on_fatal(error)
        else:
            raise error

    # ---- views

    @property
    def frontiers(self) -> list[Frontier]:
        """See `scheduler.metrics.AnyScheduler`."""
        return [self.frontier]

    @property
    def known_jobs(self) -> int:
        """Jobs that are not deleted."""
        return len(self.frontier.jobs)

    @property
    def counters(self) -> FrontierCounters:
        """See `AnyScheduler`."""
        return self.frontier.counters

    @property
    def snapshot_age_s(self) -> float:
        """Seconds since the last snapshot, or since the start; 0 while the log is empty."""
        return self.clock.monotonic() - self._snapshot_at if self.log.size else 0.0

    @property
    def log_bytes(self) -> int:
        """Bytes of the log since the last snapshot."""
        return self.log.size

    @property
    def queued(self) -> int:
        """Queued URLs of all jobs."""
        return sum(job.queued for job in self.frontier.jobs.values())

    @property
    def idle(self) -> bool:
        """Nothing outstanding, and every input is committed."""
        return not self.frontier.in_flight.urls and not self._acks and not self._turn_due

    def take_refused_seeds(self) -> list[tuple[str, str]]:
        """(URL, reason) of the seeds that were refused since the last call."""
        refused, self.refused_seeds = self.refused_seeds, []
        return refused

    def ended(self, job: str) -> Counter[Outcome]:
        """Ended URLs of a job by outcome."""
        known = self.frontier.jobs.get(job)
        return known.ended if known is not None else Counter()

    def quarantines(self, job: str) -> list[Quarantine]:
        """Path patterns that were closed for a job as traps, released ones too."""
        known = self.frontier.jobs.get(job)
        return list(known.quarantines.values()) if known is not None else []

    def release(self, job: str, host: str, pattern: str) -> bool:
        """Release a quarantine for good; False when that pattern is not closed."""
        self._now()
        if not release_quarantine(self.frontier, job, host, pattern):
            return False
        self._later()
        return True

    def forget(self, job: str, urls: Iterable[tuple[str, Outcome]]) -> Forgotten | None:
        """Forget URLs of a job, each with how it has ended; None without the job."""
        self._now()
        known = self.frontier.jobs.get(job)
        if known is None:
            return None
        found = forget_urls(self.dispatcher, known, urls)
        if found.forgotten:
            self._later()
        return found

    def freshness(self, job: str) -> dict[str, Any] | None:
        """Age and freshness of a job's copies, where pages are fetched again."""
        known = self.frontier.jobs.get(job)
        if known is None or not known.recrawl.active or not len(known.due_table):
            return None
        sample = known.due_table.sample(SAMPLED)
        return msgspec.structs.asdict(measure(sample, self.clock.now(), known.recrawl.rate))

    @property
    def fetchable(self) -> int:
        """Queued URLs, without those on hosts whose budget is spent."""
        return sum(job.waiting for job in self.frontier.jobs.values())

    def waiting_hosts(self) -> list[tuple[str, float, int]]:
        """(host, seconds until its next fetch, queued URLs) of hosts that wait for time, the earliest first."""
        now, store = self.clock.monotonic(), self.frontier.store
        found = [(store.name(host), at - now, store.queued(host)) for host, at in store.scheduled(WAITING_SHOWN)]
        return sorted(found, key=lambda row: row[1])

    def hosts_waiting(self) -> int:
        """Hosts with queued URLs that wait for time alone."""
        return self.frontier.store.waiting()


def build(
    config: SchedulerConfig,
    bus: Bus,
    clock: Clock,
    on_wider: Callable[[str], None] = lambda uid: None,
    *,
    on_turn: Callable[[], None] | None = None,
    on_fatal: Callable[[BaseException], None] | None = None,
) -> Scheduler:
    """The scheduler with its real parts."""
    return Scheduler(config, bus, clock, on_wider=on_wider, on_turn=on_turn, on_fatal=on_fatal)
