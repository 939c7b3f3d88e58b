"""The state of the scheduler as programs and the control API read it; no other file outside that service reads it.

Nothing is changed. Deleted jobs are not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from nephila.kernel.fragment_routes import parse_for, parse_routed
from nephila.kernel.messages import CrawlJob, JobStatus, Outcome, Quarantine
from nephila.kernel.reasons.fault_note import cause_of
from nephila.native import parse_url
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.standalone import Scheduler
from nephila.storage.read import reader
from nephila.storage.source import Source

from nephila_control import api, job_types, screen_types
from nephila_control.explain.explain import Explanation
from nephila_control.explain.explain import explain as explain_url
from nephila_control.explain.facts import Home
from nephila_control.explain.host_list import HostQuery, HostRows, ListedHost
from nephila_control.job_report import job_report


def job(scheduler: Scheduler, uid: str, rate: float = 0.0) -> job_types.Job:
    """O(1)."""
    answer = job_report(scheduler.frontier.jobs[uid].spec, _status(scheduler, uid), rate)
    answer.browser_s = round(scheduler.frontier.quotas.browser_s(uid), 3)
    answer.freshness = scheduler.freshness(uid)
    return answer


def _status(scheduler: Scheduler, uid: str) -> JobStatus:
    """Computes the status that the coordinator of a job would publish."""
    job, ended = scheduler.frontier.jobs[uid], scheduler.ended(uid)
    quota, window = job.holds.text(Hold.QUOTA), job.holds.text(Hold.WINDOW)
    done = not (job.queue.waiting or job.counts.leased)
    return JobStatus(
        uid,
        job.spec.generation,
        queued=job.queue.length,
        in_flight=job.counts.leased,
        stored=ended[Outcome.STORED],
        denied=ended[Outcome.DENIED],
        failed=ended[Outcome.FAILED],
        dropped=ended[Outcome.DROPPED],
        done=done,
        # Or the budget of each host with queued URLs is.
        spent=job.budget.is_spent or bool(done and job.queue.length and not quota and not window),
        quota=quota,
        window=window,
        links_held=len(job.refused.held),
        links_lost=job.refused.held.lost,
    )


def host_query(request: screen_types.ListHosts, jobs: Collection[str] | None) -> HostQuery:
    """`jobs` are those of the caller; None: all."""
    return HostQuery(
        jobs=[request.job] if request.job else jobs,
        search=request.search,
        name=request.name.lower(),
        sort=request.sort,
        limit=request.limit,
    )


def host_answer(rows: HostRows, asked: int = 0, answered: int = 0) -> screen_types.HostList:
    hosts = [_host(row) for row in rows.hosts]
    return screen_types.HostList(hosts=hosts, total=rows.total, partitions=asked, answered=answered)


def no_host(name: str) -> api.NotFound:
    return api.NotFound(f"host {name[:100]} is not in the frontier; hosts with queued URLs: nephila hosts")


def _host(row: ListedHost) -> screen_types.Host:
    facts = msgspec.structs.asdict(row)
    return screen_types.Host(**facts | {"recent": screen_types.RecentFetches(**row.recent._asdict())})


def quarantine(row: Quarantine) -> job_types.Quarantine:
    return job_types.Quarantine(
        host=row.host,
        pattern=row.place,
        reason=row.reason,
        since=row.since,
        fetches=row.fetches,
        released=row.released,
    )


# ---- explain

CANDIDATES = 20
"""Maximum number of jobs that explain a URL when none is named."""
FETCHES = 5
"""Newest fetches of a URL that an explanation has."""


def explain(
    scheduler: Scheduler,
    uid: str,
    url: str,
    now: float,
    home: Home,
    row: Mapping[str, Any] | None,
    fetches: Sequence[Mapping[str, Any]] = (),
) -> Explanation:
    job = scheduler.frontier.jobs[uid]
    return explain_url(scheduler.dispatcher, job, url, now, row=row, fetches=fetches, running=True, home=home)


def candidates(jobs: Mapping[str, Job], uids: Iterable[str], url: str) -> list[str]:
    """Chooses the jobs that explain a URL: those that have seen it, else one that would admit it, else the first. The
    choice is bounded, because a program may have thousands of jobs."""
    listed = [jobs[uid] for uid in uids if uid in jobs]
    seen = [job.uid for job in listed if parse_for(job.compiled.routes, url).fingerprint in job.seen]
    if seen:
        return seen[:CANDIDATES]
    parts = parse_url(url)
    willing = (job.uid for job in listed if job.scope.decide(parts.href, parts.host_key).admitted)
    return [next(willing, listed[0].uid)] if listed else []


def named(source: Source, jobs: Mapping[str, CrawlJob], name: str, url: str) -> list[str]:
    """Returns what `choose` returns. The error for a deleted job names the row that is left in the database. Reads the
    disk."""
    if name and name not in jobs and is_there(source) and reader.holds(source, name):
        last = row(source, name, url)
        ended = f"{last['outcome']}{'(' + last['reason'] + ')' if last['reason'] else ''}" if last else ""
        says = f"its row of this URL says {ended} at {last['fetched_at']}" if last else "it has no row of this URL"
        raise api.NotFound(f"job {name!r} was deleted, and all it knew but its rows; {says}")
    return choose(jobs, name)


def left_out(source: Source, explanation: Explanation) -> Explanation:
    """Adds to the explanation of an unknown URL the number of links that exceed the limit per page. Reads the disk,
    O(rows)."""
    if explanation.kind == "unknown" and is_there(source):
        pages, links = reader.links_left_out(source, explanation.job)
        if pages:
            explanation.sentence += (
                f" But {pages:,} pages have more links than the limit per page, {links:,} more, and it may be one"
                " of these (meta.links_left_out in their rows)."
            )
    return explanation


def fetches(source: Source, uid: str, url: str, limit: int = FETCHES) -> list[dict[str, Any]]:
    """Returns the last fetches of the URL, the newest last; none before the database exists. Reads the disk, O(fetches
    of the URL)."""
    if not is_there(source):
        return []
    history = next((rows for key in _keys(url) if (rows := reader.history(source, uid, key)[-limit:])), [])
    return [{name: value for name, value in row.items() if name not in ("id", "job", "url_key")} for row in history]


def row(source: Source, uid: str, url: str) -> dict[str, Any] | None:
    """Returns the URL's row in the table `pages` without its text; None before the database exists. Blocks."""
    stored = row_with_meta(source, uid, url)
    if stored is None:
        return None
    cause = cause_of(stored.pop("meta", ""))
    return {**stored, "cause": cause} if cause else stored


