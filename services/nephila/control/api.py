"""The control API: typed requests, typed answers, and the protocol that every implementation offers.

`local.py` implements it for one program on this machine, `cluster.py` for a system over Kafka, `client.py` for a server
somewhere else. `routes.py` maps each method to HTTP. Invariants: a request that cannot be done changes nothing; the
answer to a change comes when the change is durable (one program: in the frontier's log, synced; Kafka: acks=all).

A method raises `UsageError` for a malformed request, `NotFound` for an unknown name, `UserError` for a request that the
present state refuses, `NotReadyError` while the system cannot be reached.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from nephila.kernel.messages import Context, Seed
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.scheduler.explain.explain import Explanation

MAX_JOBS = 10_000
SEED_BATCH = 1000
"""Seeds of one request at most; an implementation gives the loop back after so many."""
MAX_REFUSED = 100
"""Refused seeds listed in one answer; beyond that only their number."""
MAX_CHANGES = 1000
"""Changes of one answer at most."""
MAX_DEAD_LETTERS = 1000
"""Dead letters of one answer at most."""

Name = Annotated[
    str, Meta(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$", description="Name of a job or of a rule.")
]
ContextWord = Annotated[str, Meta(max_length=253)]
Url = Annotated[str, Meta(max_length=100_000)]
"""A seed in the characters of any language, percent-encoded at most this long."""
JobState = Literal["new", "running", "paused", "limit", "quota", "window", "idle"]
"""new: no scheduler has reported on the newest generation yet. running: URLs are queued or in flight. paused: nothing
is dispatched. limit: a budget is spent, of the job or of every host that is left. quota: a quota of the job, its site
or its tenant is used up. window: no window of the job is open. idle: every known URL is finished."""


MemberState = Literal["starting", "ready", "not_ready", "draining", "ended", "silent"]
"""silent: no report for three intervals."""
SettingName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.]*$", max_length=100)]


class NotFound(UserError):
    """No job, rule, quarantine or dead letter has this name."""


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends; an unknown field is an error."""


class Empty(Request):
    """A request without fields."""


class JobName(Request):
    """One job."""

    name: Name


class ApplyJob(Request):
    """Create a job or change it: the document is the whole desired state."""

    job: dict[str, Any]
    """A CrawlJob document (docs/crawljob.schema.json). Seeds in files are the client's to read and send."""
    seeds_follow: bool = False
    """More seeds come with `add_seeds`; the last request of them has `last`."""


class SeedContext(Request):
    """What a seed stands for in a crawl by keyword schemes."""

    stage: ContextWord = ""
    scheme: ContextWord = ""
    platform: ContextWord = ""
    group: ContextWord = ""
    form: bool = False
    """The route of the URL, #!post:…, is a form that is sent by POST."""


class AddSeeds(Request):
    """More seeds of a job."""

    name: Name
    urls: Annotated[list[Url], Meta(max_length=SEED_BATCH)] = []
    contexts: Annotated[list[SeedContext], Meta(max_length=SEED_BATCH)] = []
    """One for each URL, or none at all."""
    last: bool = False
    """No more seeds follow."""
    held_generation: Annotated[int, Meta(ge=0)] = 0
    """With `last`: the generation that `apply_job` answered for a job that is held until its seeds are in."""

    def seeds(self, uid: str) -> list[Seed]:
        """The messages of these seeds. Raises `UsageError`."""
        if not self.contexts:
            return [Seed(uid, url, "file") for url in self.urls]
        if len(self.contexts) != len(self.urls):
            raise UsageError(
                f"contexts: {len(self.urls)} URLs have {len(self.contexts)} contexts; give one for each URL, or none"
            )
        return [
            Seed(
                uid,
                url,
                "scheme",
                context=Context("", one.stage, one.scheme, platform=one.platform, group=one.group, form=one.form),
            )
            for url, one in zip(self.urls, self.contexts, strict=True)
        ]


class ReleaseQuarantine(Request):
    """Fetch from a quarantined part of a host again."""

    name: Name
    host: Annotated[str, Meta(min_length=1, max_length=1000)]
    pattern: Annotated[str, Meta(min_length=1, max_length=10_000)]


class ForgetUrls(Request):
    """Forget URLs of a job: they are crawled again when they are found again."""

    name: Name
    urls: Annotated[list[Url], Meta(max_length=SEED_BATCH)] = []
    match: Annotated[str, Meta(max_length=4000, extra_json_schema={"format": "regex"})] = ""
    """Also all URLs with a row that match this expression (RE2, searched in the full URL)."""


class ExplainUrl(Request):
    """What became of a URL."""

    url: Annotated[Url, Meta(min_length=1)]
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """In this job; empty: in the job that has the most facts about the URL."""


class ApplyRules(Request):
    """Create rules or change them; all of them or, where one is wrong, none."""

    rules: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1000)]
    """ParseRule documents (docs/parserule.schema.json)."""


class RuleName(Request):
    """One rule."""

    name: Name


