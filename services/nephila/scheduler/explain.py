"""What the frontier knows of one URL, and why it is where it is: `nephila explain`. Pure; changes nothing.

Works on a frontier restored from its log, of a crawl that runs, has stopped or has finished. A URL the frontier has
never seen is judged anew: would it be admitted? Every explanation ends in one sentence for people, which begins with
"Stored at", "Not crawled", "Waiting" or "Never found".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from nephila.native import parse_url
from nephila.scheduler.admission import HEAD
from nephila.scheduler.dispatch import Dispatcher
from nephila.scheduler.entry import Entry, unpack
from nephila.scheduler.host import Host, OriginRobots
from nephila.scheduler.job import Job
from nephila.scheduler.robots import origin_of

LOOKED_AT = 100_000
"""URLs of a host's queue that are searched for the one in question."""

State = Literal["stored", "not_crawled", "waiting", "never_found"]


class ScopeFact(msgspec.Struct):
    """Whether the URL belongs to the job as a link at depth 0, and the rule that says so."""

    admitted: bool
    rule: str


class RobotsFact(msgspec.Struct):
    """robots.txt of the URL's origin as stored. `line` is 0 when no line decides."""

    origin: str
    policy: str
    allowed: bool
    line: int
    rule: str
    status: int
    reason: str
    fetched_at: float
    expired: bool


class QueuedFact(msgspec.Struct):
    """Where the URL waits; `position` counts from 1 among the `of` URLs of its host and job."""

    position: int
    of: int
    head: bool
    depth: int
    fetch_no: int
    attempts: int
    not_before: float
    """Seconds since 1970 UTC; 0 when it waits for its turn, not for an instant of its own."""


class HostFact(msgspec.Struct):
    """Pace of the host. Instants are seconds since 1970 UTC."""

    queued: int
    delay_s: float
    backoff_s: float
    wait_s: float
    """Seconds until the host may be fetched from."""
    not_before: float
    address: str


class Explanation(msgspec.Struct):
    """All of it. A fact that does not apply is None."""

    url: str
    canonical: str
    host_key: str
    url_key: str
    partition: int
    job: str
    seen: bool
    scope: ScopeFact
    robots: RobotsFact | None
    robots_ignored: bool
    queued: QueuedFact | None
    under_way: int
    """Number of the try that was handed out and has not ended; 0 when none."""
    host: HostFact | None
    row: dict[str, Any] | None
    state: State = "waiting"
    sentence: str = ""


def explain(
    dispatcher: Dispatcher,
    job: Job,
    url: str,
    now: float,
    *,
    attempts: Mapping[tuple[str, bytes], int] | None = None,
    row: Mapping[str, Any] | None = None,
    running: bool = False,
) -> Explanation:
    """Facts and sentence for a URL of a job; `UrlError` when it is no http(s) URL. O(queue of its host).

    `attempts` is what `restore` found handed out, `row` the URL's row in the table `pages`, `now` monotonic seconds.
    """
    parts = parse_url(url)
    frontier = dispatcher.frontier
    key = parts.fingerprint
    partition = frontier.partition(key)
    host = frontier.hosts.known(parts.host_key)
    placed = _queued(dispatcher, host, job, key)
    entry, queued = placed if placed else (None, None)
    verdict = job.scope.decide(parts.href, parts.host_key)
    result = Explanation(
        url=parts.href,
        canonical=parts.canonical,
        host_key=parts.host_key,
        url_key=key.hex(),
        partition=partition.number,
        job=job.uid,
        seen=key in job.seen,
        scope=ScopeFact(verdict.admitted, verdict.rule),
        robots=_robots(dispatcher, host, parts.href, parts.host_key, now),
        robots_ignored=job.ignore_robots,
        queued=queued,
        under_way=(attempts or {}).get((job.uid, key), 0),
        host=_host(dispatcher, host, job, now),
        row=dict(row) if row is not None else None,
    )
    if row is not None:
        result.state, text = _ended(result, row)
    elif entry is not None and queued is not None:
        result.state, text = _waiting(result, job, entry, queued, running)
    elif result.under_way:
        text = f"try {result.under_way} of it is under way"
    elif result.seen:
        result.state, text = "not_crawled", "it has ended, but nephila.db, where its row was, has none of it"
    else:
        result.state, text = _unseen(result, job)
    result.sentence = _OPENINGS[result.state] + text.rstrip(".") + "."
    return result


_OPENINGS: dict[State, str] = {
    "stored": "Stored at ",
    "not_crawled": "Not crawled: ",
    "waiting": "Waiting: ",
    "never_found": "Never found: ",
}


# ---- facts


def _queued(dispatcher: Dispatcher, host: Host | None, job: Job, key: bytes) -> tuple[Entry, QueuedFact] | None:
    """The URL among those kept aside until an instant, or in the queue of its host."""
    if host is None:
        return None
    store = dispatcher.frontier.store
    of = store.length(host.number, job.number)
    for when, number, uid, packed in dispatcher.delayed():
        if number == host.number and uid == job.uid and packed.startswith(key):
            entry = unpack(packed)
            not_before = when + dispatcher.frontier.utc_offset
            return entry, QueuedFact(1, of + 1, True, entry.depth, entry.fetch_no, entry.attempts, not_before)
    for position, (order, packed) in enumerate(store.items(host.number, job.number, LOOKED_AT), 1):
        if packed.startswith(key):
            entry = unpack(packed)
            fact = QueuedFact(position, of, order == HEAD, entry.depth, entry.fetch_no, entry.attempts, 0.0)
            return entry, fact
    return None


