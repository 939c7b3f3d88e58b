"""One program and a system over Kafka list jobs alike: this module makes the row from the desired state and the status
of a job. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nephila import __version__
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob, JobStatus

from nephila_control import job_types, system_types

if TYPE_CHECKING:
    from nephila_control.backend import Backend
    from nephila_control.job_faults import JobFaults


def job_report(job: CrawlJob, status: JobStatus, rate: float) -> job_types.Job:
    """`rate` is in finished URLs per second."""
    return job_types.Job(
        name=job.name or job.uid,
        state=_state(job, status),
        generation=job.generation,
        observed_generation=status.generation,
        queued=status.queued,
        in_flight=status.in_flight,
        stored=status.stored,
        denied=status.denied,
        failed=status.failed,
        dropped=status.dropped,
        rate=round(rate, 2),
        quota=status.quota,
        window=status.window,
        links_held=status.links_held,
        links_lost=status.links_lost,
        tenant=job.tenant,
        owner=spec_of(job).owner,
        site=job.site,
    )


def job_list(backend: Backend, faults: JobFaults) -> list[job_types.Job]:
    """Sorted by name."""
    return faults.mark([(job, backend.report(job)) for _, job in sorted(backend.jobs().items())])


def system_status(backend: Backend, started: float) -> system_types.Status:
    """Sums all jobs. `started` is the monotonic instant of the start of the program."""
    jobs = [backend.report(job) for job in backend.jobs().values()]
    return system_types.Status(
        version=__version__,
        kind=backend.kind,
        place=backend.place,
        uptime_s=round(backend.clock.monotonic() - started, 3),
        jobs=len(jobs),
        states=dict(Counter(job.state for job in jobs)),
        queued=sum(job.queued for job in jobs),
        in_flight=sum(job.in_flight for job in jobs),
        stored=sum(job.stored for job in jobs),
        rate=round(sum(job.rate for job in jobs), 2),
    )


def finished(status: JobStatus) -> int:
    return status.stored + status.denied + status.failed + status.dropped


def _state(job: CrawlJob, status: JobStatus) -> job_types.JobState:
    if job.paused:
        return "paused"
    if status.generation < job.generation or status.deleted:
        return "new"
    if status.spent:
        return "limit"
    if status.quota and (status.queued or status.in_flight):
        return "quota"
    if status.window and (status.queued or status.in_flight):
        return "window"
    return "idle" if status.done else "running"
