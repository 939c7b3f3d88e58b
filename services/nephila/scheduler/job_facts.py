"""Facts about jobs and queues of a scheduler, as programs read them; nothing is changed.

No other file outside of the scheduler reads its frontier for a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephila.kernel.messages import CrawlJob, Outcome
from nephila.scheduler.jobs.job_holds import Hold

if TYPE_CHECKING:
    # A program whose groups have the frontier does not load it.
    from nephila.scheduler.standalone import Scheduler

OUTCOMES = (Outcome.STORED, Outcome.DENIED, Outcome.FAILED, Outcome.DROPPED)


def spec(scheduler: Scheduler, uid: str) -> CrawlJob | None:
    """The desired state of a job as the log has it, of a deleted one too; None when it was never there."""
    job = scheduler.frontier.jobs.get(uid)
    return job.spec if job is not None else None


def specs(scheduler: Scheduler) -> dict[str, CrawlJob]:
    return {uid: job.spec for uid, job in scheduler.frontier.jobs.items() if not job.spec.deleted}


def ended_total(scheduler: Scheduler, uid: str) -> int:
    """URLs of a job that have ended."""
    return sum(scheduler.ended(uid).values())


def counts(scheduler: Scheduler) -> dict[str, tuple[int, ...]]:
    """Job → URLs that are queued, in flight, stored, denied, failed and dropped."""
    return {
        uid: (job.queue.length, job.counts.leased, *(job.counts.ended[outcome] for outcome in OUTCOMES))
        for uid, job in scheduler.frontier.jobs.items()
        if not job.spec.deleted
    }


def budget_spent(scheduler: Scheduler, uid: str) -> bool:
    """Whether max_pages pages of a job are stored."""
    job = scheduler.frontier.jobs.get(uid)
    return job is not None and job.budget.is_spent


def quota_used_up(scheduler: Scheduler, uid: str) -> str:
    """Which quota of a job is used up, in words; the empty string without one."""
    job = scheduler.frontier.jobs.get(uid)
    return job.holds.text(Hold.QUOTA) if job is not None else ""


def window_waited_for(scheduler: Scheduler, uid: str) -> str:
    """Which window a job waits for, in words; the empty string for none."""
    job = scheduler.frontier.jobs.get(uid)
    return job.holds.text(Hold.WINDOW) if job is not None else ""


def tenants(scheduler: Scheduler) -> list[str]:
    """Names of the tenants in the settings; empty: jobs may name any tenant."""
    return scheduler.frontier.quotas.tenants()


def page_limit(scheduler: Scheduler, uid: str) -> int:
    """Pages that a job may store; 0 means no limit."""
    job = scheduler.frontier.jobs.get(uid)
    return job.budget.max_pages if job is not None else 0


def out_of_scope(scheduler: Scheduler, uid: str) -> int:
    """Links of this run that the job's scope refused, each URL once as long as it is remembered."""
    job = scheduler.frontier.jobs.get(uid)
    return job.refused.out_of_scope if job is not None else 0


def links_lost(scheduler: Scheduler, uid: str) -> int:
    """Links that the scope of a job refused and that were not held for a wider one."""
    job = scheduler.frontier.jobs.get(uid)
    return job.refused.held.lost if job is not None else 0


def anchors(scheduler: Scheduler, uid: str) -> list[str]:
    """Places a job's scope is anchored at."""
    job = scheduler.frontier.jobs.get(uid)
    return sorted(job.scope.anchors) if job is not None else []


def redirect_anchors(scheduler: Scheduler, uid: str) -> list[str]:
    """Those of them that redirects of seeds have led to in this run, the first ones."""
    job = scheduler.frontier.jobs.get(uid)
    return sorted(job.redirect_anchors) if job is not None else []


def in_flight(scheduler: Scheduler) -> int:
    """Requests without outcome."""
    return len(scheduler.frontier.in_flight.leases)


def left(scheduler: Scheduler) -> int:
    """URLs of all jobs that have not ended."""
    return scheduler.queued + len(scheduler.frontier.in_flight)


def next_fetch(scheduler: Scheduler) -> float | None:
    """Monotonic instant of the next fetch that only waits for time; None when there is none."""
    instants = (scheduler.dispatcher.next_fetch(), scheduler.frontier.holds.next_opening())
    return min((at for at in instants if at is not None), default=None)
