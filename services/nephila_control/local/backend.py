"""One program on this machine as a backend of the control API: `nephila up`, and `nephila crawl` while it runs.

The frontier's log holds the jobs; this class keeps only what a sequence of requests has in progress. A crawl (`once`)
answers every question, releases quarantines and forgets URLs; its job is defined by its command line.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from nephila import __version__
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.documents import job_document
from nephila.kernel.live_settings import SettingScope
from nephila.kernel.messages import CrawlJob, Outcome, ParseRule, Quarantine, RuleVerdict, Seed
from nephila.kernel.process.disk import disk_space
from nephila.kernel.runtime.clock import Timer
from nephila.kernel.runtime.config import replaced
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS, SEEDS
from nephila.parser.config import ParserConfig
from nephila.parser.page import trafilatura_text
from nephila.programs.control_port import Parts, RuleFiles
from nephila.scheduler import job_facts
from nephila.scheduler.standalone import Scheduler
from nephila.storage.source import Source

from nephila_control import api, job_types, job_view, screen_types, system_types
from nephila_control.backend import Backend, DeadLetters, is_held, next_generation
from nephila_control.disk_trend import DiskTrend
from nephila_control.event_log import EventLog
from nephila_control.explain.explain import Explanation
from nephila_control.explain.facts import Home
from nephila_control.explain.host_list import host_rows
from nephila_control.local.explain import LocalExplain
from nephila_control.local.rule_store import RuleStore
from nephila_control.rule_versions import StoredVersion
from nephila_control.series import Counts, JobSeries
from nephila_control.stores import refusing_hosts, store_problems, store_row
from nephila_control.system_views import network_of
from nephila_control.throughput import Rates

if TYPE_CHECKING:
    from nephila.downloader.config import DownloaderConfig

    from nephila_control.access.change_log import ChangeLog

HOLD_S = 60.0
"""A held job continues after so long without further seeds: its client is gone."""


class NoDeadLetters:
    """One program keeps no dead letters: the URL of such a message ends as failed(dead_letter)."""

    async def page(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        return system_types.DeadLetterList(dead_letters=[])

    async def replay(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        """Raises `NotFound` for a named letter."""
        if request.ids:
            raise api.NotFound(
                "one program keeps no dead letters; fetch such URLs again with nephila crawl --retry-failed"
            )
        return system_types.ReplayedList(dead_letters=[])


class LocalBackend(Backend):
    """A change is durable when it is in the frontier's log and the log is synced."""

    at_once = True

    def __init__(
        self,
        parts: Parts,
        directory: Path,
        formats: Iterable[str],
        rows: Source | None = None,
        *,
        files: RuleFiles | None = None,
        rules: RuleStore | None = None,
        on_change: Callable[[], None] = lambda: None,
        once: bool = False,
        sites: Path | None = None,
    ) -> None:
        """`on_change` is called when the set of jobs, or a job, has changed. `rules` is None if rules cannot be
        applied. `sites` is the file of the sites; its default is that of the directory."""
        home = Home(str(directory), many=not once, running=True)
        self.kind: system_types.SystemKind = "crawl" if once else "up"
        self.place = home.out
        self.clock = parts.clock
        self.rows: Source | None = rows or directory
        self.captures = Path(parts.downloader.browser.captures or directory / "captures")
        self.letters: DeadLetters = NoDeadLetters()
        self._directory = directory
        self._once = once
        self._continued_by = home.goes_on
        self._rates = Rates()
        self.series = JobSeries()
        self.events = EventLog(parts.clock)
        self._disks = DiskTrend()
        self._at_start: dict[str, Counts] | None = None
        """Numbers of each job after the first turn: a job that had failed then makes no event."""
        self._bus = parts.bus
        self._parts = parts
        self._home = home
        self._formats = tuple(formats)
        self._files = files
        self._store = rules
        self._sites = sites
        self._on_change = on_change
        self._trying = asyncio.Lock()
        """One exclusion is tried at a time."""
        self._held: dict[str, tuple[int, Timer]] = {}
        """Job → the generation under which it is held, and the timer that ends the wait for seeds."""

    @cached_property
    def _scheduler(self) -> Scheduler:
        assert self._parts.scheduler is not None
        return self._parts.scheduler

    @cached_property
    def log(self) -> ChangeLog:  # type: ignore[override]
        """The first change over the API loads the log: most crawls have none."""
        from nephila_control.access.change_log import FileChangeLog

        return FileChangeLog(self._directory, self.clock)

    def note_start(self, at: float, utc_at: float, counts: dict[str, Counts] | None) -> None:
        """A program that made its control later tells when it started (monotonic, and seconds since 1970 UTC), and how
        its jobs stood after the first turn; None before that."""
        self.events = EventLog(self.clock, at, utc_at)
        if counts is not None:
            self._at_start = counts
            self._rates.note(at, lambda: {uid: sum(numbers[2:]) for uid, numbers in counts.items()})
            self.series.note(at, utc_at, lambda: counts)

    def note(self) -> None:
        """Updates rates and curves, as URLs may have ended."""
        now = self.clock.monotonic()
        self._rates.note(now, self._totals)
        self.series.note(now, self.clock.now(), self._counts)
        if self._disks.due(now, ""):
            self._disks.note(now, "", disk_space(self._directory).free_bytes)
        if self._at_start is None:
            self._at_start = self._counts()
        if self.events.due():
            self.look()

    def look(self) -> None:
        self.events.look(self.members(), self._stores())
        before = self._at_start or {}
        for uid, counts in self._counts().items():
            if not any(counts[:3]):  # nothing is queued, in flight or stored
                self.events.note_jobs([self.report(self.jobs()[uid])], first=counts == before.get(uid))

    def _counts(self) -> dict[str, Counts]:
        return job_facts.counts(self._scheduler)

    def _stores(self) -> list[system_types.Store]:
        store = self._parts.store()
        return [store_row(store)] if store is not None else []

    @property
    def sites_file(self) -> Path:  # type: ignore[override]
        # A crawl without questions about sites does without the harvest.
        from nephila_harvest.sites import FILE

        return self._sites or self._directory / FILE

    # ---- jobs

    @property
    def tenants(self) -> Collection[str]:
        return job_facts.tenants(self._scheduler)

    def check_change(self) -> None:
        if self._once:
            raise UserError(
                f"one crawl runs here, defined by its command; end it and change it with: {self._continued_by} "
                "(jobs that come and go: nephila up)"
            )

    def check_job(self, document: job_document.JobDocument) -> None:
        self._check_sinks(document)
        if trafilatura_text.lacks_library(document.spec):
            raise UserError(f"{document.location}: {trafilatura_text.MISSING}")
        self._check_rules(document)
        mode = document.spec.render
        if mode != "never" and self._parts.no_browser:
            # Its pages would end as failed(no_browser).
            raise UserError(f"{document.location}: spec.render: {mode} needs a browser: {self._parts.no_browser}")

    def _check_sinks(self, document: job_document.JobDocument) -> None:
        for sink in document.sinks:
            if sink not in self._formats and not (sink == "sqlite" and "postgres" in self._formats):
                formats = ",".join((*self._formats, sink))
                raise UserError(
                    f"{document.location}: this program does not write {sink} (spec.sinks); "
                    f"start it with nephila up --format {formats}"
                )
        if document.spec.parse.requisites and "warc" not in self._formats:
            formats = ",".join((*self._formats, "warc"))
            raise UserError(
                f"{document.location}: requisites (spec.parse.requisites) are stored into archives, and this program "
                f"writes none; start it with nephila up --format {formats}"
            )

    def _check_rules(self, document: job_document.JobDocument) -> None:
        if self._files is not None:
            self._files.check()
        rules = self.rules
        for name in document.spec.rules:
            if name not in rules:
                where = f"in {self._files.path}" if self._files else "here; start it with nephila up --rules DIR"
                raise UserError(
                    f"{document.location}: this program has no rule {name!r} (spec.rules) {where}, "
                    "or apply it first with nephila rules deploy"
                )

    def spec(self, uid: str) -> CrawlJob | None:
        return job_facts.spec(self._scheduler, uid)

    def jobs(self) -> Mapping[str, CrawlJob]:
        return job_facts.specs(self._scheduler)

    def report(self, job: CrawlJob) -> job_types.Job:
        total = job_facts.ended_total(self._scheduler, job.uid)
        return job_view.job(self._scheduler, job.uid, self._rates.of(job.uid, self.clock.monotonic(), total))

    def _totals(self) -> dict[str, int]:
        return {uid: job_facts.ended_total(self._scheduler, uid) for uid in job_facts.specs(self._scheduler)}

    async def publish(self, job: CrawlJob, seeds: Sequence[Seed] = ()) -> list[job_types.RefusedSeed]:
        """The first seeds are published in the same turn: what is queued would be out of their scope and dropped."""
        refused = await self._publish([self._bus.publish(JOBS, 0, job)], seeds)
        self._on_change()
        return refused

    async def send_seeds(self, uid: str, seeds: Sequence[Seed]) -> list[job_types.RefusedSeed]:
        if uid in self._held:
            self._hold(uid, self._held[uid][0])
        return await self._publish([], seeds)

    async def _publish(self, pending: list[Receipt], seeds: Sequence[Seed]) -> list[job_types.RefusedSeed]:
        refused = []
        for start in range(0, max(len(seeds), 1), job_types.SEED_BATCH):
            self._scheduler.take_refused_seeds()
            pending += [self._bus.publish(SEEDS, 0, seed) for seed in seeds[start : start + job_types.SEED_BATCH]]
            refused += self._scheduler.take_refused_seeds()
            for receipt in pending:
                if not receipt.done:
                    await receipt
            pending.clear()
        await self._scheduler.durable()
        return [job_types.RefusedSeed(url=url, reason=reason) for url, reason in refused]

    def expect_seeds(self, job: CrawlJob) -> None:
        """The job continues after HOLD_S without seeds."""
        self._hold(job.uid, job.generation)

    def _hold(self, uid: str, generation: int) -> None:
        if uid in self._held:
            self._held[uid][1].cancel()
        until = self.clock.monotonic() + HOLD_S
        self._held[uid] = generation, self.clock.call_at(until, lambda: self._abandon(uid, generation))

    def _abandon(self, uid: str, generation: int) -> None:
        self._held.pop(uid, None)
        job = self.spec(uid)
        if job is not None and is_held(job, generation):
            self._bus.publish(JOBS, 0, next_generation(job, paused=False))
            self._on_change()

    async def resume_held(self, job: CrawlJob) -> bool:
        if job.uid in self._held:
            self._held.pop(job.uid)[1].cancel()
        await self.publish(next_generation(job, paused=False))
        return True

    # ---- URLs

    async def quarantines(self, uid: str) -> list[Quarantine]:
        return self._scheduler.quarantines(uid)

    async def release(self, uid: str, host: str, pattern: str) -> None:
        if not self._scheduler.release(uid, host, pattern):
            raise api.NotFound(f"{host}{pattern} is not in quarantine; see nephila jobs quarantines {uid}")
        await self._scheduler.durable()

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        async with self._trying:
            trial = self._scheduler.try_exclusion(job.uid, exclude)
            if trial is None:
                raise api.NotFound(f"job {job.uid!r} was deleted just now")
            queued = self.report(job).queued
            while not trial.done:
                trial.step()
                await asyncio.sleep(0)  # the crawl works between two steps
        return job_types.ExclusionTried(
            name=job.uid,
            generation=job.generation,
            queued=queued,
            looked_at=trial.looked_at,
            removed=trial.removed,
            complete=trial.complete,
            examples=trial.examples,
        )

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        result = self._scheduler.forget(job.uid, urls)
        if result is None:
            raise api.NotFound(f"job {job.uid!r} was deleted just now")
        await self._scheduler.durable()
        counts = {name: getattr(result, name) for name in ("forgotten", "open", "unknown")}
        return job_types.UrlsForgotten(name=job.uid, **counts)

    async def explain(self, url: str, name: str) -> Explanation:
        of_scheduler = LocalExplain(self._scheduler, self.clock, self.rows or self._directory, self._home)
        return await of_scheduler.explain(url, name)

    async def hosts(
        self, request: screen_types.ListHosts, jobs: Collection[str] | None = None
    ) -> screen_types.HostList:
        query = job_view.host_query(request, jobs)
        return job_view.host_answer(host_rows([self._scheduler.dispatcher], self.clock.monotonic(), query))

    async def set_pace(self, request: screen_types.ChangeHost) -> None:
        if not self._scheduler.change_host_pace(request.name.lower(), request.action, request.seconds):
            raise job_view.no_host(request.name)
        await self._scheduler.durable()

    def single_fetches(self, *, rendered: bool = False) -> DownloaderConfig:
        if rendered and self.browser_problem:
            raise UserError(f"no page can be rendered here: {self.browser_problem}")
        from nephila.downloader.fetch_page import ALONE

        return replaced(self._parts.downloader, {**ALONE, "browser.captures": "", "browser.verdicts": ""})

    # ---- rules

    @property
    def rules(self) -> Mapping[str, ParseRule]:
        files = self._files.rules if self._files is not None else {}
        return {**(self._store.rules if self._store is not None else {}), **files}

    @property
    def knows_rules(self) -> bool:
        return self._files is not None or self._store is not None

    @property
    def rules_directory(self) -> Path | None:
        return self._files.path if self._files is not None and self._files.path.is_dir() else None

    def check_rule_change(self, names: Iterable[str] = ()) -> None:
        self._rule_store()
        for name in names:
            if self._files is not None and name in self._files.rules:
                raise UserError(f"rule {name!r} is a file in {self._files.path}; change it there")

    def _rule_store(self) -> RuleStore:
        if self._store is None:
            self.check_change()
            raise UserError("this program keeps no rules; start nephila up")
        return self._store

    @property
    def browser_problem(self) -> str:
        enabled = self._parts.downloader.browser.enabled
        return self._parts.no_browser or ("" if enabled else "there is no browser")

    @property
    def has_functions(self) -> bool:
        parser = self._parts.configs.get("parser")
        return not isinstance(parser, ParserConfig) or bool(parser.rule_functions_dir)

    async def put_rules(self, rules: Sequence[ParseRule]) -> None:
        self._rule_store().put(rules, self.clock.now())

    def rule_versions(self, name: str) -> Sequence[StoredVersion]:
        if self._store is None or (self._files is not None and name in self._files.rules):
            return ()
        return self._store.versions.of(name)

    def verdicts(self) -> Iterable[RuleVerdict]:
        return self._parts.verdicts()

    # ---- the system

    def members(self) -> list[system_types.Member]:
        processes = [(self.kind, os.getpid()), *(("worker", pid) for pid in sorted(self._parts.processes()))]
        members = [
            system_types.Member(
                name=f"{service}-{process}",
                service=service,
                state="ready",
                host=socket.gethostname(),
                version=__version__,
                process=process,
            )
            for service, process in processes
        ]
        members[0].pages = self._parts.pages()
        members[0].in_flight, members[0].bytes, _, _ = self._numbers()
        return members

    def configuration(self) -> Mapping[str, msgspec.Struct]:
        return self._parts.configs

    async def network(self) -> system_types.Network:
        return network_of(self._parts.downloaders())

    async def complete(self, status: system_types.Status) -> None:
        status.in_flight, _, status.hosts_waiting, errors = self._numbers()
        status.formats = list(self._formats)
        status.errors = dict(errors.most_common(20))
        status.storage = self._stores()
        status.problems = store_problems(status.storage)
        status.disks = [self._disks.disk(self.clock.monotonic(), "", *disk_space(self._directory))]
        status.refusing_hosts = await self._refusing_hosts()

    # ---- what a crawl by groups has elsewhere

    def _numbers(self) -> tuple[int, int, int, Counter[str]]:
        """Requests in flight, bytes received, hosts that wait for time, and errors."""
        scheduler = self._scheduler
        counted = job_facts.in_flight(scheduler), scheduler.counters.wire_bytes
        return *counted, scheduler.hosts_waiting(), scheduler.errors

    async def _refusing_hosts(self) -> list[system_types.RefusingHost]:
        return refusing_hosts(self._scheduler.refusing_hosts())

    def scope_of(self, member: str, setting: str) -> SettingScope:
        self._no_settings()

    async def put_settings(self, changes: Mapping[str, Any]) -> None:
        self._no_settings()

    def _no_settings(self) -> NoReturn:
        raise UserError("one program has no live settings; its options are those of its command")
