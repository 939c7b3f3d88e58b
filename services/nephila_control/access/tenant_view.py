"""The system as those see it who are limited to tenants: their jobs, rows and rules, and nothing that names others.

A job belongs to the tenant of its document, a row to its job, a rule to the tenant whose name begins its own, as
"acme.shop". Invariant: each member of the port is written here, so a new one is closed until it is decided
(a test compares the two).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.live_settings import SettingScope
from nephila.kernel.messages import CrawlJob, Outcome, ParseRule, Quarantine, RuleVerdict, Seed
from nephila.kernel.runtime.errors import UserError
from nephila.storage.read import reader

from nephila_control import api, job_types, job_view, screen_types, system_types
from nephila_control.access.change_log import ChangeLog
from nephila_control.backend import Backend, DeadLetters
from nephila_control.event_log import EventLog
from nephila_control.explain.explain import Explanation
from nephila_control.rule_versions import StoredVersion
from nephila_control.series import JobSeries

if TYPE_CHECKING:
    from nephila.downloader.config import DownloaderConfig
    from nephila.kernel.documents.browser_schema import Browser
    from nephila_rules.stored_pages import StoredPage

EXPLAINED = 20
"""Jobs that explain a URL when none is named."""
WITH_HOSTS = 1000
"""Jobs whose hosts are listed when none is named."""
CLOSED = "this is not for those who are limited to tenants"


class TenantBackend(Backend):
    def __init__(self, inner: Backend, tenants: frozenset[str]) -> None:
        self._inner = inner
        self._own = tenants
        self.kind: system_types.SystemKind = inner.kind
        self.place = ""
        self.clock = inner.clock
        self.rows = inner.rows
        self.captures = inner.captures
        self.sites_file = inner.sites_file
        self.letters: DeadLetters = _NoLetters()
        self.series: JobSeries = inner.series
        self.events: EventLog = inner.events
        self.at_once = inner.at_once
        self.log: ChangeLog = inner.log

    # ---- jobs

    @property
    def tenants(self) -> Collection[str]:
        return self._own

    @property
    def own_jobs(self) -> Collection[str] | None:
        return list(self.jobs())

    def check_change(self) -> None:
        self._inner.check_change()

    @property
    def knows_rules(self) -> bool:
        return self._inner.knows_rules

    @property
    def browser_problem(self) -> str:
        return self._inner.browser_problem

    def check_job(self, document: JobDocument) -> None:
        """Checks the tenant, the rules and the name. A name in use is refused, as rows of its earlier job would become
        visible."""
        job = document.job
        if job.tenant not in self._own:
            raise UserError(f"{document.location}: spec.tenant has to be {' or '.join(sorted(self._own))}")
        for name in document.spec.rules:
            if name not in self.rules:
                raise UserError(f"{document.location}: there is no rule {name!r} (spec.rules)")
        current = self._inner.spec(job.uid)
        if current is not None and current.tenant not in self._own:
            raise UserError(f"{document.location}: the name {job.uid!r} is taken; choose another one")
        if (
            current is None
            and self.rows is not None
            and job_view.is_there(self.rows)
            and reader.holds(self.rows, job.uid)
        ):
            raise UserError(f"{document.location}: there are rows of an earlier job {job.uid!r}; choose another name")
        self._inner.check_job(document)

    def spec(self, uid: str) -> CrawlJob | None:
        job = self._inner.spec(uid)
        return job if job is not None and job.tenant in self._own else None

    def jobs(self) -> Mapping[str, CrawlJob]:
        return {uid: job for uid, job in self._inner.jobs().items() if job.tenant in self._own}

    def reported_generation(self, uid: str) -> int:
        return self._inner.reported_generation(uid)

    async def prepare_reports(self, jobs: Iterable[CrawlJob]) -> None:
        await self._inner.prepare_reports(jobs)

    def report(self, job: CrawlJob) -> job_types.Job:
        return self._inner.report(job)

    async def publish(self, job: CrawlJob, seeds: Sequence[Seed] = ()) -> list[job_types.RefusedSeed]:
        return await self._inner.publish(job, seeds)

    async def send_seeds(self, uid: str, seeds: Sequence[Seed]) -> list[job_types.RefusedSeed]:
        return await self._inner.send_seeds(self._known(uid), seeds)

    def expect_seeds(self, job: CrawlJob) -> None:
        self._inner.expect_seeds(job)

    async def resume_held(self, job: CrawlJob) -> bool:
        return await self._inner.resume_held(job)

    async def republish(self, job: CrawlJob) -> None:
        await self._inner.republish(job)

    def _known(self, uid: str) -> str:
        job = self.spec(uid)
        if job is None or job.deleted:
            raise job_view.no_job(self.jobs(), uid)
        return uid

    # ---- URLs

    async def quarantines(self, uid: str) -> list[Quarantine]:
        return await self._inner.quarantines(self._known(uid))

    async def release(self, uid: str, host: str, pattern: str) -> None:
        await self._inner.release(self._known(uid), host, pattern)

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        return await self._inner.forget(job, urls)

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        return await self._inner.try_exclusion(job, exclude)

    async def explain(self, url: str, name: str) -> Explanation:
        if name:
            return await self._inner.explain(url, self._known(name))
        explanations = [await self._inner.explain(url, uid) for uid in list(self.jobs())[:EXPLAINED]]
        return job_view.best(explanations)

    async def hosts(
        self, request: screen_types.ListHosts, jobs: Collection[str] | None = None
    ) -> screen_types.HostList:
        """The numbers of a host are sums over all jobs."""
        if request.job:
            self._known(request.job)
        own = list(self.jobs())[:WITH_HOSTS]
        answer = await self._inner.hosts(request, own)
        for host in answer.hosts:
            host.jobs = [job for job in host.jobs if job in own]
        return answer

    async def set_pace(self, request: screen_types.ChangeHost) -> None:
        raise UserError(CLOSED)

    # ---- single pages

    async def fetch(self, url: str, browser: Browser | None = None) -> StoredPage:
        raise UserError(CLOSED)

    def single_fetches(self, *, rendered: bool = False) -> DownloaderConfig:
        raise UserError(CLOSED)

    # ---- rules

    @property
    def rules(self) -> Mapping[str, ParseRule]:
        return {name: rule for name, rule in self._inner.rules.items() if self._owns(name)}

    def _owns(self, rule: str) -> bool:
        tenant, dot, _ = rule.partition(".")
        return bool(dot) and tenant in self._own

    @property
    def rules_directory(self) -> Path | None:
        return None

    def check_rule_change(self, names: Iterable[str] = ()) -> None:
        listed = list(names)
        for name in listed:
            if not self._owns(name):
                allowed = " or ".join(f"{tenant}.NAME" for tenant in sorted(self._own))
                raise UserError(f"rule {name!r}: a rule of a tenant is named {allowed}")
        self._inner.check_rule_change(listed)

    @property
    def has_functions(self) -> bool:
        return self._inner.has_functions

    def rule_versions(self, name: str) -> Sequence[StoredVersion]:
        return self._inner.rule_versions(name) if self._owns(name) else ()

    async def put_rules(self, rules: Sequence[ParseRule]) -> None:
        self.check_rule_change(rule.name for rule in rules)
        await self._inner.put_rules(rules)

    def verdicts(self) -> Iterable[RuleVerdict]:
        return [verdict for verdict in self._inner.verdicts() if self._owns(verdict.rule)]

    # ---- the system

    def members(self) -> list[system_types.Member]:
        raise UserError(CLOSED)

    def look(self) -> None:
        raise UserError(CLOSED)

    async def complete(self, status: system_types.Status) -> None:
        """Adds nothing: other facts of the system are not visible to tenants."""
        return

    def configuration(self) -> Mapping[str, msgspec.Struct]:
        raise UserError(CLOSED)

    async def topics(self) -> list[system_types.TopicRow]:
        raise UserError(CLOSED)

    async def network(self) -> system_types.Network:
        raise UserError(CLOSED)

    def settings(self) -> dict[str, Any]:
        raise UserError(CLOSED)

    def scope_of(self, member: str, setting: str) -> SettingScope:
        raise UserError(CLOSED)

    async def put_settings(self, changes: Mapping[str, Any]) -> None:
        raise UserError(CLOSED)


class _NoLetters:
    """Hides dead letters, because a message may belong to any job."""

    async def page(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        raise api.Forbidden(CLOSED)

    async def replay(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        raise api.Forbidden(CLOSED)
