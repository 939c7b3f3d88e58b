"""Forget: URLs that have ended leave the seen set by hand, and are crawled again when they are found again. Pure.

A URL is removed by its own key, so another host whose keys share a prefix loses nothing. An open URL (queued, delayed
or outstanding) stays. Rows stay: a later fetch replaces them, since its number is above that of each fetch before.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import ForgottenUrl, Outcome
from nephila.native import UrlError
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.open_urls import OpenUrls
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.jobs.job import Job


class Forgotten(msgspec.Struct):
    """The counts of a request to forget URLs."""

    forgotten: int = 0
    open: int = 0
    """Queued or in flight: they stay."""
    unknown: int = 0
    """The job does not know them."""


def forget_urls(dispatcher: Dispatcher, job: Job, urls: Iterable[tuple[str, Outcome]]) -> Forgotten:
    """Forget URLs, with the next commit. Each comes with how it has ended, UNSPECIFIED where that is not known: it then
    stays in the counts. O(URLs + queued URLs of their hosts)."""
    frontier, counts, opened = dispatcher.frontier, Forgotten(), OpenUrls(dispatcher, job)
    fetch_no = job.fetch_numbers.last + 1
    for url, outcome in urls:
        try:
            parts = parse_for(job.compiled.routes, url)
        except UrlError:
            counts.unknown += 1
            continue
        key = parts.fingerprint
        if key not in job.seen:
            counts.unknown += 1
        elif opened.contains(parts.host_key, key):
            counts.open += 1
        else:
            state = job.due_table.get(key)
            ended = ForgottenUrl(job.uid, key, state.outcome if state is not None else outcome, fetch_no)
            apply(frontier, ended)
            frontier.pending.of(frontier.pending.partition(key)).forgotten.append(ended)
            counts.forgotten += 1
    if counts.forgotten:
        frontier.on_wider(job.uid)  # links that were sent before have to be sent again
        frontier.readiness.resume_hosts(job)
    return counts


def apply(frontier: Frontier, ended: ForgottenUrl) -> None:
    """Forget a URL, now or from the log."""
    job = frontier.jobs.get(ended.job)
    if job is None or not job.seen.discard(ended.url_key):
        return
    job.due_table.remove(ended.url_key)
    job.budget.free(ended.url_key)
    job.fetch_numbers.restore(max(job.fetch_numbers.first, ended.fetch_no), max(job.fetch_numbers.last, ended.fetch_no))
    if ended.outcome:
        frontier.count_ended(job, frontier.pending.partition(ended.url_key), ended.outcome, -1)
