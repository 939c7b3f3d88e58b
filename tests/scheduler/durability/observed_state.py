"""Everything that a frontier knows, in a form that does not depend on clocks and object identity: for comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from nephila.kernel.messages import UrlState
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.frontier.in_flight import LifeState
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import unpack


def observed(dispatcher: Dispatcher, keys: Iterable[bytes]) -> dict[str, Any]:
    """The state of a frontier without what is in flight; `keys`: fingerprints to look for among the seen URLs."""
    frontier = dispatcher.frontier
    delayed = {}
    for when, number, uid, packed in dispatcher.frontier.delayed.items():
        entry = unpack(packed)
        host = frontier.store.name(number)
        delayed[uid, entry.url] = (host, entry.fetch_no, entry.attempts, entry.depth, instant(frontier, when))
    return {
        "jobs": {uid: job_state(frontier, job, keys) for uid, job in frontier.jobs.items()},
        "hosts": {frontier.store.name(number): host_state(frontier, number) for number in frontier.store.ids()},
        "delayed": delayed,
        "quotas": {use.account: (use.since, use.pages, use.bytes) for use in frontier.quotas.dump()},
        "positions": {p.number: (p.epoch, p.sequence, dict(p.ended)) for p in frontier.partitions},
        "deleted": dict(frontier.jobs.deleted),
        "next_job": frontier.jobs.next_number,
    }


def in_flight(frontier: Frontier) -> dict[tuple[str, str], tuple[str, int, int, bool]]:
    """(job, URL) of an outstanding URL → (host, fetch number, attempt, whether only its row is missing)."""
    return {
        (uid, waiting.entry.url): (
            waiting.host.key,
            waiting.entry.fetch_no,
            waiting.attempt,
            waiting.state is LifeState.ENDING,
        )
        for (uid, _), waiting in frontier.in_flight.urls.items()
    }


def instant(frontier: Frontier, monotonic: float) -> float:
    """UTC, in milliseconds: the way over the log rounds."""
    return round(monotonic + frontier.time.utc_offset, 3)


def job_state(frontier: Frontier, job: Job, keys: Iterable[bytes]) -> dict[str, Any]:
    queued = {}
    for number in frontier.store.hosts_of(job.number):
        rows = [unpack(packed) for _, packed in frontier.store.items(number, job.number)]
        queued[frontier.store.name(number)] = [(e.url, e.fetch_no, e.attempts, e.depth) for e in rows]
    return {
        "number": job.number,
        "spec": job.spec,
        "ended": dict(+job.counts.ended),
        "seen": {url_key for url_key in keys if url_key in job.seen},
        "anchors": set(job.scope.anchors),
        "quarantines": dict(job.quarantines),
        "fetch numbers": (job.fetch_numbers.first, job.fetch_numbers.last),
        "queued": queued,
        "watched": {state.url_key: watched(job, state) for state in job.due_table.states()},
        "reserved": set(job.budget.reserved),
        "priority": set(job.budget.priority_refetch),
        "held": {packed[:16]: packed for packed in job.refused.held.packed()},
        "links lost": job.refused.held.lost,
        "domains": domains(job),
    }


def domains(job: Job) -> dict[str, Any]:
    """Domain → requests, failures, hosts and sources."""
    states = job.domains.dump(job.uid) if job.domains is not None else ()
    return {state.domain: (state.requests, state.failures, state.hosts, state.sources) for state in states}


def watched(job: Job, state: UrlState) -> dict[str, Any]:
    """A watched page; its due time means nothing while it is checked out."""
    out = job.due_table.is_checked_out(state.url_key)
    return {**msgspec.structs.asdict(state), "next_at": None if out else round(state.next_at, 3)}


def host_state(frontier: Frontier, number: int) -> dict[str, Any]:
    host: Host = frontier.hosts.get(number)
    pace = host.pace
    late = pace.not_before > frontier.time.now + 1e-3
    return {
        "not_before": instant(frontier, pace.not_before) if late else None,
        "backoff": (pace.backoff_s, instant(frontier, pace.refused_at)) if pace.backoff_s else None,
        "robots": {
            origin: (known.policy, known.text.status, instant(frontier, known.expires))
            for origin, known in host.robots.items()
            if known.expires > frontier.time.now
        },
        "crawl delay": host.crawl_delay_s,
        "uses": {uid: (use.pages, use.bytes) for uid, use in host.uses.items()},
        # How much new text each path brings is measured anew after a restart; what it has closed stays closed.
        "trapped": {uid: dict(part.closed) for uid, part in host.novelty.items() if part.closed},
    }
