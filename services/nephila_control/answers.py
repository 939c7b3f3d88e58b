"""The answers of the control API, typed, and the words for the states of jobs and members."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from nephila.scheduler.explain.explain import Explanation

from nephila_control.site_answers import Directory as Directory
from nephila_control.site_answers import DirectoryList as DirectoryList
from nephila_control.site_answers import ListState as ListState
from nephila_control.site_answers import Site as Site
from nephila_control.site_answers import SiteChange as SiteChange
from nephila_control.site_answers import SiteList as SiteList
from nephila_control.site_answers import SitesApplied as SitesApplied

MAX_REFUSED = 100
"""Refused seeds listed in one answer; beyond that only their number."""
JobState = Literal["new", "running", "paused", "limit", "quota", "window", "idle"]
"""new: no scheduler has reported on the newest generation yet. running: URLs are queued or in flight. paused: nothing
is dispatched. limit: a budget is spent, of the job or of every host that is left. quota: a quota of the job, its site
or its tenant is used up. window: no window of the job is open. idle: every known URL is finished."""
SystemKind = Literal["crawl", "up", "cluster"]
MemberState = Literal["starting", "ready", "not_ready", "draining", "ended", "silent"]
"""silent: no report for three intervals."""


class Job(msgspec.Struct, kw_only=True):
    """How one job stands."""

    name: str
    state: JobState
    generation: int
    """Of the desired state; every change adds one."""
    observed_generation: int
    """Of the desired state that the counts belong to."""
    queued: int
    in_flight: int
    """URLs handed out and not yet finished."""
    stored: int
    denied: int
    failed: int
    dropped: int
    rate: float = 0.0
    """Finished URLs per second, over the last minute."""
    quota: str = ""
    """Which quota is used up, and until when."""
    window: str = ""
    """Which window the job waits for, and until when."""
    links_held: int = 0
    links_lost: int = 0
    """Links that the scope refuses: held for a wider scope, and not held because of the limit."""
    tenant: str = ""
    site: str = ""
    """What the job belongs to."""
    browser_s: float = 0.0
    """Seconds in a browser; over Kafka 0."""
    freshness: dict[str, Any] | None = None
    """p50 and p95 of the staleness, where pages are fetched again; null when it is not known."""
    reported_s: float = 0.0
    """Seconds since a scheduler reported on the job."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of the newest generation is in flight, and nothing more is dispatched before somebody changes
        the job or a new period of its quota begins. A job that waits for its window has not ended."""
        ends = self.state in ("idle", "limit", "quota", "paused")
        return ends and not self.in_flight and self.observed_generation >= self.generation

    @property
    def held_by(self) -> str:
        """What holds the job in its state, and until when; empty in any other state."""
        return {"quota": self.quota, "window": self.window}.get(self.state, "")


class JobList(msgspec.Struct, kw_only=True):
    """All jobs by name."""

    jobs: list[Job]


class JobDetail(msgspec.Struct, kw_only=True):
    """One job and its desired state."""

    status: Job
    document: dict[str, Any]
    """Its CrawlJob document, with every default; sitemaps and feeds among the seeds are left out."""


class RefusedSeed(msgspec.Struct, kw_only=True):
    """A seed that was not admitted."""

    url: str
    reason: str


class SeedsAdded(msgspec.Struct, kw_only=True):
    """What became of seeds."""

    name: str
    generation: int
    refused: list[RefusedSeed]
    refused_count: int
    held: bool = False
    """The job is paused until its seeds are in: they anchor its scope."""


class JobApplied(SeedsAdded, kw_only=True):
    """What an apply changed."""

    verdict: Literal["created", "changed", "unchanged"]
    links_lost: int = 0
    """The scope has changed, and this many links that it refused before were not held. They are found again only when
    their pages are fetched again."""


class JobChanged(msgspec.Struct, kw_only=True):
    """What a change did."""

    name: str
    verdict: Literal["paused", "resumed", "deleted", "unchanged"]
    generation: int


class Quarantine(msgspec.Struct, kw_only=True):
    """A part of a host that a job no longer fetches from, or one that was released by hand."""

    host: str
    pattern: str
    reason: str
    since: float
    """Seconds since 1970 UTC."""
    fetches: int
    released: bool


class QuarantineList(msgspec.Struct, kw_only=True):
    """The quarantines of a job."""

    name: str
    quarantines: list[Quarantine]


class ExclusionTried(msgspec.Struct, kw_only=True):
    """What an exclusion would remove from the queue of a job. URLs that are fetched meanwhile may count or not."""

    name: str
    generation: int
    """Of the job, when it was tried."""
    queued: int
    """URLs in the queue."""
    looked_at: int
    removed: int
    """Of those that were looked at."""
    complete: bool
    """False: not all queued URLs were looked at, and `removed` is a lower bound."""
    examples: list[str]
    """Up to 20 of those that would be removed, chosen at random."""


class QuarantineReleased(msgspec.Struct, kw_only=True):
    """A part of a host is fetched from again."""

    name: str
    host: str
    pattern: str
    verdict: Literal["released"] = "released"


class UrlsForgotten(msgspec.Struct, kw_only=True):
    """What became of the URLs."""

    name: str
    forgotten: int
    open: int = 0
    """Queued or in flight: they stay."""
    unknown: int = 0
    """The job does not know them."""


class Explained(msgspec.Struct, kw_only=True):
    """What became of a URL: all facts, a kind and one sentence (docs/explain.md)."""

    explanation: Explanation


class Rule(msgspec.Struct, kw_only=True):
    """A rule that pages are read by."""

    name: str
    version: int
    document: dict[str, Any]


class RuleList(msgspec.Struct, kw_only=True):
    """All rules by name."""

    rules: list[Rule]


class RuleChange(msgspec.Struct, kw_only=True):
    """What a change did to one rule."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "deleted"]
    version: int = 0
    warning: str = ""
    """Why fields of the rule stay empty in this program, with the remedy. Services over Kafka log it instead."""


