"""The control API of one program on this machine: `nephila up`, and `nephila crawl` while it runs.

The frontier's log holds the jobs; this class keeps only what a sequence of requests has in progress. An answer to a
change comes when the change is in that log and the log is synced. A crawl (`once`) answers every question, releases
quarantines and forgets URLs; its job is defined by its command line.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nephila import __version__
from nephila.control import api, job_view
from nephila.control.changes import TableChanges
from nephila.control.forget import check, named_urls
from nephila.control.rule_documents import read_rules, rule_change, rule_health, rule_list
from nephila.control.rule_store import RuleStore
from nephila.control.seed_sources import source_seeds
from nephila.control.tenants import check_tenant
from nephila.control.throughput import Rates
from nephila.kernel.bus.contract import Bus, Receipt
from nephila.kernel.documents import job_document
from nephila.kernel.documents.job_to_document import to_document
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.messages import CrawlJob, ParseRule, Render, RuleVerdict, Scope, ScopeMode, Seed
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import JOBS, SEEDS
from nephila.native import UrlError
from nephila.parser.page import trafilatura_text
from nephila.scheduler.explain.explain import Explanation
from nephila.scheduler.explain.facts import Home
from nephila.scheduler.standalone import Scheduler
from nephila.storage.source import Source

HOLD_S = 60.0
"""A held job continues after so long without further seeds: its client is gone."""


class RuleFiles(Protocol):
    """The rules of files, which the program watches."""

    path: Path

    @property
    def rules(self) -> Mapping[str, ParseRule]:
        """Name → rule."""

    def check(self) -> bool:
        """Read the files now; True when a rule has changed."""


class Parts:
    """What the API needs of the program it belongs to."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        scheduler: Scheduler,
        *,
        verdicts: Callable[[], Iterable[RuleVerdict]] = tuple,
        processes: Callable[[], Sequence[int]] = tuple,
        no_browser: str = "",
    ) -> None:
        self.bus = bus
        self.clock = clock
        self.scheduler = scheduler
        self.verdicts = verdicts
        """Whether rules still fit their sites."""
        self.processes = processes
        """Process ids of the workers."""
        self.no_browser = no_browser
        """Why pages cannot be rendered, with the remedy; empty: they can."""


