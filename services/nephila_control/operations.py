"""The operations of the control API: what each means, once, over a `Backend`.

An operation checks its request, reads the desired state, publishes the next generation and answers. Nothing durable is
kept here, so any number of programs may serve one system.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nephila.kernel import live_settings
from nephila.kernel.documents import job_document
from nephila.kernel.documents.job_document import document_of, spec_of, urls_of
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.messages import CrawlJob, ParseRule, Seed
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.seeds import url_errors
from nephila.scheduler.frontier.scope import compile_patterns
from nephila.scheduler.frontier.tenants import check_tenant

from nephila_control import (
    answers,
    api,
    audit_types,
    job_view,
    requests,
    screen_types,
    site_requests,
    stored_rows,
    studio_types,
    system_types,
)
from nephila_control.backend import Backend, is_held, next_generation
from nephila_control.changes import TableChanges
from nephila_control.fetch_counts import FetchCounts
from nephila_control.forget import urls_to_forget
from nephila_control.job_checks import source_seeds, with_exclusions
from nephila_control.job_report import system_status
from nephila_control.rule_documents import read_rules, rule_change, rule_health, rule_list
from nephila_control.search_reader import SearchReader

if TYPE_CHECKING:
    from nephila_control.access.change_log import ChangeLog
    from nephila_control.sites import SiteOperations
    from nephila_control.studio import Studio


class Operations(api.Control):
    """See `nephila_control.api.Control` for its methods."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._started = backend.clock.monotonic()
        self._fetch_counts = FetchCounts(backend.rows)
        self._search_reader = SearchReader(backend.rows) if backend.rows is not None else None

    @property
    def log(self) -> ChangeLog:
        """Who changed what."""
        return self._backend.log

    def within(self, tenants: frozenset[str]) -> Operations:
        """The same for jobs, rows and rules of these tenants alone."""
        # Most programs have no tenants: what limits to them is loaded with the first of their callers.
        from nephila_control.access.tenant_view import TenantBackend

        limited = Operations(TenantBackend(self._backend, tenants))
        limited._started, limited._fetch_counts = self._started, self._fetch_counts
        limited._search_reader = self._search_reader
        return limited

    def jobs(self) -> list[answers.Job]:
        """How all jobs stand, by name."""
        return [self._backend.report(job) for _, job in sorted(self._backend.jobs().items())]

    def states(self) -> dict[str, int]:
        """Jobs by state."""
        return dict(Counter(job.state for job in self.jobs()))

    # ---- jobs

    async def apply_job(self, request: requests.ApplyJob) -> answers.JobApplied:
        backend = self._backend
        backend.check_change()
        document = job_document.from_json(request.job)
        wanted = document.job
        sources = source_seeds(document, seeds_follow=request.seeds_follow)
        backend.check_job(document)
        check_tenant(document, backend.tenants)
        known = backend.spec(wanted.uid)
        present = known if known is not None and not known.deleted else None
        if present is None and len(backend.jobs()) >= api.MAX_JOBS:
            raise UserError(f"there are {api.MAX_JOBS:,} jobs already; delete one first")
        wanted.generation = known.generation if known is not None else backend.reported_generation(wanted.uid)
        sent = set(urls_of(spec_of(present))) if present is not None and not backend.at_once else set()
        seeds = [*(Seed(wanted.uid, url, "job") for url in urls_of(document.spec) if url not in sent), *sources]
        if wanted == known:
            return self._applied(wanted, "unchanged", await backend.send_seeds(wanted.uid, seeds))
        # The scope is anchored at the seeds. Where they come in pieces the job is paused until all are in: a link to a
        # host whose seed comes later would be out of scope.
        anchored = (
            spec_of(present).scope.mode != document.spec.scope.mode if present is not None else not backend.at_once
        )
        hold = anchored and not wanted.paused and (request.seeds_follow or len(seeds) > requests.SEED_BATCH)
        wanted = next_generation(wanted, paused=wanted.paused or hold)
        refused = await backend.publish(wanted, seeds)
        if hold and request.seeds_follow:
            backend.expect_seeds(wanted)
        elif hold:
            hold = not await self._resume_held(wanted.uid, wanted.generation)
        elif seeds and not request.seeds_follow:
            await backend.republish(wanted)
        answer = self._applied(wanted, "changed" if present is not None else "created", refused, held=hold)
        if present is not None and spec_of(present).scope != document.spec.scope:
            answer.links_lost = backend.report(wanted).links_lost
        return answer

    def _applied(
        self, job: CrawlJob, verdict: Any, refused: list[answers.RefusedSeed], *, held: bool = False
    ) -> answers.JobApplied:
        return answers.JobApplied(
            name=job.uid,
            verdict=verdict,
            generation=self._known(job.uid).generation,
            held=held,
            refused=refused[: answers.MAX_REFUSED],
            refused_count=len(refused),
        )

    async def _resume_held(self, uid: str, generation: int) -> bool:
        """Continue a held job, unless it was changed in the meantime; False when that happens after the answer."""
        job = self._backend.spec(uid)
        return job is None or not is_held(job, generation) or await self._backend.resume_held(job)

    async def list_jobs(self, request: requests.Empty) -> answers.JobList:
        return answers.JobList(jobs=self.jobs())

    async def list_directories(self, request: requests.Empty) -> answers.DirectoryList:
        return await self._sites.all_directories(request)

    async def list_sites(self, request: requests.Empty) -> answers.SiteList:
        return await self._sites.all(request)

    async def get_site(self, request: site_requests.SiteName) -> answers.Site:
        return await self._sites.one(request)

    async def apply_sites(self, request: site_requests.ApplySites) -> answers.SitesApplied:
        return await self._sites.apply(request)

    async def delete_site(self, request: site_requests.DeleteSite) -> answers.SiteChange:
        return await self._sites.delete(request)

    async def apply_directory(self, request: site_requests.ApplyDirectory) -> answers.SiteChange:
        return await self._sites.put_directory(request)

    async def delete_directory(self, request: site_requests.DeleteDirectory) -> answers.SiteChange:
        return await self._sites.drop_directory(request)

    @cached_property
    def _sites(self) -> SiteOperations:
        from nephila_control.sites import SiteOperations

        return SiteOperations(self._backend)

    async def get_job(self, request: requests.JobName) -> answers.JobDetail:
        job = self._known(request.name)
        return answers.JobDetail(status=self._backend.report(job), document=document_of(job))

    async def pause_job(self, request: requests.JobName) -> answers.JobChanged:
        return await self._change(request.name, "paused", paused=True)

    async def resume_job(self, request: requests.JobName) -> answers.JobChanged:
        return await self._change(request.name, "resumed", paused=False)

    async def delete_job(self, request: requests.JobName) -> answers.JobChanged:
        # Paused as well, so that nothing is dispatched while the job is taken apart.
        return await self._change(request.name, "deleted", deleted=True, paused=True)

    async def _change(self, name: str, verdict: Any, **changed: bool) -> answers.JobChanged:
        self._backend.check_change()
        known = self._known(name)
        if all(getattr(known, field) == value for field, value in changed.items()):
            return answers.JobChanged(name=known.uid, verdict="unchanged", generation=known.generation)
        wanted = next_generation(known, **changed)
        await self._backend.publish(wanted)
        return answers.JobChanged(name=known.uid, verdict=verdict, generation=wanted.generation)

    async def add_seeds(self, request: requests.AddSeeds) -> answers.SeedsAdded:
        self._backend.check_change()
        name = self._known(request.name).uid
        refused = await self._backend.send_seeds(name, request.seeds(name))
        held = bool(request.held_generation)
        if request.last and held:
            held = not await self._resume_held(name, request.held_generation)
        elif request.last:
            await self._backend.republish(self._known(name))
        return answers.SeedsAdded(
            name=name,
            generation=self._known(name).generation,
            held=held,
            refused=refused[: answers.MAX_REFUSED],
            refused_count=len(refused),
        )

    def _known(self, name: str) -> CrawlJob:
        """The job of that name. Raises `UsageError` without a name, `NotFound` for an unknown one."""
        if not name:
            raise UsageError("a job has to be named")
        job = self._backend.spec(name)
        if job is None or job.deleted:
            raise job_view.no_job(self._backend.jobs(), name)
        return job

    # ---- URLs

    async def list_quarantines(self, request: requests.JobName) -> answers.QuarantineList:
        name = self._known(request.name).uid
        found = await self._backend.quarantines(name)
        return answers.QuarantineList(name=name, quarantines=[job_view.quarantine(one) for one in found])

    async def release_quarantine(self, request: requests.ReleaseQuarantine) -> answers.QuarantineReleased:
        name = self._known(request.name).uid
        await self._backend.release(name, request.host, request.pattern)
        return answers.QuarantineReleased(name=name, host=request.host, pattern=request.pattern)

    async def try_exclusion(self, request: requests.ExcludeUrls) -> answers.ExclusionTried:
        compile_patterns(request.exclude, "exclude")
        return await self._backend.try_exclusion(self._known(request.name), request.exclude)

    async def exclude(self, request: requests.ExcludeUrls) -> answers.JobApplied:
        self._backend.check_change()
        compile_patterns(request.exclude, "exclude")
        job = self._known(request.name)
        if request.generation and request.generation != job.generation:
            raise UserError(
                f"job {job.uid!r} was changed since the exclusion was tried (generation {job.generation}); try it again"
            )
        # The seeds stay as they are: none has to be read or sent again.
        wanted = with_exclusions(document_of(job), request.exclude)
        return await self.apply_job(requests.ApplyJob(job=wanted, seeds_follow=True))

    async def forget(self, request: requests.ForgetUrls) -> answers.UrlsForgotten:
        job, rows = self._known(request.name), self._backend.rows
        urls = await urls_to_forget(rows, job, request)
        answer = await self._backend.forget(job, urls)
        if answer.forgotten:
            await self._backend.republish(self._known(job.uid))
        return answer

    async def explain(self, request: requests.ExplainUrl) -> answers.Explained:
        with url_errors(request.url):
            href = parse_routed(request.url).href
        if not request.job and not self._backend.jobs():
            raise api.NotFound("there is no job yet; see nephila jobs apply")
        return answers.Explained(explanation=await self._backend.explain(href, request.job))

    # ---- what screens show

    async def list_pages(self, request: screen_types.ListPages) -> screen_types.PageList:
        return await asyncio.to_thread(stored_rows.page_list, self._backend.rows, request, self._rows_of(request.job))

    async def search_pages(self, request: screen_types.SearchPages) -> screen_types.SearchResults:
        def search() -> screen_types.SearchResults:
            return stored_rows.search_results(self._backend.rows, request, self._rows_of(request.job))

        found = await asyncio.to_thread(search)
        if found.behind and self._search_reader is not None and await self._search_reader.read_on():
            found = await asyncio.to_thread(search)
        return found

    async def get_page(self, request: screen_types.GetPage) -> screen_types.PageDetail:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(
            stored_rows.page_detail, self._backend.rows, request, jobs, self._backend.captures
        )

    async def list_links_in(self, request: screen_types.GetPage) -> screen_types.LinksIn:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(stored_rows.links_in, self._backend.rows, request, jobs)

    async def get_screenshot(self, request: screen_types.GetScreenshot) -> screen_types.Screenshot:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(
            stored_rows.screenshot, self._backend.rows, request, jobs, self._backend.captures
        )

    async def list_items(self, request: screen_types.ListItems) -> screen_types.ItemList:
        return await asyncio.to_thread(stored_rows.item_list, self._backend.rows, request, self._rows_of(request.job))

    @cached_property
    def _audit(self) -> ModuleType:
        return import_module("nephila_control.audit")

    async def list_samples(self, request: requests.Empty) -> audit_types.SampleList:
        return await asyncio.to_thread(self._audit.sample_list, self._backend.rows)

    async def draw_sample(self, request: audit_types.DrawSample) -> audit_types.SampleOf:
        return await asyncio.to_thread(self._audit.draw, self._backend.rows, request)

    async def get_sample(self, request: audit_types.GetSample) -> audit_types.SampleDetail:
        return await asyncio.to_thread(self._audit.detail, self._backend.rows, request)

    async def label_row(self, request: audit_types.LabelRow) -> audit_types.RowLabelled:
        return await asyncio.to_thread(self._audit.label, self._backend.rows, request)

    async def get_audit_outcome(self, request: audit_types.GetAuditOutcome) -> audit_types.AuditOutcomeOf:
        return await asyncio.to_thread(self._audit.outcome, self._backend.rows, request)

    async def compare_frequencies(self, request: audit_types.CompareFrequencies) -> audit_types.FrequenciesCompared:
        what_if = import_module("nephila_control.what_if")  # the harvest is loaded by the first request
        return await asyncio.to_thread(what_if.compared, self._backend.rows, request)

    async def count_outcomes(self, request: screen_types.OfJob) -> screen_types.OutcomeCounts:
        return await asyncio.to_thread(self._fetch_counts.read, self._rows_of(request.job))

    def _rows_of(self, job: str) -> Collection[str] | None:
        """The jobs whose rows answer a request for one job, or for all of them; None: all rows."""
        own = self._backend.own_jobs
        if job:
            return [job] if own is None or job in own else []
        return own

    async def get_series(self, request: screen_types.OfJob) -> screen_types.Series:
        jobs = [self._known(request.job)] if request.job else list(self._backend.jobs().values())
        reports = [self._backend.report(job) for job in jobs]
        return self._backend.series.read(self._rows_of(request.job), reports, self._backend.clock)

    async def list_hosts(self, request: screen_types.ListHosts) -> screen_types.HostList:
        if request.job:
            self._known(request.job)
        return await self._backend.hosts(request)

    # ---- rules

    async def list_rules(self, request: requests.Empty) -> answers.RuleList:
        return rule_list(self._backend.rules.values())

    async def apply_rules(self, request: requests.ApplyRules) -> answers.RulesApplied:
        self._backend.check_rule_change()
        wanted = read_rules(request.rules)
        self._backend.check_rule_change(rule.name for rule in wanted)
        before = dict(self._backend.rules)
        if changed := [rule for rule in wanted if before.get(rule.name) != rule]:
            await self._backend.put_rules(changed)
        has_functions = self._backend.has_functions
        changes = [rule_change(before.get(rule.name), rule, has_functions=has_functions) for rule in wanted]
        return answers.RulesApplied(rules=changes)

    async def delete_rule(self, request: requests.RuleName) -> answers.RuleChange:
        self._backend.check_rule_change([request.name])
        if request.name not in self._backend.rules:
            raise api.NotFound(f"there is no rule {request.name!r}")
        await self._backend.put_rules([ParseRule(request.name, deleted=True)])
        return answers.RuleChange(name=request.name, verdict="deleted")

    async def rule_health(self, request: requests.Empty) -> answers.RuleHealthList:
        return rule_health(self._backend.verdicts())

    async def get_body(self, request: screen_types.GetBody) -> screen_types.Body:
        return await self._studio.body(request)

    # ---- the studio

    @cached_property
    def _studio(self) -> Studio:
        # What reads pages of rules is loaded by the first request: a crawl without viewers does without.
        from nephila_control.studio import Studio

        return Studio(self._backend, self.explain)

    async def list_studio_pages(self, request: studio_types.ListStudioPages) -> studio_types.StudioPages:
        return await self._studio.pages(request)

    async def open_studio_page(self, request: studio_types.OpenStudioPage) -> studio_types.StudioDraft:
        return await self._studio.open(request)

    async def render_studio_page(self, request: studio_types.RenderStudioPage) -> studio_types.StudioDraft:
        return await self._studio.render(request)

    async def studio_step(self, request: studio_types.StudioStep) -> studio_types.StudioDraft:
        return await self._studio.step(request)

    async def studio_view(self, request: studio_types.OfDraft) -> studio_types.StudioView:
        return await self._studio.view(request)

    async def studio_frame(self, request: studio_types.StudioFrameOf) -> studio_types.StudioFrame:
        return await self._studio.frame(request)

    async def studio_rule(self, request: studio_types.OfDraft) -> studio_types.StudioRule:
        return await self._studio.rule(request)

    async def studio_commit(self, request: studio_types.CommitRule) -> studio_types.RuleCommitted:
        return await self._studio.commit(request)

    # ---- the system

    async def list_changes(self, request: requests.ListChanges) -> answers.ChangeList:
        return await TableChanges(self._backend.rows, self._rows_of(request.job)).list_changes(request)

    async def list_dead_letters(self, request: requests.ListDeadLetters) -> answers.DeadLetterList:
        return await self._backend.letters.page(request)

    async def replay_dead_letters(self, request: requests.ReplayDeadLetters) -> answers.ReplayedList:
        return await self._backend.letters.replay(request)

    async def list_members(self, request: requests.Empty) -> answers.MemberList:
        return answers.MemberList(members=self._backend.members())

    async def status(self, request: requests.Empty) -> answers.Status:
        status = system_status(self._backend, self.jobs(), self._started)
        await self._backend.complete(status)
        return status

    async def get_settings(self, request: requests.Empty) -> answers.Settings:
        return answers.Settings(settings=dict(sorted(self._backend.settings().items())))

    async def change_settings(self, request: requests.ChangeSettings) -> answers.Settings:
        changes = {
            live_settings.key_of(self._backend.scope_of(request.member, name), name): value
            for name, value in request.settings.items()
        }
        if problems := [text for change in changes.items() if (text := live_settings.check(*change))]:
            raise UsageError("; ".join(problems))
        await self._backend.put_settings(changes)
        return await self.get_settings(requests.Empty())

    async def get_configuration(self, request: system_types.ListConfiguration) -> system_types.Configuration:
        from nephila_control.system_views import configuration

        return configuration(self._backend.configuration(), request)

    async def get_network(self, request: requests.Empty) -> system_types.Network:
        from nephila_control.system_views import network

        return network(self._backend.downloaders())

    async def list_topics(self, request: requests.Empty) -> system_types.TopicList:
        return system_types.TopicList(topics=await self._backend.topics())

    async def list_webhooks(self, request: requests.Empty) -> system_types.WebhookList:
        return await asyncio.to_thread(
            import_module("nephila_control.system_views").webhooks, stored_rows.there(self._backend.rows)
        )

    async def list_control_log(self, request: requests.ListControlLog) -> answers.ControlLog:
        return await self.log.read(request)
