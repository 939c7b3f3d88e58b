"""The state of the scheduler as programs and the control API read it; no other file outside that service reads it.

Nothing is changed. Deleted jobs are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nephila.kernel.fragment_routes import parse_for, parse_routed
from nephila.kernel.messages import CrawlJob, JobStatus, Outcome, Quarantine
from nephila.kernel.reasons.fault_note import cause_of
from nephila.native import parse_url
from nephila.scheduler.explain.explain import Explanation
from nephila.scheduler.explain.explain import explain as explain_url
from nephila.scheduler.explain.facts import Home
from nephila.scheduler.explain.host_list import host_list
from nephila.scheduler.frontier.job_state import Hold, Job
from nephila.scheduler.standalone import Scheduler
from nephila.storage.read import reader
from nephila.storage.source import Source

from nephila_control import api, job_types, screen_types
from nephila_control.job_report import job_report


def job(scheduler: Scheduler, uid: str, rate: float = 0.0) -> job_types.Job:
    """How a job stands. O(1)."""
    answer = job_report(scheduler.frontier.jobs[uid].spec, _status(scheduler, uid), rate)
    answer.browser_s = round(scheduler.frontier.quotas.browser_s(uid), 3)
    answer.freshness = scheduler.freshness(uid)
    return answer


def _status(scheduler: Scheduler, uid: str) -> JobStatus:
    """The status that the coordinator of a job would publish."""
    known, ended = scheduler.frontier.jobs[uid], scheduler.ended(uid)
    quota, window = known.hold(Hold.QUOTA), known.hold(Hold.WINDOW)
    done = not (known.waiting or known.leased)
    return JobStatus(
        uid,
        known.spec.generation,
        queued=known.queued,
        in_flight=known.leased,
        stored=ended[Outcome.STORED],
        denied=ended[Outcome.DENIED],
        failed=ended[Outcome.FAILED],
        dropped=ended[Outcome.DROPPED],
        done=done,
        # Or the budget of each host with queued URLs is.
        spent=known.budget_spent or bool(done and known.queued and not quota and not window),
        quota=quota,
        window=window,
        links_held=len(known.held),
        links_lost=known.held.lost,
    )


def hosts(scheduler: Scheduler, request: screen_types.ListHosts, now: float) -> screen_types.HostList:
    """The hosts of a running program, and why each waits. O(`host_list.LOOKED_AT`)."""
    found = host_list(scheduler.dispatcher, now, job=request.job, search=request.search)
    return screen_types.HostList(
        hosts=[screen_types.Host(**one._asdict()) for one in found[: request.limit]], total=len(found)
    )


def quarantine(one: Quarantine) -> job_types.Quarantine:
    """As the API lists it."""
    return job_types.Quarantine(
        host=one.host,
        pattern=one.place,
        reason=one.reason,
        since=one.since,
        fetches=one.fetches,
        released=one.released,
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
    """What became of a URL in a job of a running program."""
    job = scheduler.frontier.jobs[uid]
    return explain_url(scheduler.dispatcher, job, url, now, row=row, fetches=fetches, running=True, home=home)


def candidates(jobs: Mapping[str, Job], uids: Iterable[str], url: str) -> list[str]:
    """The jobs that explain a URL: those that have seen it, else one that would admit it, else the first.
    Bounded, because a program may have thousands of jobs."""
    known = [jobs[uid] for uid in uids if uid in jobs]
    seen = [job.uid for job in known if parse_for(job.routes, url).fingerprint in job.seen]
    if seen:
        return seen[:CANDIDATES]
    parts = parse_url(url)
    willing = (job.uid for job in known if job.scope.decide(parts.href, parts.host_key).admitted)
    return [next(willing, known[0].uid)] if known else []


def named(source: Source, known: Mapping[str, CrawlJob], name: str, url: str) -> list[str]:
    """As `choose`. For a deleted job the error names the row that is left in the database. Reads the disk."""
    if name and name not in known and is_there(source) and reader.holds(source, name):
        last = row(source, name, url)
        ended = f"{last['outcome']}{'(' + last['reason'] + ')' if last['reason'] else ''}" if last else ""
        says = f"its row of this URL says {ended} at {last['fetched_at']}" if last else "it has no row of this URL"
        raise api.NotFound(f"job {name!r} was deleted, and all it knew but its rows; {says}")
    return choose(known, name)


def left_out(source: Source, found: Explanation) -> Explanation:
    """The same explanation. For a URL that was never found it adds how many links were left out, if pages have more
    than are taken from one page. Reads the disk, O(rows)."""
    if found.kind == "unknown" and is_there(source):
        pages, links = reader.links_left_out(source, found.job)
        if pages:
            found.sentence += (
                f" But {pages:,} pages have more links than the limit per page, {links:,} more, and it may be one"
                " of these (meta.links_left_out in their rows)."
            )
    return found


def fetches(source: Source, uid: str, url: str, limit: int = FETCHES) -> list[dict[str, Any]]:
    """The URL's last fetches, the newest last; none before the database is there. Reads the disk, O(its fetches)."""
    if not is_there(source):
        return []
    found = next((rows for key in _keys(url) if (rows := reader.history(source, uid, key)[-limit:])), [])
    return [{name: value for name, value in one.items() if name not in ("id", "job", "url_key")} for one in found]


def row(source: Source, uid: str, url: str) -> dict[str, Any] | None:
    """The URL's row in the table `pages`, without its text; None before the database is there. Blocks."""
    found = row_with_meta(source, uid, url)
    if found is None:
        return None
    cause = cause_of(found.pop("meta", ""))
    return {**found, "cause": cause} if cause else found


def row_with_meta(source: Source, uid: str, url: str) -> dict[str, Any] | None:
    """The same with its metadata."""
    if not is_there(source):
        return None
    found = next((row for key in _keys(url) if (row := reader.row(source, uid, key)) is not None), None)
    return None if found is None else {name: value for name, value in found.items() if name != "text"}


def _keys(url: str) -> list[bytes]:
    """Keys under which a job may have a URL: with its route, and without."""
    return list(dict.fromkeys((parse_routed(url).fingerprint, parse_url(url).fingerprint)))


def is_there(source: Source) -> bool:
    """Whether the database of rows exists yet."""
    return not isinstance(source, Path) or (source / "nephila.db").exists()


def choose(known: Mapping[str, CrawlJob], name: str) -> list[str]:
    """Uids of the job of that name, or of all when none is named. Raises `UserError` for an unknown one."""
    if not name:
        return list(known)
    if name not in known:
        raise no_job(known, name)
    return [name]


def no_job(known: Mapping[str, CrawlJob], name: str) -> api.NotFound:
    """The error for an unknown name; it lists some known ones."""
    return api.NotFound(f"there is no job {name!r}" + (f"; there are {', '.join(list(known)[:20])}" if known else ""))


def best(found: list[Explanation]) -> Explanation:
    """The explanation with a row, else with a queue entry or a lease, else of a job that has seen the URL."""
    waits = (one.queued is None and one.lease is None for one in found)
    ranks = ((one.row is None, away, not one.seen) for one, away in zip(found, waits, strict=True))
    return min(zip(ranks, range(len(found)), found, strict=True))[2]