class ListChanges(Request):
    """Changes of pages in the order in which they were recorded."""

    since: Annotated[
        str,
        Meta(max_length=100, pattern=r"^([0-9]{1,18}|[0-9a-f]{32}|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,+Z -]*)?)?$"),
    ] = ""
    """A time (at or after it), or the id or number of a change (behind it); empty: from the first one."""
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Of this job only."""
    change: Literal["", "new", "changed", "moved", "gone", "returned"] = ""
    """Of this kind only."""
    limit: Annotated[int, Meta(ge=1, le=MAX_CHANGES)] = 100
    newest: bool = False
    """The last `limit` changes behind `since`, not the first ones."""


class ListDeadLetters(Request):
    """Dead letters in the order of partitions and offsets."""

    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Of this job only."""
    after: Annotated[str, Meta(max_length=100)] = ""
    """Continue behind this id, the `next` of the answer before."""
    limit: Annotated[int, Meta(ge=1, le=MAX_DEAD_LETTERS)] = 100


class ReplayDeadLetters(Request):
    """Publish the messages of dead letters again: those named, or the next `limit` behind `after`."""

    ids: Annotated[list[str], Meta(max_length=MAX_DEAD_LETTERS)] = []
    all: bool = False
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    after: Annotated[str, Meta(max_length=100)] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_DEAD_LETTERS)] = 100


class ChangeSettings(Request):
    """Change live settings: null takes a setting back to its default, one that is left out keeps its value."""

    settings: Annotated[dict[SettingName, Any], Meta(max_length=100)]
    member: Annotated[str, Meta(max_length=300)] = ""
    """Of this member alone, as NAME or SERVICE/NAME; empty: of all members that read the setting."""


# ---- answers


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
    def held_by(self) -> str:
        """What holds the job in its state, and until when; empty in any other state."""
        return {"quota": self.quota, "window": self.window}.get(self.state, "")


class JobList(msgspec.Struct, kw_only=True):
    """All jobs by name."""

    jobs: list[Job]


class ListState(msgspec.Struct, kw_only=True):
    """One list of a directory after a run (docs/harvest.md)."""

    url: str
    verdict: str
    fault: bool
    """It was not fetched."""
    reason: str
    """Of its row."""
    status: int
    """Of HTTP; 0: no answer."""
    target: str
    """The URL to which it redirects."""
    links: int
    """Links of a list that was fetched."""
    since: str
    """Begin of the fault; empty without one."""
    words: str
    proposal: str
    """What the verdict means, and what to do."""


class Directory(msgspec.Struct, kw_only=True):
    """A directory of a site after its last run."""

    name: str
    """Name of its job."""
    last_run: str
    """Begin of the run; empty: it has not run."""
    ended: str
    """Why the run is over; empty: it is not."""
    why: str
    """Why its job was refused."""
    new_pages: int
    lists: list[ListState]
    """After the last run that ended."""


class DirectoryList(msgspec.Struct, kw_only=True):
    """All directories by name."""

    directories: list[Directory]


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
    """A page that is new, changed, gone or returned."""

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
    """new, changed, gone (404 or 410), or returned: gone before, and back with its old text."""
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
    kind: Literal["crawl", "up", "cluster"]
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


class Control(Protocol):
    """The operations. Every implementation passes tests/contracts/test_control.py."""

    async def apply_job(self, request: ApplyJob) -> JobApplied:
        """Create or change a job."""

    async def list_jobs(self, request: Empty) -> JobList:
        """How all jobs stand."""

    async def list_directories(self, request: Empty) -> DirectoryList:
        """The directories of sites, with the verdicts on their lists."""

    async def get_job(self, request: JobName) -> JobDetail:
        """One job and its desired state."""

    async def pause_job(self, request: JobName) -> JobChanged:
        """Dispatch nothing more of a job; what is in flight still ends."""

    async def resume_job(self, request: JobName) -> JobChanged:
        """Continue a paused job."""

    async def delete_job(self, request: JobName) -> JobChanged:
        """Forget a job and its URLs; rows stay."""

    async def add_seeds(self, request: AddSeeds) -> SeedsAdded:
        """Queue seeds; a URL that is known already is not queued again."""

    async def list_quarantines(self, request: JobName) -> QuarantineList:
        """Parts of hosts that a job no longer fetches from."""

    async def release_quarantine(self, request: ReleaseQuarantine) -> QuarantineReleased:
        """Fetch from a quarantined part of a host again."""

    async def forget(self, request: ForgetUrls) -> UrlsForgotten:
        """Forget URLs of a job: they are crawled again when they are found again."""

    async def explain(self, request: ExplainUrl) -> Explained:
        """What became of a URL, and why."""

    async def list_rules(self, request: Empty) -> RuleList:
        """The rules that pages are read by."""

    async def apply_rules(self, request: ApplyRules) -> RulesApplied:
        """Create or change rules; pages are read by them from then on."""

    async def delete_rule(self, request: RuleName) -> RuleChange:
        """Delete a rule; its items stay."""

    async def rule_health(self, request: Empty) -> RuleHealthList:
        """Whether the rules still fit their sites."""

    async def list_changes(self, request: ListChanges) -> ChangeList:
        """Pages that are new, changed, gone or returned."""

    async def list_dead_letters(self, request: ListDeadLetters) -> DeadLetterList:
        """Messages that a service could not process."""

    async def replay_dead_letters(self, request: ReplayDeadLetters) -> ReplayedList:
        """Publish messages of dead letters again."""

    async def list_members(self, request: Empty) -> MemberList:
        """The programs that take part."""

    async def status(self, request: Empty) -> Status:
        """The state of the program or system."""

    async def get_settings(self, request: Empty) -> Settings:
        """The live settings."""

    async def change_settings(self, request: ChangeSettings) -> Settings:
        """Change live settings; returns all of them."""