class LocalControl:
    """See `nephila.control.api.Control`."""

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
        directories: Callable[[], list[api.Directory]] = list,
    ) -> None:
        """`on_change`: called when the set of jobs, or one of them, has changed. `rules`: None where rules cannot be
        applied. `directories`: reads the directories of sites from the disk."""
        self.rates = Rates()
        self._bus = parts.bus
        self._clock = parts.clock
        self._scheduler = parts.scheduler
        self._parts = parts
        self._home = Home(str(directory), many=not once, running=True)
        self._formats = tuple(formats)
        self._source = rows or directory
        self._files = files
        self._rules = rules
        self._directories = directories
        self._on_change = on_change
        self._started = self._clock.monotonic()
        self._held: dict[str, tuple[int, Timer]] = {}
        """Job → the generation under which it is held, and when that ends without seeds."""

    def note(self) -> None:
        """Something may have ended: keep the rates."""
        self.rates.note(self._clock.monotonic(), self._totals)

    # ---- jobs

    async def apply_job(self, request: api.ApplyJob) -> api.JobApplied:
        """See `Control.apply_job`."""
        self._changeable()
        document = job_document.from_json(request.job)
        wanted = document.job
        sources = source_seeds(document, seeds_follow=request.seeds_follow)
        self._check_sinks(document)
        self._check_text(document)
        self._check_rules(document)
        self._check_render(document)
        check_tenant(document, job_view.tenants(self._scheduler))
        known = job_view.spec(self._scheduler, wanted.uid)
        exists = known is not None and not known.deleted
        if not exists and len(job_view.specs(self._scheduler)) >= api.MAX_JOBS:
            raise UserError(f"there are {api.MAX_JOBS:,} jobs already; delete one first")
        wanted.generation = known.generation if known is not None else 0
        seeds = [Seed(wanted.uid, url, "job") for url in wanted.seeds]
        seeds += sources
        changed, receipts, hold = wanted != known, [], False
        rescoped = exists and _scope(known) != wanted.scope
        if changed:
            # In another mode the scope is anchored again, by the seeds. Until all are in the job is paused: what is
            # queued would be out of scope and dropped.
            pieces = request.seeds_follow or len(seeds) > api.SEED_BATCH
            hold = pieces and not wanted.paused and exists and _mode(known) != _mode(wanted)
            wanted.generation += 1
            receipts.append(self._bus.publish(JOBS, 0, _copy(wanted, paused=True) if hold else wanted))
            self._on_change()
        refused = await self._seed(seeds, receipts)
        if hold and request.seeds_follow:
            self._hold(wanted.uid, wanted.generation)
        elif hold:
            await _taken(self._continue(wanted.uid, wanted.generation))
            hold = False
        await self._scheduler.durable()
        return api.JobApplied(
            name=wanted.uid,
            verdict=("changed" if exists else "created") if changed else "unchanged",
            generation=self._known(wanted.uid).generation,
            held=hold,
            links_lost=job_view.links_lost(self._scheduler, wanted.uid) if rescoped else 0,
            refused=refused[: api.MAX_REFUSED],
            refused_count=len(refused),
        )

    def _check_render(self, document: job_document.JobDocument) -> None:
        """Refuse a job whose pages would end as failed(no_browser)."""
        if document.job.render > Render.NEVER and self._parts.no_browser:
            mode = document.content["spec"]["render"]
            raise UserError(f"{document.location}: spec.render: {mode} needs a browser: {self._parts.no_browser}")

    async def list_jobs(self, request: api.Empty) -> api.JobList:
        """See `Control.list_jobs`."""
        return api.JobList(jobs=self.jobs())

    async def list_directories(self, request: api.Empty) -> api.DirectoryList:
        """See `Control.list_directories`."""
        found = await asyncio.get_running_loop().run_in_executor(None, self._directories)
        return api.DirectoryList(directories=found)

    async def get_job(self, request: api.JobName) -> api.JobDetail:
        """See `Control.get_job`."""
        job = self._known(request.name)
        return api.JobDetail(status=self._job(job.uid), document=to_document(job))

    async def pause_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.pause_job`."""
        return await self._set_paused(request.name, True)

    async def resume_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.resume_job`."""
        return await self._set_paused(request.name, False)

    async def delete_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.delete_job`."""
        self._changeable()
        # Paused as well, so that nothing is dispatched while it is taken apart.
        wanted = _copy(self._known(request.name), deleted=True, paused=True)
        return await self._change(wanted, "deleted")

    async def add_seeds(self, request: api.AddSeeds) -> api.SeedsAdded:
        """See `Control.add_seeds`."""
        self._changeable()
        name = self._known(request.name).uid
        if name in self._held:
            self._hold(name, self._held[name][0])
        refused = await self._seed(request.seeds(name))
        if request.last and request.held_generation:
            await _taken(self._continue(name, request.held_generation))
        await self._scheduler.durable()
        return api.SeedsAdded(
            name=name,
            generation=self._known(name).generation,
            refused=refused[: api.MAX_REFUSED],
            refused_count=len(refused),
        )

    def _hold(self, name: str, generation: int) -> None:
        if name in self._held:
            self._held[name][1].cancel()
        until = self._clock.monotonic() + HOLD_S
        self._held[name] = generation, self._clock.call_at(until, lambda: self._abandon(name, generation))

    def _abandon(self, name: str, generation: int) -> None:
        self._continue(name, generation)

    def _continue(self, name: str, generation: int) -> list[Receipt]:
        """Continue a held job, unless it was changed in the meantime."""
        if name in self._held:
            self._held.pop(name)[1].cancel()
        known = job_view.spec(self._scheduler, name)
        if known is None or known.deleted or known.generation != generation or not known.paused:
            return []
        receipt = self._bus.publish(JOBS, 0, _copy(known, paused=False, generation=generation + 1))
        self._on_change()
        return [receipt]

    async def _seed(self, seeds: list[Seed], receipts: Iterable[Receipt] = ()) -> list[api.RefusedSeed]:
        """Publish seeds; known ones are not queued again. Returns when all of them are in the log."""
        pending, refused = [*receipts], []
        for start in range(0, len(seeds), api.SEED_BATCH):
            job_view.take_refused(self._scheduler)
            pending += [self._bus.publish(SEEDS, 0, seed) for seed in seeds[start : start + api.SEED_BATCH]]
            refused += job_view.take_refused(self._scheduler)
            await _taken(pending)
            pending.clear()
        await _taken(pending)
        return [api.RefusedSeed(url=url, reason=reason) for url, reason in refused]

    async def _set_paused(self, name: str, paused: bool) -> api.JobChanged:
        self._changeable()
        known = self._known(name)
        if known.paused == paused:
            return api.JobChanged(name=known.uid, verdict="unchanged", generation=known.generation)
        return await self._change(_copy(known, paused=paused), "paused" if paused else "resumed")

    async def _change(self, wanted: CrawlJob, verdict: Any) -> api.JobChanged:
        wanted.generation += 1
        await _taken([self._bus.publish(JOBS, 0, wanted)])
        await self._scheduler.durable()
        self._on_change()
        return api.JobChanged(name=wanted.uid, verdict=verdict, generation=wanted.generation)

    def _changeable(self) -> None:
        if not self._home.many:
            raise UserError(
                f"one crawl runs here, defined by its command; end it and change it with: {self._home.goes_on} "
                "(jobs that come and go: nephila up)"
            )

    def _known(self, name: str) -> CrawlJob:
        if not name:
            raise UsageError("a job has to be named")
        jobs = job_view.specs(self._scheduler)
        return jobs[job_view.choose(jobs, name)[0]]

    def _check_sinks(self, document: job_document.JobDocument) -> None:
        for sink in document.sinks:
            if sink not in self._formats and not (sink == "sqlite" and "postgres" in self._formats):
                wanted = ",".join((*self._formats, sink))
                raise UserError(
                    f"{document.location}: this program does not write {sink} (spec.sinks); "
                    f"start it with nephila up --format {wanted}"
                )
        parse = document.job.parse
        if parse is not None and parse.requisites and "warc" not in self._formats:
            wanted = ",".join((*self._formats, "warc"))
            raise UserError(
                f"{document.location}: requisites (spec.parse.requisites) are stored into archives, and this program "
                f"writes none; start it with nephila up --format {wanted}"
            )

    def _check_text(self, document: job_document.JobDocument) -> None:
        if trafilatura_text.lacks_library(document.job):
            raise UserError(f"{document.location}: {trafilatura_text.MISSING}")

    def _check_rules(self, document: job_document.JobDocument) -> None:
        if self._files is not None:
            self._files.check()
        known = self._all_rules()
        for name in document.job.rules:
            if name not in known:
                where = f"in {self._files.path}" if self._files else "here; start it with nephila up --rules DIR"
                raise UserError(
                    f"{document.location}: this program has no rule {name!r} (spec.rules) {where}, "
                    "or apply it first with nephila rules deploy"
                )

    # ---- quarantines, explain

    async def list_quarantines(self, request: api.JobName) -> api.QuarantineList:
        """See `Control.list_quarantines`."""
        name = self._known(request.name).uid
        return api.QuarantineList(name=name, quarantines=job_view.quarantines(self._scheduler, name))

    async def release_quarantine(self, request: api.ReleaseQuarantine) -> api.QuarantineReleased:
        """See `Control.release_quarantine`."""
        name = self._known(request.name).uid
        if not job_view.release(self._scheduler, name, request.host, request.pattern):
            raise api.NotFound(
                f"{request.host}{request.pattern} is not in quarantine; see nephila jobs quarantines {name}"
            )
        await self._scheduler.durable()
        return api.QuarantineReleased(name=name, host=request.host, pattern=request.pattern)

    async def forget(self, request: api.ForgetUrls) -> api.UrlsForgotten:
        """See `Control.forget`."""
        job = self._known(request.name)
        name = job.uid
        check(request)
        urls = await asyncio.get_running_loop().run_in_executor(None, named_urls, self._source, job, request)
        found = job_view.forget(self._scheduler, name, urls)
        if found is None:
            raise api.NotFound(f"job {name!r} was deleted just now")
        await self._scheduler.durable()
        return api.UrlsForgotten(name=name, forgotten=found.forgotten, open=found.open, unknown=found.unknown)

    async def explain(self, request: api.ExplainUrl) -> api.Explained:
        """See `Control.explain`."""
        try:
            href = parse_routed(request.url).href
        except UrlError as error:
            raise UsageError(f"{request.url[:100]!a} is not a URL that can be crawled: {error}") from None
        rows, disk = self._source, asyncio.get_running_loop().run_in_executor
        uids = await disk(None, job_view.named, rows, job_view.specs(self._scheduler), request.job, href)
        if not uids:
            raise api.NotFound("there is no job yet; see nephila jobs apply")
        found = await self._best(uids, href)
        if found.row is None and (found.kind == "seen" or (found.queued is not None and not found.queued.position)):
            # It may have ended, and got its row, between the look into the database and that into the frontier.
            found = await self._best([found.job], href)
        fetches = await disk(None, job_view.fetches, rows, found.job, href)
        found = self._explained(found.job, href, found.row, fetches)
        return api.Explained(explanation=await disk(None, job_view.left_out, rows, found))

    async def _best(self, uids: list[str], href: str) -> Explanation:
        uids = job_view.candidates(self._scheduler.frontier.jobs, uids, href)
        rows = await asyncio.get_running_loop().run_in_executor(None, self._rows, uids, href)
        return job_view.best([self._explained(uid, href, rows[uid]) for uid in uids])

    def _explained(
        self, uid: str, href: str, row: Mapping[str, Any] | None, fetches: Sequence[Mapping[str, Any]] = ()
    ) -> Explanation:
        if job_view.spec(self._scheduler, uid) is None:
            raise api.NotFound(f"job {uid!r} was deleted just now")
        now = self._clock.monotonic()
        return job_view.explain(self._scheduler, uid, href, now, self._home, row, fetches)

    def _rows(self, uids: list[str], href: str) -> dict[str, dict[str, Any] | None]:
        return {uid: job_view.row(self._source, uid, href) for uid in uids}

    # ---- rules

    async def list_rules(self, request: api.Empty) -> api.RuleList:
        """See `Control.list_rules`."""
        return rule_list(self._all_rules().values())

    async def apply_rules(self, request: api.ApplyRules) -> api.RulesApplied:
        """See `Control.apply_rules`."""
        store = self._applied()
        wanted = read_rules(request.rules)
        for rule in wanted:
            self._not_a_file(rule.name)
        before = dict(store.rules)
        changed = [rule for rule in wanted if before.get(rule.name) != rule]
        if changed:
            store.apply(changed)
        return api.RulesApplied(rules=[rule_change(before.get(rule.name), rule) for rule in wanted])

    async def delete_rule(self, request: api.RuleName) -> api.RuleChange:
        """See `Control.delete_rule`."""
        store = self._applied()
        self._not_a_file(request.name)
        if request.name not in store.rules:
            raise api.NotFound(f"there is no rule {request.name!r}")
        store.delete(request.name)
        return api.RuleChange(name=request.name, verdict="deleted")

    async def rule_health(self, request: api.Empty) -> api.RuleHealthList:
        """See `Control.rule_health`."""
        return rule_health(self._parts.verdicts())

    def _applied(self) -> RuleStore:
        if self._rules is None:
            self._changeable()
            raise UserError("this program keeps no rules; start nephila up")
        return self._rules

    def _not_a_file(self, name: str) -> None:
        if self._files is not None and name in self._files.rules:
            raise UserError(f"rule {name!r} is a file in {self._files.path}; change it there")

    def _all_rules(self) -> dict[str, ParseRule]:
        files = self._files.rules if self._files is not None else {}
        return {**(self._rules.rules if self._rules is not None else {}), **files}

    # ---- the rest

    async def list_changes(self, request: api.ListChanges) -> api.ChangeList:
        """See `Control.list_changes`."""
        return await TableChanges(self._source).list_changes(request)

    async def list_dead_letters(self, request: api.ListDeadLetters) -> api.DeadLetterList:
        """One program keeps no dead letters: the URL of such a message ends as failed(dead_letter)."""
        return api.DeadLetterList(dead_letters=[])

    async def replay_dead_letters(self, request: api.ReplayDeadLetters) -> api.ReplayedList:
        """See `list_dead_letters`."""
        if request.ids:
            raise api.NotFound(
                "one program keeps no dead letters; fetch such URLs again with nephila crawl --retry-failed"
            )
        return api.ReplayedList(dead_letters=[])

    async def list_members(self, request: api.Empty) -> api.MemberList:
        """See `Control.list_members`."""
        kind = "up" if self._home.many else "crawl"
        processes = [(kind, os.getpid()), *(("worker", one) for one in sorted(self._parts.processes()))]
        members = [
            api.Member(
                name=f"{service}-{process}",
                service=service,
                state="ready",
                host=socket.gethostname(),
                version=__version__,
                process=process,
            )
            for service, process in processes
        ]
        members[0].in_flight = job_view.in_flight(self._scheduler)
        return api.MemberList(members=members)

    async def status(self, request: api.Empty) -> api.Status:
        """See `Control.status`."""
        jobs = self.jobs()
        return api.Status(
            version=__version__,
            kind="up" if self._home.many else "crawl",
            place=self._home.out,
            uptime_s=round(self._clock.monotonic() - self._started, 3),
            jobs=len(jobs),
            states=dict(Counter(job.state for job in jobs)),
            queued=sum(job.queued for job in jobs),
            in_flight=job_view.in_flight(self._scheduler),
            stored=sum(job.stored for job in jobs),
            rate=round(sum(job.rate for job in jobs), 2),
            hosts_waiting=self._scheduler.hosts_waiting(),
            formats=list(self._formats),
            errors=dict(self._scheduler.errors.most_common(20)),
        )

    async def get_settings(self, request: api.Empty) -> api.Settings:
        """See `Control.get_settings`."""
        return api.Settings()

    async def change_settings(self, request: api.ChangeSettings) -> api.Settings:
        """See `Control.change_settings`."""
        raise UserError("one program has no live settings; its options are those of its command")

    def jobs(self) -> list[api.Job]:
        """How all jobs stand, by name."""
        now = self._clock.monotonic()
        totals = self._totals()
        return [self._job(uid, now, totals[uid]) for uid in sorted(totals)]

    def _job(self, uid: str, now: float | None = None, total: int | None = None) -> api.Job:
        now = self._clock.monotonic() if now is None else now
        total = job_view.ended_total(self._scheduler, uid) if total is None else total
        return job_view.job(self._scheduler, uid, self.rates.of(uid, now, total))

    def _totals(self) -> dict[str, int]:
        return {uid: job_view.ended_total(self._scheduler, uid) for uid in job_view.specs(self._scheduler)}


async def _taken(receipts: Iterable[Receipt]) -> None:
    for receipt in receipts:
        if not receipt.done:
            await receipt


def _copy(job: CrawlJob, **changed: Any) -> CrawlJob:
    """The message is shared with the services and never changed in place."""
    return msgspec.structs.replace(job, **changed)


def _scope(job: CrawlJob | None) -> Scope | None:
    return job.scope if job is not None else None


def _mode(job: CrawlJob | None) -> ScopeMode:
    return job.scope.mode if job is not None and job.scope else ScopeMode.UNSPECIFIED