def _robots(dispatcher: Dispatcher, host: Host | None, url: str, host_key: str, now: float) -> RobotsFact | None:
    origin = origin_of(url, host_key)
    known: OriginRobots | None = host.robots.get(origin) if host is not None else None
    if known is None:
        return None
    agent = dispatcher.frontier.config.agent
    line, rule = 0, ""
    if known.rules is not None:
        allowed, line, rule = known.rules.decide(agent, parse_url(url).path_query)
    else:
        allowed = known.allows(agent, url)
    text = known.text
    return RobotsFact(
        origin, known.policy, allowed, line, rule, text.status, text.reason, text.fetched_at, known.expires <= now
    )


def _host(dispatcher: Dispatcher, host: Host | None, job: Job, now: float) -> HostFact | None:
    if host is None:
        return None
    wait_s = max(host.pace.not_before - now, 0.0)
    return HostFact(
        queued=dispatcher.frontier.store.queued(host.number),
        delay_s=dispatcher.frontier.delay_s(host, job),
        backoff_s=host.pace.backoff_s,
        wait_s=wait_s,
        not_before=host.pace.not_before + dispatcher.frontier.utc_offset if wait_s else 0.0,
        address=host.address,
    )


# ---- sentences


def _ended(known: Explanation, row: Mapping[str, Any]) -> tuple[State, str]:
    """The URL has its row: what that says."""
    outcome, reason = row.get("outcome", ""), row.get("reason", "")
    if outcome == "stored":
        size = f"{row.get('bytes', 0):,} bytes"
        return "stored", f"{row.get('fetched_at', '')}: status {row.get('status', 0)}, {size}, in the table pages"
    return "not_crawled", _refusal(known, row, str(outcome), str(reason))


def _refusal(known: Explanation, row: Mapping[str, Any], outcome: str, reason: str) -> str:
    if outcome == "denied" and reason == "robots":
        robots = known.robots
        return _forbidden(robots) if robots is not None and not robots.allowed else "robots.txt forbade it"
    if outcome == "denied" and reason == "address":
        return "its host has only addresses that are not public; --allow-private opens them"
    if outcome == "dropped" and reason == "redirect":
        return f"it redirects to {row.get('final_url', '')}, which has an explanation of its own"
    if outcome == "dropped" and reason == "content_type":
        return f"its content type {row.get('content_type', '')} is not wanted"
    if outcome == "dropped" and reason == "excluded":
        return f"the scope no longer admits it ({known.scope.rule})"
    status = f", status {row['status']}" if row.get("status") else ""
    return f"{outcome} ({reason}{status}) at {row.get('fetched_at', '')}"


def _waiting(known: Explanation, job: Job, entry: Entry, queued: QueuedFact, running: bool) -> tuple[State, str]:
    """The URL is queued or handed out: the first thing in its way."""
    left = job.left_scope(entry, known.host_key)
    if left:
        return "not_crawled", f"the scope no longer admits it ({left})"
    robots = known.robots
    if robots is not None and not robots.allowed and not robots.expired and not job.ignore_robots:
        return "not_crawled", _forbidden(robots)
    if known.under_way and running:
        return "waiting", f"try {known.under_way} of it is under way"
    text = _way(known, job, queued)
    return "waiting", text if running else f"{text}; the crawl is not running, --resume continues it"


def _way(known: Explanation, job: Job, queued: QueuedFact) -> str:
    if known.under_way:
        return f"try {known.under_way} of it was under way when the crawl ended, so it is fetched again"
    if job.budget_spent:
        return f"--max-pages {job.max_pages} is reached; a larger one takes it up"
    if job.spec.paused:
        return "the job is paused"
    if queued.not_before:
        return f"try {queued.attempts + 1} of it is due at {utc(queued.not_before)}"
    host = known.host
    if host is not None and host.wait_s > 0:
        until = utc(host.not_before)
        if host.backoff_s > 0 or host.wait_s > host.delay_s + 1:
            return f"{known.host_key} gets a pause until {until}, because it refused or timed out"
        return f"{known.host_key} is fetched from every {host.delay_s:g} s, next at {until}"
    if queued.position > 1:
        ahead = queued.position - 1
        return f"{ahead:,} URL{'s' if ahead > 1 else ''} of {known.host_key} go{'es' if ahead == 1 else ''} before it"
    if not job.ignore_robots and (known.robots is None or known.robots.expired):
        return f"robots.txt of {known.host_key} is asked first"
    return f"it is the next of {known.host_key}"


def _forbidden(robots: RobotsFact) -> str:
    if robots.policy == "rules":
        return f"robots.txt forbids it (line {robots.line}: {robots.rule})"
    if robots.policy == "failed":
        return f"its host cannot be reached ({robots.reason})"
    what = f"answered {robots.status}" if robots.status else f"could not be fetched ({robots.reason})"
    return f"robots.txt of {robots.origin} {what}, which forbids everything for now"


def _unseen(known: Explanation, job: Job) -> tuple[State, str]:
    """Nothing of the crawl has met the URL: what would become of it."""
    if not known.scope.admitted:
        return "not_crawled", known.scope.rule
    depth = f" within depth {job.scope.max_depth}" if job.scope.max_depth >= 0 else ""
    text = f"no page fetched so far links to it{depth}; "
    robots = known.robots
    if robots is not None and not robots.allowed and not job.ignore_robots:
        return "never_found", f"{text}if one did, it would still be denied: {_forbidden(robots)}"
    return "never_found", f"{text}if one did, it would be crawled ({known.scope.rule})"


def utc(seconds: float) -> str:
    """An instant as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
