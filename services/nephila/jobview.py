"""What the program reads of the scheduler's insides: no other file outside of that room knows them.

Everything here is a question; only `release` changes something, through the scheduler's own door. Jobs that were
deleted are not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.errors import UserError
from nephila.kernel.messages import CrawlJob, Outcome
from nephila.native import parse_url
from nephila.scheduler.explain import Explanation
from nephila.scheduler.explain import explain as explain_url
from nephila.scheduler.job import Job
from nephila.scheduler.service import Scheduler
from nephila.storage import reader


class JobFacts(msgspec.Struct, kw_only=True):
    """One line of `nephila jobs list`."""

    name: str
    state: str
    """paused; limit (a budget is spent: the job's or that of every host left); running (something is queued or under
    way); idle (all that is known has been fetched)."""
    generation: int
    queued: int
    leased: int
    """Handed out, or on the way to storage."""
    stored: int
    denied: int
    failed: int
    dropped: int
    rate: float = 0.0
    """URLs that ended per second, over the last minute."""
    freshness: dict[str, Any] | None = None
    """p50 and p95 of the staleness, where pages are fetched again; None when it is not known."""


def spec(scheduler: Scheduler, uid: str) -> CrawlJob | None:
    """The desired state of a job as the log has it, of a deleted one too; None when it was never there."""
    job = scheduler.frontier.jobs.get(uid)
    return job.spec if job is not None else None


def specs(scheduler: Scheduler) -> dict[str, CrawlJob]:
    """All jobs by uid."""
    return {uid: job.spec for uid, job in scheduler.frontier.jobs.items() if not job.spec.deleted}


def facts(scheduler: Scheduler, uid: str, rate: float = 0.0) -> JobFacts:
    """How a job stands. O(1)."""
    job = scheduler.frontier.jobs[uid]
    ended = scheduler.ended(uid)
    return JobFacts(
        name=job.spec.name or uid,
        state=_state(job),
        generation=job.spec.generation,
        queued=job.queued,
        leased=job.leased,
        stored=ended[Outcome.STORED],
        denied=ended[Outcome.DENIED],
        failed=ended[Outcome.FAILED],
        dropped=ended[Outcome.DROPPED],
        rate=round(rate, 2),
        freshness=scheduler.freshness(uid),
    )


def _state(job: Job) -> str:
    if job.spec.paused:
        return "paused"
    if job.budget_spent:
        return "limit"
    if job.waiting or job.leased:
        return "running"
    return "limit" if job.queued else "idle"


def ended_total(scheduler: Scheduler, uid: str) -> int:
    """URLs of a job that have ended."""
    return sum(scheduler.ended(uid).values())


def budget_spent(scheduler: Scheduler, uid: str) -> bool:
    """Whether max_pages pages of a job are stored."""
    job = scheduler.frontier.jobs.get(uid)
    return job is not None and job.budget_spent


def anchors(scheduler: Scheduler, uid: str) -> tuple[list[str], set[str]]:
    """Places a job's scope is anchored at, and those of them that seeds of this run contributed themselves."""
    job = scheduler.frontier.jobs.get(uid)
    return (sorted(job.scope.anchors), job.seed_anchors) if job is not None else ([], set())


def in_flight(scheduler: Scheduler) -> int:
    """Requests without outcome."""
    return scheduler.frontier.in_fetch


def left(scheduler: Scheduler) -> int:
    """URLs of all jobs that have not ended."""
    return scheduler.queued + scheduler.frontier.outstanding


def next_fetch(scheduler: Scheduler) -> float | None:
    """Monotonic instant of the next fetch that only waits for time; None when there is none."""
    return scheduler.dispatcher.next_fetch()


def take_refused(scheduler: Scheduler) -> list[tuple[str, str]]:
    """(URL, reason) of seeds that were not admitted since this was asked last."""
    refused, scheduler.refused_seeds = scheduler.refused_seeds, []
    return refused


def quarantines(scheduler: Scheduler, uid: str) -> list[dict[str, Any]]:
    """Parts of hosts that a job no longer fetches from, with their reasons, and those opened again by hand."""
    return [msgspec.structs.asdict(one) for one in scheduler.quarantines(uid)]


def release(scheduler: Scheduler, uid: str, host: str, place: str) -> bool:
    """Take a part of a host out of quarantine; False when it is in none."""
    return scheduler.release(uid, host, place)


# ---- explain


def explain(scheduler: Scheduler, uid: str, url: str, now: float, row: Mapping[str, Any] | None) -> Explanation:
    """What became of a URL in a job of this program, which runs."""
    url_key = parse_url(url).fingerprint
    partition = scheduler.frontier.partition(url_key)
    under_way = partition.outstanding.get((uid, url_key))
    attempts = {(uid, url_key): under_way.attempt} if under_way is not None else {}
    job = scheduler.frontier.jobs[uid]
    return explain_url(scheduler.dispatcher, job, url, now, attempts=attempts, row=row, running=True)


def row(directory: Path, uid: str, url: str) -> dict[str, Any] | None:
    """The URL's row in the table `pages`, without its text; None before the database is there. Reads the disk."""
    if not (directory / "nephila.db").exists():
        return None
    found = reader.row(directory, uid, parse_url(url).fingerprint)
    return None if found is None else {name: value for name, value in found.items() if name not in ("text", "meta")}


def choose(known: Mapping[str, CrawlJob], name: str) -> list[str]:
    """Uids of the job of that name, or of all when none is named. Raises `UserError` for an unknown one."""
    if not name:
        return list(known)
    if name not in known:
        raise UserError(f"there is no job {name!r}" + (f"; there are {', '.join(list(known)[:20])}" if known else ""))
    return [name]


def best(told: list[Explanation]) -> Explanation:
    """Of several jobs the one that knows the URL best has the word."""
    return min(told, key=lambda one: (one.row is None, one.queued is None, not one.seen))