class RulesApplied(msgspec.Struct, kw_only=True):
    """What an apply changed, in the order of the request."""

    rules: list[RuleChange]


class RuleHealth(msgspec.Struct, kw_only=True):
    """Whether a rule still fits its site."""

    rule: str
    version: int
    degraded: bool
    findings: str = ""
    """What is different from before, in one line."""
    since: float = 0.0
    """Seconds since 1970 UTC at which the rule became degraded; 0 while it is not."""
    pages: int
    fill_rate: float
    """Share of its last pages that had items."""


class RuleHealthList(msgspec.Struct, kw_only=True):
    """Degraded rules first, then by name."""

    rules: list[RuleHealth]


class Change(msgspec.Struct, kw_only=True):
    """A page that is new, changed, moved, gone or returned."""

    seq: int
    """Rises in the order of commits."""
    id: str
    """Stable; the same for a change that is delivered twice."""
    at: str
    """When it was recorded, ISO 8601 in UTC."""
    job: str
    url: str
    url_key: str
    fetch_no: int
    change: str
    """new, changed, moved (a redirect), gone (404 or 410), or returned: moved or gone before, now with its old text."""
    title: str
    fetched_at: str
    old_hash: str
    text_hash: str
    diff: str
    """Of a changed text: removed lines after -, added lines after +, 4,000 characters at most."""


class ChangeList(msgspec.Struct, kw_only=True):
    """Some changes."""

    changes: list[Change]
    next: str
    """Pass it as `since` for what follows."""


class DeadLetter(msgspec.Struct, kw_only=True):
    """A message that a service could not process."""

    id: str
    """PARTITION:OFFSET of the topic `dead`; .N behind it where a record holds several."""
    at: float
    """Seconds since 1970 UTC."""
    service: str
    topic: str
    message: str
    """The type of the message, as `Page`."""
    job: str
    url: str
    url_key: str
    partition: int
    attempts: int
    error: str
    bytes: int
    refused: str
    """Why its message is not published again; empty when it can be."""


