"""The operations on jobs and their URLs.

An operation checks its request, reads the desired state, publishes the next generation and answers.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nephila.kernel.documents import job_document
from nephila.kernel.documents.job_document import document_of, spec_of, urls_of
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.messages import CrawlJob, Seed
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.seeds import url_errors
from nephila.scheduler.jobs.scope import compile_patterns
from nephila.scheduler.tenants.tenants import check_tenant

from nephila_control import api, job_types, job_view
from nephila_control.backend import is_held, next_generation
from nephila_control.forget import urls_to_forget
from nephila_control.job_checks import checked_seeds, source_seeds, with_exclusions
from nephila_control.job_report import job_list
from nephila_control.part import OperationPart


class JobOperations(OperationPart):
    async def apply_job(self, request: job_types.ApplyJob) -> job_types.JobApplied:
        backend = self._backend
        backend.check_change()
        document = job_document.from_json(request.job)
        job = document.job
        sources = source_seeds(document, seeds_follow=request.seeds_follow)
        backend.check_job(document)
        check_tenant(document, backend.tenants)
        before = backend.spec(job.uid)
        present = before if before is not None and not before.deleted else None
        if present is None and len(backend.jobs()) >= api.MAX_JOBS:
            raise UserError(f"there are {api.MAX_JOBS:,} jobs already; delete one first")
        job.generation = before.generation if before is not None else backend.reported_generation(job.uid)
        sent = set(urls_of(spec_of(present))) if present is not None and not backend.at_once else set()
        seeds = [*(Seed(job.uid, url, "job") for url in urls_of(document.spec) if url not in sent), *sources]
        seeds, refused = checked_seeds(seeds, document.spec)
        if job == before:
            return self._applied(job, "unchanged", refused + await backend.send_seeds(job.uid, seeds))
        # The scope is anchored at the seeds. Where they come in pieces the job is paused until all are in: a link to a
        # host whose seed comes later would be out of scope.
        anchored = (
            spec_of(present).scope.mode != document.spec.scope.mode if present is not None else not backend.at_once
        )
        hold = anchored and not job.paused and (request.seeds_follow or len(seeds) > job_types.SEED_BATCH)
        job = next_generation(job, paused=job.paused or hold)
        refused += await backend.publish(job, seeds)
        if hold and request.seeds_follow:
            backend.expect_seeds(job)
        elif hold:
            hold = not await self._resume_held(job.uid, job.generation)
        elif seeds and not request.seeds_follow:
            await backend.republish(job)
        answer = self._applied(job, "changed" if present is not None else "created", refused, held=hold)
        if present is not None and spec_of(present).scope != document.spec.scope:
            answer.links_lost = backend.report(job).links_lost
        return answer

    def _applied(
        self, job: CrawlJob, verdict: Any, refused: list[job_types.RefusedSeed], *, held: bool = False
    ) -> job_types.JobApplied:
        return job_types.JobApplied(
            name=job.uid,
            verdict=verdict,
            generation=self._job(job.uid).generation,
            held=held,
            refused=refused[: job_types.MAX_REFUSED],
            refused_count=len(refused),
        )

    async def _resume_held(self, uid: str, generation: int) -> bool:
        """Continues a held job unless it was changed in the meantime. Returns False if that happens after the
        answer."""
        job = self._backend.spec(uid)
        return job is None or not is_held(job, generation) or await self._backend.resume_held(job)

    async def list_jobs(self, request: job_types.ListJobs) -> job_types.JobList:
        await self._backend.prepare_reports(self._backend.jobs().values())
        jobs = await self._explained(job_list(self._backend, self._shared.job_faults))
        return job_types.JobList(jobs=[job for job in jobs if not request.owner or job.owner == request.owner])

    async def get_job(self, request: job_types.JobName) -> job_types.JobDetail:
        job = self._job(request.name)
        await self._backend.prepare_reports([job])
        (status,) = await self._explained(self._shared.job_faults.mark([(job, self._backend.report(job))]))
        return job_types.JobDetail(status=status, document=document_of(job))

    async def _explained(self, jobs: list[job_types.Job]) -> list[job_types.Job]:
        """Adds what the rows say, where they can be read: the last error, and the most frequent reasons of a job that
        failed."""
        counts = self._shared.fetch_counts
        if failed := {job.name: job for job in jobs if job.failed}:
            for name, error in (await asyncio.to_thread(counts.last_errors, failed)).items():
                failed[name].last_error = error
        failures = {job.name: job.failure for job in jobs if job.failure is not None}
        if failures:
            reasons = await asyncio.to_thread(counts.reasons, failures)
            for name, failure in failures.items():
                if reasons[name]:
                    failure.cause = f"nothing was stored: {reasons[name]}"
        return jobs

    async def pause_job(self, request: job_types.JobName) -> job_types.JobChanged:
        return await self._change(request.name, "paused", paused=True)

    async def resume_job(self, request: job_types.JobName) -> job_types.JobChanged:
        return await self._change(request.name, "resumed", paused=False)

    async def delete_job(self, request: job_types.JobName) -> job_types.JobChanged:
        # Paused as well, so that nothing is dispatched while the job is taken apart.
        return await self._change(request.name, "deleted", deleted=True, paused=True)

    async def _change(self, name: str, verdict: Any, **changed: bool) -> job_types.JobChanged:
        self._backend.check_change()
        job = self._job(name)
        if all(getattr(job, field) == value for field, value in changed.items()):
            return job_types.JobChanged(name=job.uid, verdict="unchanged", generation=job.generation)
        following = next_generation(job, **changed)
        await self._backend.publish(following)
        return job_types.JobChanged(name=job.uid, verdict=verdict, generation=following.generation)

    async def add_seeds(self, request: job_types.AddSeeds) -> job_types.SeedsAdded:
        self._backend.check_change()
        job = self._job(request.name)
        name = job.uid
        seeds, refused = checked_seeds(request.seeds(name), spec_of(job))
        refused += await self._backend.send_seeds(name, seeds)
        held = bool(request.held_generation)
        if request.last and held:
            held = not await self._resume_held(name, request.held_generation)
        elif request.last:
            await self._backend.republish(self._job(name))
        return job_types.SeedsAdded(
            name=name,
            generation=self._job(name).generation,
            held=held,
            refused=refused[: job_types.MAX_REFUSED],
            refused_count=len(refused),
        )

    async def list_quarantines(self, request: job_types.JobName) -> job_types.QuarantineList:
        name = self._job(request.name).uid
        quarantines = await self._backend.quarantines(name)
        return job_types.QuarantineList(name=name, quarantines=[job_view.quarantine(part) for part in quarantines])

    async def release_quarantine(self, request: job_types.ReleaseQuarantine) -> job_types.QuarantineReleased:
        name = self._job(request.name).uid
        await self._backend.release(name, request.host, request.pattern)
        return job_types.QuarantineReleased(name=name, host=request.host, pattern=request.pattern)

    async def try_exclusion(self, request: job_types.ExcludeUrls) -> job_types.ExclusionTried:
        compile_patterns(request.exclude, "exclude")
        return await self._backend.try_exclusion(self._job(request.name), request.exclude)

    async def exclude(self, request: job_types.ExcludeUrls) -> job_types.JobApplied:
        self._backend.check_change()
        compile_patterns(request.exclude, "exclude")
        job = self._job(request.name)
        if request.generation and request.generation != job.generation:
            raise UserError(
                f"job {job.uid!r} was changed since the exclusion was tried (generation {job.generation}); try it again"
            )
        # The seeds stay as they are: none has to be read or sent again.
        document = with_exclusions(document_of(job), request.exclude)
        return await self.apply_job(job_types.ApplyJob(job=document, seeds_follow=True))

    async def forget(self, request: job_types.ForgetUrls) -> job_types.UrlsForgotten:
        job, rows = self._job(request.name), self._backend.rows
        urls = await urls_to_forget(rows, job, request)
        answer = await self._backend.forget(job, urls)
        if answer.forgotten:
            await self._backend.republish(self._job(job.uid))
        return answer

    async def explain(self, request: job_types.ExplainUrl) -> job_types.Explained:
        with url_errors(request.url):
            href = parse_routed(request.url).href
        if not request.job and not self._backend.jobs():
            raise api.NotFound("there is no job yet; see nephila jobs apply")
        return job_types.Explained(explanation=await self._backend.explain(href, request.job))
