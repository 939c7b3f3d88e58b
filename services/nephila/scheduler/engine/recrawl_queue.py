"""Recrawl queue: URLs that are due move from a job's due table into the host queues; fetches and sitemaps update it.

A due URL is open again. It does not count among the ended URLs, and the due table holds it as checked out until its
next fetch has ended. The log holds both facts: the queue entry and the new state of the URL.
"""

from __future__ import annotations

import math

from nephila.kernel.messages import FetchRequest, Outcome, Outlinks, QueuedUrl, Receipt, UrlState
from nephila.kernel.pages.requisites import level_of
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.in_flight import Outstanding
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import (
    SEED,
    Entry,
    entry_of,
    fill,
    pack,
    unpack_context,
)
from nephila.scheduler.jobs.strategies import AVERAGE_PRIORITY, HEAD
from nephila.scheduler.recrawl.due_table import REWIND_S

DUE_PER_TURN = 1000
"""URLs of a job that become due in one turn; the next turn takes the rest."""


def queue_due(frontier: Frontier) -> None:
    """Queue the due URLs of all jobs that are not paused. O(1) while nothing is due, else O(jobs)."""
    if not frontier.config.recrawl:
        return
    now = frontier.time.utc_now
    set_back = now < frontier.recrawl_checked_at - REWIND_S
    if frontier.next_recrawl > now and not set_back:
        frontier.recrawl_checked(now, frontier.next_recrawl)
        return
    soonest = math.inf
    for job in frontier.jobs.values():
        if set_back:
            job.due_table.rewind(now)
        if job.compiled.recrawl.active and not job.spec.paused:
            if job.due_table.next_due() <= now:
                for _, state in zip(range(DUE_PER_TURN), job.due_table.due(now), strict=False):
                    requeue(frontier, job, state)
            soonest = min(soonest, job.due_table.next_due())
    frontier.recrawl_checked(now, soonest)


def next_due(frontier: Frontier) -> float | None:
    """When the next URL is due, in monotonic seconds; None for never."""
    first = frontier.next_recrawl if frontier.config.recrawl else math.inf
    return first - frontier.time.utc_offset if first < math.inf else None


def requeue(frontier: Frontier, job: Job, state: UrlState) -> None:
    """Queue the next fetch of an ended URL, whose state is checked out."""
    mark_open(frontier, job, state)
    enqueue(frontier, job, state)


def enqueue(frontier: Frontier, job: Job, state: UrlState) -> None:
    """Queue the next fetch of a URL that does not count among the ended ones."""
    partition = frontier.pending.partition(state.url_key)
    number = frontier.store.host(state.host)
    strategy = job.compiled.strategy
    # With a page budget it has a reservation: a new URL of its host before it could find no budget left.
    head = bool(job.budget.max_pages)
    order = HEAD if head else strategy.order(state.depth, AVERAGE_PRIORITY)
    fetch_no = state.fetch_no + 1
    job.fetch_numbers.note(fetch_no)
    if level_of(state.context):
        job.budget.requisites.add(state.url_key)
    packed = pack(entry_of(state)._replace(fetch_no=fetch_no, priority=AVERAGE_PRIORITY))
    frontier.store.push(number, job.number, order, packed, strategy.newest_first and not head)
    frontier.pending.queued(partition).append(QueuedUrl(job.uid, state.host, packed, head))
    frontier.readiness.newly_queued(number, job, order)


def mark_open(frontier: Frontier, job: Job, state: UrlState) -> None:
    frontier.count_ended(job, frontier.pending.partition(state.url_key), state.outcome, -1)
    if state.outcome is Outcome.STORED:
        job.budget.reserve(state.url_key)


def record_fetch(frontier: Frontier, job: Job, waiting: Outstanding, receipt: Receipt) -> None:
    """A fetch has ended: compute when the next one is due."""
    entry = waiting.entry
    watched = job.compiled.recrawl.watches(bool(entry.flags & SEED))
    old = job.due_table.get(entry.url_key)
    if old is None:
        if not watched and not (job.compiled.recrawl.active and _is_further_page(entry)):
            return
        old = fill(UrlState(job.uid, host=waiting.host.key), entry)
    new = job.compiled.recrawl.after(old, receipt, frontier.time.utc_now)
    if not watched:
        # The table keeps the state for a policy that watches the URL again.
        new.next_at = 0.0
    _keep(frontier, job, new)


def apply_lastmods(frontier: Frontier, job: Job, links: Outlinks) -> None:
    """A sitemap or feed names the last changes of pages."""
    if not job.compiled.recrawl.active:
        return
    for i, lastmod in enumerate(memoryview(links.lastmods).cast("d")):
        if lastmod <= 0:
            continue
        old = job.due_table.get(bytes(links.fingerprints[16 * i : 16 * i + 16]))
        if old is not None and not job.due_table.is_checked_out(old.url_key):
            new = job.compiled.recrawl.after_lastmod(old, lastmod, frontier.time.utc_now)
            if new is not None:
                _keep(frontier, job, new)


def queue_next_pages(frontier: Frontier, links: Outlinks) -> None:
    """Fetch known pages of a list again: the page before them has new links. A page that is open stays as it is."""
    job = frontier.jobs.get(links.job)
    if job is None:
        return
    for at in range(0, len(links.fingerprints), 16):
        state = job.due_table.get(bytes(links.fingerprints[at : at + 16]))
        if state is not None and not job.due_table.is_checked_out(state.url_key):
            job.due_table.check_out(state.url_key)
            requeue(frontier, job, state)


def _is_further_page(entry: Entry) -> bool:
    """Whether a URL is a later page of a list. Its state is kept without a time: the page before it makes it due."""
    context = unpack_context(entry.context)
    return context is not None and context.page > 1


def _keep(frontier: Frontier, job: Job, state: UrlState) -> None:
    job.due_table.put(state)
    if state.next_at > 0:
        frontier.note_recrawl(state.next_at)
    frontier.pending.of(frontier.pending.partition(state.url_key)).urls.append(state)


def make_conditional(request: FetchRequest, job: Job) -> None:
    """Add the validators of the stored copy."""
    state = job.due_table.get(request.url_key)
    if state is not None and state.outcome is Outcome.STORED:
        request.etag, request.last_modified = state.etag, state.last_modified