class DeadLetterList(msgspec.Struct, kw_only=True):
    """Some dead letters."""

    dead_letters: list[DeadLetter]
    next: str = ""
    """Pass it as `after` for more; empty: these were the last."""


class Replayed(msgspec.Struct, kw_only=True):
    """What became of one dead letter."""

    id: str
    replayed: bool
    refused: str = ""


class ReplayedList(msgspec.Struct, kw_only=True):
    """What became of the dead letters, in their order."""

    dead_letters: list[Replayed]
    next: str = ""


class Member(msgspec.Struct, kw_only=True):
    """A program that takes part."""

    name: str
    service: str
    """crawl, up or worker; over Kafka scheduler, downloader, parser, storage or api."""
    state: MemberState
    problem: str = ""
    """Why it cannot work, in one line."""
    host: str = ""
    address: str = ""
    """ADDRESS:PORT of /metrics, /healthz and /readyz."""
    version: str = ""
    process: int = 0
    """Process id; 0 where it is not known."""
    started_at: float = 0.0
    """Seconds since 1970 UTC."""
    reported_s: float = 0.0
    """Seconds since it reported."""
    silent_since: float = 0.0
    """Its last report, in seconds since 1970 UTC, when the next one is overdue; 0: it reports in time. `state` is
    silent three intervals after the last report. It keeps its partitions here until then, or until another member
    reports them."""
    partitions: list[int] = []
    """Partitions that it owns in the group of its service."""
    in_flight: int = 0
    """Messages delivered to it and not acked."""
    cpu: float = 0.0
    """CPU seconds per second; 1 is a whole core."""
    memory_bytes: int = 0
    rates: dict[str, float] = {}
    """Its counters, per second."""
    pages: int = 0
    """Pages since its start: fetched, parsed or stored, by its service; 0 for services that have none."""
    bytes: int = 0
    """Bytes received from servers since its start, by what fetches."""
    admitted: int = 0
    """Of a downloader: concurrent fetches that memory and CPU of its container allow; 0: not limited."""
    bound_by: str = ""
    """What keeps `admitted` below the configured concurrency: memory, cpu, loop, pressure or first batch."""


class MemberList(msgspec.Struct, kw_only=True):
    """All members by service and name."""

    members: list[Member]


class Status(msgspec.Struct, kw_only=True):
    """The state of the program or system."""

    version: str
    kind: SystemKind
    place: str
    """Its directory, or HOST:PORT of its broker."""
    uptime_s: float
    """Of the program that answers."""
    jobs: int
    states: dict[str, int]
    """Jobs by state."""
    queued: int
    in_flight: int
    stored: int
    rate: float
    hosts_waiting: int | None = None
    """Hosts that wait for their next fetch; null where it is not known."""
    formats: list[str] = []
    errors: dict[str, int] = {}
    """The most frequent reasons of failed fetches."""
    problems: list[str] = []
    """Why work stands still at present, one line each."""


class Settings(msgspec.Struct, kw_only=True):
    """Live settings: what can be changed while the system runs."""

    settings: dict[str, Any] = {}
    """Those that are not at their default."""


class ControlLogEntry(msgspec.Struct, kw_only=True):
    """One change made over the control API."""

    id: str
    at: float
    """Seconds since 1970 UTC."""
    who: str
    """The token, the user of a session, or the socket."""
    operation: str
    subject: str
    """The object, as "job news"."""
    change: str
    """What is different, in short; secrets are hidden."""


class ControlLog(msgspec.Struct, kw_only=True):
    """Some changes."""

    entries: list[ControlLogEntry]
    next: str = ""
    """Pass it as `before` for older ones; empty: these were the oldest."""
