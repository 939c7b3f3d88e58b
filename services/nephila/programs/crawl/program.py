"""One crawl from its start to its end: `nephila crawl`.

`CrawlProgram` owns the life of one job: start, seeds, end, drain. It decides when a crawl is over; the services
decide everything else. The caller holds the directory's lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_document import spec_of, urls_of, with_spec
from nephila.kernel.messages import Outlinks, Seed
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extensions import extension
from nephila.kernel.topics import DEAD, JOBS
from nephila.kernel.url_credentials import restored
from nephila.programs.control_port import ProgramControl, RuleFiles, make_control
from nephila.programs.crawl.frontier import CrawlFrontier
from nephila.programs.crawl.plan import COPIES, DUE, LINKS, Plan
from nephila.programs.crawl.seeds import BATCH, publish
from nephila.programs.read_ahead import read_ahead
from nephila.programs.service_configs import ServiceConfigs
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.read import ended_urls

if TYPE_CHECKING:
    from nephila.programs.assembly import Assembly
    from nephila.programs.groups.group_assembly import GroupAssembly

log = logging.getLogger(__name__)


class Result(msgspec.Struct):
    """How a crawl ended."""

    reason: str = ""
    """done, max_pages, quota, max_time, waiting, interrupted or failed."""
    error: BaseException | None = None
    left: int = 0
    """URLs left in queues; a later --resume continues with them."""
    ended: int = 0
    """URLs that have ended according to the frontier, in all runs. Each of them has a durable row."""
    requests: int = 0
    """Requests published in this run, robots.txt included."""
    resumed_urls: int = 0
    resumed_leased: int = 0
    """Of those, in flight when the run before ended: they are fetched again at most once."""
    errors: dict[str, int] = msgspec.field(default_factory=dict)
    refetched: int = 0
    """URLs that had ended and were queued once more in this run, links that were refused before among them."""
    degraded: dict[str, str] = msgspec.field(default_factory=dict)
    """Rule → the finding, for rules that no longer fit their site."""
    seeded: bool = False
    """All seeds of this run were read."""
    rules: list[str] = msgspec.field(default_factory=list)
    """Rules of the job."""
    out_of_scope: int = 0
    """Links of this run that the scope refused."""
    links_lost: int = 0
    """The scope has changed, and this many links that it refused in earlier runs were not held."""
    causes: dict[str, int] = msgspec.field(default_factory=dict)
    """Finer reason → URLs without a page of this run."""
    refused_seeds: list[tuple[str, str]] = msgspec.field(default_factory=list)
    window: str = ""
    """Which window the job waits for, in words; empty: none."""
    waiting_hosts: list[tuple[str, float, int]] = msgspec.field(default_factory=list)
    """(host, seconds still to wait, URLs queued) when the crawl ended because of --max-wait."""
    anchors: list[str] = msgspec.field(default_factory=list)
    """Hosts, domains or directories the scope is anchored at."""
    redirect_anchors: list[str] = msgspec.field(default_factory=list)
    """Of those, the first that redirects of seeds have led to in this run."""
    dead_letters: Counter[str] = msgspec.field(default_factory=Counter)
    """Topic → messages of this run that no service could process."""
    elapsed_s: float = 0.0
    browser: dict[str, float] = msgspec.field(default_factory=dict)
    """What the browser lane did (`BrowserLane.figures`); empty without a browser."""


def assembly_class(configs: ServiceConfigs) -> type[Assembly] | type[GroupAssembly]:
    """The parts of a program with one scheduler, or with groups of partitions."""
    # Each is loaded only where it is used: one has all services, the other the protocol of groups.
    if configs.workers or configs.divided:
        from nephila.programs.groups.group_assembly import GroupAssembly

        return GroupAssembly
    from nephila.programs.assembly import Assembly

    return Assembly


class CrawlProgram:
    """One crawl while it runs."""

    def __init__(
        self,
        plan: Plan,
        seeds: Iterator[Seed | Outlinks],
        clock: Clock | None = None,
        bus: LocalBus | None = None,
        *,
        on_refetch_queued: Callable[[], None],
        on_first_end: Callable[[], None] | None = None,
    ) -> None:
        """`seeds` are read lazily in a thread. `on_refetch_queued` is called when the URLs to fetch again are in the
        log: a restart must not queue them a second time. `on_first_end` is called once, when the first URL has ended or
        the crawl is over; not if a service refuses its settings, so that this error is the only line."""
        self.plan = plan
        self.job = plan.job
        """The job with what the frontier and the directory of rules add to the plan's."""
        self._seeds = seeds
        self._on_refetch_queued = on_refetch_queued
        self._on_first_end = on_first_end
        self.clock = clock or SystemClock()
        self.assembly = assembly_class(plan.configs)(
            plan.configs,
            self.clock,
            bus or LocalBus(self.clock, on_quiet=self.on_quiet),
            on_fatal=self._fatal,
            on_turn=self._turn,
            rules=plan.rules is not None,
        )
        self.bus = self.assembly.bus
        self.frontier: CrawlFrontier = self.assembly.frontier
        storage = plan.configs.storage
        self.rules: RuleFiles | None = (
            extension("rule-files")(
                plan.rules, self.bus, self.clock, self._on_rules_changed if plan.all_rules else None
            )
            if plan.rules is not None
            else None
        )
        parts = self.assembly.control_parts
        self.control: ProgramControl = make_control(parts, storage, self.rules, plan.tcp, self.assembly.metrics)
        self.result = Result()
        self.bus.subscribe(DEAD, "crawl", self._on_dead_letter, credits=1)
        self._seeding = True
        self._scope_mode_changed = False
        self._over = asyncio.Event()
        self._started = self.clock.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the crawl was built."""
        return self.clock.monotonic() - self._started

    async def run(self) -> Result:
        """Crawl until everything is done, a limit is reached, or `stop` is called."""
        async with self._services():
            self._publish_rules()
            self._publish_job()
            seeding = asyncio.ensure_future(self._seed())
            if self.plan.max_time_s:
                self.clock.call_at(self._started + self.plan.max_time_s, lambda: self.stop("max_time"))
            await self._open_socket()
            try:
                await self._over.wait()
            finally:
                await self.control.close()
            self._note_first_end()
            seeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await seeding
            if self.rules is not None:
                self.rules.close()
            await self.assembly.drain(lambda: self.result.reason != "failed")
        result = self.result
        result.elapsed_s = self.elapsed_s
        result.out_of_scope = self.frontier.out_of_scope(self.job.uid)
        result.ended = sum(self.frontier.ended(self.job.uid).values())
        result.requests = self.frontier.requests
        result.rules = list(spec_of(self.job).rules)
        result.errors = dict(self.frontier.errors)
        result.causes = dict(self.frontier.causes)
        browser = self.assembly.browser
        if browser is not None and browser.browser is not None:
            result.browser = browser.browser.figures()
        # A group that dies may refuse a seed once more, and a line that stands twice is one seed.
        result.refused_seeds = sorted(set(self.frontier.refused_seeds))
        result.degraded = self.assembly.judge.degraded()
        result.left = self.frontier.left
        result.anchors = self.frontier.anchors(self.job.uid)
        result.redirect_anchors = self.frontier.redirect_anchors(self.job.uid)
        return result

    async def _open_socket(self) -> None:
        """Accept control requests; the crawl runs also if the socket cannot be opened."""
        try:
            await self.control.open()
        except UserError as error:
            log.warning("nephila: %s; the crawl continues without control requests", error)

    def stop(self, reason: str, error: BaseException | None = None) -> None:
        """End the crawl; the first reason counts. A second call ends the drain at once."""
        if self._over.is_set():
            self.assembly.skip_grace()
            return
        self.result.reason = reason
        self.result.error = error
        self._over.set()

    @contextlib.asynccontextmanager
    async def _services(self) -> AsyncIterator[None]:
        async with self.assembly.running():
            self.result.resumed_urls, self.result.resumed_leased = self.frontier.restored
            yield

    def _publish_rules(self) -> None:
        """Before the job, so that every page of the job is parsed with the rules."""
        if self.rules is None:
            return
        self.rules.start()
        if self.plan.all_rules:
            self.job = with_spec(self.job, rules=list(self.rules.names))

    def _on_rules_changed(self) -> None:
        assert self.rules is not None
        present = self.frontier.spec(self.job.uid) or self.job
        job = with_spec(present, rules=list(self.rules.names))
        job.generation += 1
        self.bus.publish(JOBS, 0, job)

    def _publish_job(self) -> None:
        """On a resume, the job with its present options applies to queued URLs as well."""
        job = self.job
        restored_job = self.frontier.spec(job.uid)
        if restored_job is not None:
            old, new = spec_of(restored_job), spec_of(job)
            urls = restored((seed.url for seed in new.seeds), urls_of(old))
            seeds = [replace(seed, url=url) for seed, url in zip(new.seeds, urls, strict=True)]
            job = self.job = with_spec(job, seeds=seeds)
            job.generation = restored_job.generation + 1
            # In another mode the seeds set new anchors: before they are read, queued URLs would count as out of scope.
            self._scope_mode_changed = old.scope.mode != new.scope.mode
            if old.scope != new.scope:
                self.result.links_lost = self.frontier.links_lost(job.uid)
            self.frontier.hold(self._scope_mode_changed or bool(self.plan.run.refetch))
        self.bus.publish(JOBS, 0, job)

    async def _seed(self) -> None:
        try:
            if not self._scope_mode_changed:
                await self._fetch_again()
                self.frontier.hold(False)
            await publish(self._seeds, self.bus, self.frontier.add_seeds)
            self.result.seeded = True
            if self._scope_mode_changed:
                await self._fetch_again()
        except Exception as error:
            self.stop("failed", error)
        self._seeding = False
        self.frontier.hold(False)
        self.clock.call_soon(self._check_end)

    async def _fetch_again(self) -> None:
        """Queue ended URLs that are to be fetched once more. The scheduler is held until all of them are queued."""
        refetch = self.frontier.refetch(self.job.uid)
        if refetch is None or not self.plan.run.refetch:
            return
        source, uid = self.plan.rows, self.job.uid
        kinds = [kind for kind in self.plan.run.refetch if kind not in (COPIES, DUE, LINKS)]
        due = DUE in self.plan.run.refetch
        ignores = not spec_of(self.job).politeness.respect_robots
        number = 0

        async def part() -> None:
            nonlocal number
            number += 1
            if number % BATCH == 0:
                await self.frontier.refetched()
                await asyncio.sleep(0)

        with contextlib.suppress(NoTables):
            if COPIES in self.plan.run.refetch:
                async for row in read_ahead(ended_urls.ended(source, uid, [COPIES])):
                    refetch.ended(row, conditional=False)
                    await part()
            if kinds:
                async for row in read_ahead(ended_urls.ended(source, uid, kinds)):
                    refetch.ended(row)
                    await part()
            if due:
                async for row in read_ahead(ended_urls.ended(source, uid, ["all"])):
                    refetch.ended(row, due=True)
                    await part()
            if LINKS in self.plan.run.refetch:
                async for url, key, depth in read_ahead(ended_urls.unfollowed(source, uid, all_pages=ignores)):
                    refetch.link(url, key, depth)
                    await part()
        await self.frontier.refetched()
        await self.frontier.durable()
        self.result.refetched = refetch.queued
        self._on_refetch_queued()

    def _fatal(self, error: BaseException) -> None:
        if self._over.is_set() and self.result.error is None:
            # The crawl was about to end well: the user must learn that the last write failed.
            self.result.reason, self.result.error = "failed", error
        self.assembly.skip_grace()
        self.stop("failed", error)

    def on_quiet(self) -> None:
        """For the bus: no delivery is open. The last ack may come after the scheduler's last turn, as that of a raw
        page written behind its record."""
        self.clock.call_soon(self._check_end)

    def _on_dead_letter(self, delivery: Delivery) -> None:
        self.result.dead_letters[delivery.message.topic] += 1
        delivery.ack()

    def _turn(self) -> None:
        self.control.note()
        if self._on_first_end is not None and any(self.frontier.ended(self.job.uid).values()):
            self._note_first_end()
        self._check_end()

    def _note_first_end(self) -> None:
        on_first_end = self._on_first_end
        if on_first_end is not None and not isinstance(self.result.error, UsageError):
            self._on_first_end = None
            on_first_end()

    def _check_end(self) -> None:
        """The crawl ends when nothing is in flight and no queued URL is worth waiting for."""
        if self._over.is_set() or self._seeding or not self.frontier.idle or self.bus.unacked:
            return
        spent = self.frontier.budget_spent(self.job.uid)
        if self.frontier.fetchable == 0:
            self.stop("max_pages" if spent else "done")
        elif spent:
            self.stop("max_pages")
        elif self.frontier.quota_used_up(self.job.uid):
            self.stop("quota")
        else:
            due = self.frontier.next_fetch()
            now = self.clock.monotonic()
            if due is not None and due - now > self.plan.max_wait_s:
                self.result.window = self.frontier.window_waited_for(self.job.uid)
                self.result.waiting_hosts = self.frontier.waiting_hosts()
                self.stop("waiting")
