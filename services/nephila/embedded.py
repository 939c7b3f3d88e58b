"""Every service on one loop over the in-process bus: what `nephila crawl` runs.

`Crawl` owns the life of one crawl: start, seeds, end, drain. It decides when a crawl is over; everything else is
decided in the rooms. The caller holds the directory's lock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build as build_downloader
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.clock import Clock, SystemClock
from nephila.kernel.lifecycle import Service
from nephila.kernel.messages import CrawlJob, ScopeMode, Seed
from nephila.kernel.topics import JOBS, SEEDS
from nephila.parser.config import ParserConfig
from nephila.parser.service import build as build_parser
from nephila.readahead import read_ahead
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.service import Scheduler
from nephila.scheduler.service import build as build_scheduler
from nephila.storage.config import StorageConfig
from nephila.storage.service import build as build_storage

SEED_BATCH = 1000
"""Seeds published between two turns of the loop, so that a file of a million does not hold up the first fetch."""
FLUSH_S = 1.0
"""What the last flush gets in any case: what was fetched should not have to be fetched again."""


@dataclass(slots=True)
class Plan:
    """All that one crawl is given."""

    job: CrawlJob
    seeds: Iterable[str]
    """Absolute URLs, read lazily by a thread: they may come from a pipe that says nothing for an hour."""
    scheduler: SchedulerConfig
    downloader: DownloaderConfig
    parser: ParserConfig
    storage: StorageConfig
    max_time_s: float = 0.0
    """0 means no limit."""
    max_wait_s: float = 600.0
    """The crawl ends when all that is left waits longer than this."""
    grace_s: float = 4.0
    """How long fetches in flight may go on once the crawl is told to stop; with what follows it is over in five."""


@dataclass(slots=True)
class Result:
    """How a crawl ended."""

    reason: str = ""
    """done, max_pages, max_time, waiting, interrupted or failed."""
    error: BaseException | None = None
    left: int = 0
    """URLs left in queues; a later --resume takes them up."""
    ended: int = 0
    """URLs that have ended according to the frontier, in all runs: each of them has had a durable row."""
    requests: int = 0
    """Requests handed out in this run, robots.txt included."""
    resumed_urls: int = 0
    resumed_leased: int = 0
    """Of those, handed out when the run before ended: these are fetched again at most once."""
    errors: dict[str, int] = field(default_factory=dict)
    seeded: bool = False
    """All seeds of this run were read."""
    refused_seeds: list[tuple[str, str]] = field(default_factory=list)
    waiting_hosts: list[tuple[str, float, int]] = field(default_factory=list)
    """(host, seconds still to wait, URLs queued) when the crawl ended because of --max-wait."""
    anchors: list[str] = field(default_factory=list)
    """Hosts, domains or directories the scope is anchored at."""
    seed_anchors: set[str] = field(default_factory=set)
    """Of those, the ones of the seeds themselves; the others are where seeds redirected to."""
    elapsed_s: float = 0.0


class Crawl:
    """One crawl while it runs."""

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        self.plan = plan
        self.clock = clock or SystemClock()
        self.bus = LocalBus(self.clock)
        # Storage first: a raw sink has to see a page before the parser makes its record.
        self.storage = build_storage(plan.storage, self.bus, self.clock)
        self.parser = build_parser(plan.parser, self.bus, self.clock)
        self.downloader = build_downloader(plan.downloader, self.bus, self.clock)
        self.scheduler: Scheduler = build_scheduler(plan.scheduler, self.bus, self.clock)
        self.result = Result()
        self._seeding = True
        self._over = asyncio.Event()
        self._started = self.clock.monotonic()

    async def run(self) -> Result:
        """Crawl until everything is done, a limit is reached, or `stop` is called."""
        async with self._services():
            self._publish_job()
            seeding = asyncio.ensure_future(self._seed())
            if self.plan.max_time_s:
                self.clock.call_at(self._started + self.plan.max_time_s, lambda: self.stop("max_time"))
            await self._over.wait()
            seeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await seeding
            await self._finish()
        result = self.result
        result.elapsed_s = self.clock.monotonic() - self._started
        result.ended = sum(self.scheduler.ended(self.plan.job.uid).values())
        result.requests = self.scheduler.requests
        result.errors = dict(self.scheduler.errors)
        result.refused_seeds = self.scheduler.refused_seeds
        result.left = self.scheduler.queued + self.scheduler.frontier.outstanding
        job = self.scheduler.frontier.jobs.get(self.plan.job.uid)
        if job is not None:
            result.anchors = sorted(job.scope.anchors)
            result.seed_anchors = job.seed_anchors
        return result

    def stop(self, reason: str, error: BaseException | None = None) -> None:
        """End the crawl; the first reason counts. A second call shortens the drain to nothing."""
        if self._over.is_set():
            self.plan.grace_s = 0.0
            return
        self.result.reason = reason
        self.result.error = error
        self._over.set()

    @contextlib.asynccontextmanager
    async def _services(self) -> AsyncIterator[None]:
        """Start from the far end of the route, close in the opposite order."""
        self.scheduler.on_fatal = self._fatal
        self.storage.on_fatal = self._fatal
        self.scheduler.on_turn = self._check_end
        # The last ack may come after the scheduler's last turn, as that of a raw page written behind its record.
        self.bus.on_quiet = lambda: self.clock.call_soon(self._check_end)
        services: tuple[Service, ...] = (self.storage, self.parser, self.downloader, self.scheduler)
        started: list[Service] = []
        try:
            for service in services:
                started.append(service)
                await service.start()
            self.result.resumed_urls = self.scheduler.restored.urls
            self.result.resumed_leased = self.scheduler.restored.leased
            yield
        finally:
            for service in reversed(started):
                await service.close()

    def _publish_job(self) -> None:
        """On a resume the job as it is now applies to what is queued as well."""
        job = self.plan.job
        known = self.scheduler.frontier.jobs.get(job.uid)
        if known is not None:
            job.generation = known.spec.generation + 1
            # In another mode the scope is anchored anew, by the seeds: until they are in, what is queued looks foreign.
            self.scheduler.hold(mode_of(known.spec) != mode_of(job))
        self.bus.publish(JOBS, 0, job)

    async def _seed(self) -> None:
        try:
            number = 0
            async for url in read_ahead(self.plan.seeds, SEED_BATCH):
                self.bus.publish(SEEDS, 0, Seed(self.plan.job.uid, url))
                number += 1
                if number % SEED_BATCH == 0:
                    await asyncio.sleep(0)
            self.result.seeded = True
        except Exception as error:
            self.stop("failed", error)
        self._seeding = False
        self.scheduler.hold(False)
        self.clock.call_soon(self._check_end)

    def _fatal(self, error: BaseException) -> None:
        if self._over.is_set() and self.result.error is None:
            # It was about to end well: what could not be written now is what the user has to know.
            self.result.reason, self.result.error = "failed", error
        self.plan.grace_s = 0.0
        self.stop("failed", error)

    def _check_end(self) -> None:
        """Over when nothing is on its way and nothing is left that is worth waiting for."""
        if self._over.is_set() or self._seeding or not self.scheduler.idle or self.bus.unacked:
            return
        job = self.scheduler.frontier.jobs.get(self.plan.job.uid)
        if self.scheduler.worth_waiting_for == 0:
            self.stop("max_pages" if job is not None and job.budget_spent else "done")
        elif job is not None and job.budget_spent:
            self.stop("max_pages")
        else:
            due = self.scheduler.dispatcher.next_fetch()
            now = self.clock.monotonic()
            if due is not None and due - now > self.plan.max_wait_s:
                self.result.waiting_hosts = self.scheduler.waiting_hosts()
                self.stop("waiting")

    async def _finish(self) -> None:
        """Stop taking, let what is in flight end within the grace period, make durable what came."""
        grace_s = self.plan.grace_s
        until = self.clock.monotonic() + grace_s

        def left_s() -> float:
            return max(until - self.clock.monotonic(), 0.0) if self.plan.grace_s else 0.0

        await self.scheduler.drain(grace_s)
        draining = asyncio.ensure_future(self.downloader.drain(grace_s))
        while not draining.done() and self.plan.grace_s >= grace_s:
            await asyncio.wait([draining], timeout=0.1)
        if not draining.done():
            await self.downloader.drain(0.0)
        await draining
        await self.parser.drain(left_s())
        if self.result.reason != "failed":
            await self.storage.drain(max(left_s(), FLUSH_S))
        # The receipts of that last flush reach the log in the scheduler's next turn.
        await asyncio.sleep(0)


def mode_of(job: CrawlJob) -> ScopeMode:
    """How the scope of a job is anchored."""
    return job.scope.mode if job.scope else ScopeMode.UNSPECIFIED


def raise_open_files() -> None:
    """Lift the soft limit of open files to the hard one: a hundred connections and their files need it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536) if hard > 0 else 65_536, hard))