def row_with_meta(source: Source, uid: str, url: str) -> dict[str, Any] | None:
    """Adds the metadata to the result of `row`."""
    if not is_there(source):
        return None
    newest = next((row for key in _keys(url) if (row := reader.row(source, uid, key)) is not None), None)
    return None if newest is None else {name: value for name, value in newest.items() if name != "text"}


def _keys(url: str) -> list[bytes]:
    """A job may have a URL under two keys: with its route, and without."""
    return list(dict.fromkeys((parse_routed(url).fingerprint, parse_url(url).fingerprint)))


def is_there(source: Source) -> bool:
    """Whether the database of rows exists yet."""
    return not isinstance(source, Path) or (source / "nephila.db").exists()


def choose(jobs: Mapping[str, CrawlJob], name: str) -> list[str]:
    """Returns the uid of the named job, or those of all jobs without a name. Raises `UserError` for an unknown name."""
    if not name:
        return list(jobs)
    if name not in jobs:
        raise no_job(jobs, name)
    return [name]


def no_job(jobs: Mapping[str, CrawlJob], name: str) -> api.NotFound:
    """The error lists some jobs."""
    return api.NotFound(f"there is no job {name!r}" + (f"; there are {', '.join(list(jobs)[:20])}" if jobs else ""))


def best(explanations: list[Explanation]) -> Explanation:
    """Prefers an explanation with a row, then one with a queue entry or a lease, then one of a job that has seen the
    URL."""
    return min(
        explanations,
        key=lambda verdict: (verdict.row is None, verdict.queued is None and verdict.lease is None, not verdict.seen),
    )
