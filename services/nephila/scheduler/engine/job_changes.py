"""Changes of a job: a new one, a new desired state, a deletion. Pure."""

from __future__ import annotations

import math

from nephila.kernel.messages import CrawlJob, Outcome
from nephila.scheduler.engine.admission import admit_held
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import unpack
from nephila.scheduler.jobs.strategies import HEAD, TAIL


def put_job(frontier: Frontier, spec: CrawlJob) -> Job | None:
    """Apply and log a new job, a changed one, or a deletion. Held links that a changed scope accepts are admitted."""
    earlier = frontier.jobs.get(spec.uid)
    scope = earlier.compiled.document.scope if earlier is not None else None
    job = apply_job(frontier, spec)
    frontier.pending.of(frontier.partitions[0]).jobs.append(spec)
    if job is not None and earlier is not None and job.compiled.document.scope != scope:
        admit_held(frontier, job)
    return job


def apply_job(frontier: Frontier, spec: CrawlJob, number: int = -1) -> Job | None:
    """Apply the desired state of a job; None when the job is deleted."""
    job = frontier.jobs.get(spec.uid)
    frontier.recrawl_checked(frontier.recrawl_checked_at, -math.inf)
    if spec.deleted:
        frontier.quotas.remove(spec.uid)
        if job is not None:
            _delete(frontier, job)
        return None
    if job is None:
        job = frontier.jobs.add(spec, number)
        frontier.holds.put(job)
        return job
    strategy, unlimited = job.compiled.strategy, not job.budget.max_pages
    held_back = job.domains.release_all() if job.domains is not None else []
    job.change(spec)
    frontier.jobs.note_domains(job)
    frontier.holds.put(job)
    job.reapply_recrawl(frontier.time.utc_now)
    limited = unlimited and _reserve_due_pages(frontier, job)
    if limited or job.compiled.strategy is not strategy:
        _reorder(frontier, job)
    for host in list(job.queue.over_budget_hosts):
        frontier.readiness.update_host_budget(frontier.hosts.get(host), job)
    for number in held_back:
        frontier.readiness.schedule(number)
    frontier.readiness.resume_hosts(job)
    frontier.readiness.reschedule_ready()
    return job


def _delete(frontier: Frontier, job: Job) -> None:
    """Delete all state of a job. Fetches in flight for it free their hosts when they end."""
    job.note_quotas(())
    frontier.jobs.remove(job)
    frontier.readiness.prepared.drop_job(job.number)
    frontier.readiness.leave_empty_lines()
    frontier.in_flight.drop_job(job.uid)
    frontier.pending.drop_job(job.uid)
    for host in frontier.hosts.hot.values():
        host.uses.pop(job.uid, None)
        host.novelty.pop(job.uid, None)
    frontier.readiness.reschedule_ready()


def _reserve_due_pages(frontier: Frontier, job: Job) -> bool:
    """Reserve budget for the stored pages that are due, when a job gets a page budget. Returns whether there are any.
    O(watched URLs)."""
    for state in job.due_table.states() if job.budget.max_pages else ():
        due = state.outcome is Outcome.STORED and job.due_table.is_checked_out(state.url_key)
        if due and (job.uid, state.url_key) not in frontier.in_flight.urls:
            job.budget.reserve(state.url_key)
    return bool(job.budget.reserved)


def _reorder(frontier: Frontier, job: Job) -> None:
    """Requeue all URLs in the order of another strategy, pages with reserved budget first. O(queued URLs)."""
    store, strategy = frontier.store, job.compiled.strategy
    for host in store.hosts_of(job.number):
        items = store.items(host, job.number)
        store.drop_queue(host, job.number)
        for order, packed in items:
            if packed[:16] in job.budget.reserved:
                order = HEAD
            elif order not in (HEAD, TAIL):
                entry = unpack(packed)
                order = strategy.order(entry.depth, entry.priority)
            store.push(host, job.number, order, packed, bool(order) and strategy.newest_first)
