"""Queued URLs that are not fetched: they left the scope, belong to a trap, are too many, or are only
recorded. Pure."""

from __future__ import annotations

from typing import Final

from nephila.kernel.reasons.table import Reason
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import (
    RECORD_ONLY,
    SEED,
    TOO_LONG,
    TOO_MANY,
    TOP_OF_LEVEL,
    TOP_OF_PAGE,
    Entry,
)
from nephila.scheduler.traps.url_shape import shape

ODD_SHAPES_ALLOWED = 3
"""URLs with the shape of a trap that are fetched per host anyway. A real page may look odd; a trap has more
than three."""


_NOT_FETCHED: Final = {
    RECORD_ONLY: Reason.LINK_RECORDED,
    TOP_OF_PAGE: Reason.TOP_OF_PAGE,
    TOP_OF_LEVEL: Reason.TOP_OF_LEVEL,
    TOO_MANY: Reason.SITEMAP_LIMIT,
    TOO_LONG: Reason.SITEMAP_CHAIN,
}
"""Special values of `hops` → the reason."""


def unwanted(frontier: Frontier, host: Host, job: Job, entry: Entry) -> Reason | None:
    """Why a queued URL is no longer fetched: it left the scope, or belongs to a trap."""
    if job.rechecks_scope and job.left_scope(entry, host.key):
        return Reason.EXCLUDED
    if entry.hops >= RECORD_ONLY:
        return _NOT_FETCHED[entry.hops]
    if (
        not job.compiled.traps.off
        and job.is_first_fetch(entry.url_key, entry.fetch_no)
        and not entry.flags & SEED
        and entry.url_key not in job.budget.requisites
        and _trap(frontier, host, job, entry)
    ):
        return Reason.TRAP
    return None


def _trap(frontier: Frontier, host: Host, job: Job, entry: Entry) -> str:
    """Why a URL belongs to a trap, or the empty string."""
    reason = shape(entry.url, frontier.time.utc_now)
    if reason and job.run_counts.odd_shapes[host.number] < ODD_SHAPES_ALLOWED:
        job.run_counts.odd_shapes[host.number] += 1
        reason = ""
    if not reason and job.uid in host.novelty:
        judge = host.novelty[job.uid]
        reason = judge.verdict(entry.url)
        if reason and judge.exempt(entry.url):
            return ""
    return reason
