"""Requests and answers about the program itself: its settings, its DNS and proxies, and the webhooks of its changes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from nephila_control.requests import Request

MAX_CHANGES = 1000
"""Changes of one answer at most."""
MAX_DEAD_LETTERS = 1000
"""Dead letters of one answer at most."""
SettingName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.]*$", max_length=100)]
LogText = Annotated[str, Meta(max_length=500, pattern=r"^[^\x00]*$")]
SystemKind = Literal["crawl", "up", "cluster"]
StoreState = Literal["opening", "working", "slow", "away", "refused", "failed", "silent"]
"""opening: not open yet. slow: a flush takes long. away: it cannot be reached. refused: it refuses the password.
failed: storage has ended on an error. silent: its member does not report."""
MemberState = Literal["starting", "ready", "not_ready", "draining", "ended", "silent"]
"""silent: no report for three intervals in which the broker answered."""


class ListConfiguration(Request):
    """Settings of the services of one program."""

    section: Annotated[str, Meta(max_length=40, pattern=r"^[a-z]*$")] = ""
    """Settings of this service only."""
    changed: bool = False
    """True lists only settings that differ from their default."""


class ConfigValue(msgspec.Struct, kw_only=True):
    """One setting as it is in effect."""

    section: str
    name: str
    value: str
    """Value as JSON; empty for a secret."""
    source: Literal["default", "environment", "options"]
    """Origin of the value; options are those of the command, of its file, or derived from them."""
    secret: bool
    words: str = ""
    """Meaning and unit, from the reference of settings."""
    default: str = ""
    """Value as JSON without any configuration; empty for a secret."""


class Configuration(msgspec.Struct, kw_only=True):
    """Settings by service and name."""

    values: list[ConfigValue]


class DnsState(msgspec.Struct, kw_only=True):
    """The DNS cache of one program, counted since its start."""

    names: int
    """Names in the cache now."""
    hits: int
    lookups: int
    lookup_s: float
    """Seconds of one look-up, on average."""
    failures: int
    refreshes: int
    stale_served: int


class ProxyRow(msgspec.Struct, kw_only=True):
    """A proxy, without its password."""

    name: str
    state: str
    kind: str
    country: str
    success: float
    """Share of its requests that succeed, the last ones weighing more."""
    response_s: float
    bans: int
    """Hosts that block it."""
    evictions: int


class Network(msgspec.Struct, kw_only=True):
    """How one program reaches the web."""

    dns: DnsState
    proxies: list[ProxyRow]
    """The first 200, by state and name."""
    proxies_total: int


class WebhookRow(msgspec.Struct, kw_only=True):
    """How far a webhook is."""

    name: str
    position: int
    """Number of the last change that is settled."""
    newest: int
    """Number of the newest change."""
    failures: int
    """Failed attempts since the last success."""
    failing_since: float
    """Seconds since 1970 UTC; 0 while deliveries succeed."""
    error: str
    dead: int
    """Changes that were given up."""


class WebhookList(msgspec.Struct, kw_only=True):
    """All webhooks by name."""

    webhooks: list[WebhookRow]


class GroupLag(msgspec.Struct, kw_only=True):
    """A group of readers of a topic."""

    group: str
    """Service, or part of one."""
    behind: int
    """Offsets that it has not committed."""


class TopicRow(msgspec.Struct, kw_only=True):
    """A topic of the broker."""

    name: str
    """Name without the prefix of the system."""
    partitions: int
    records: int
    """Offsets between the oldest record and the end; a compacted topic holds fewer records."""
    groups: list[GroupLag]
    """Groups that have committed an offset."""


class TopicList(msgspec.Struct, kw_only=True):
    """The topics of a system over Kafka."""

    topics: list[TopicRow]


class ListChanges(Request):
    """Changes of pages in the order in which they were recorded."""

    since: Annotated[
        str,
        Meta(max_length=100, pattern=r"^([0-9]{1,18}|[0-9a-f]{32}|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,+Z -]*)?)?$"),
    ] = ""
    """A time (at or after it), or the id or number of a change (behind it); empty: from the first one."""
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Changes of this job only."""
    change: Literal["", "new", "changed", "moved", "gone", "returned"] = ""
    """Changes of this kind only."""
    limit: Annotated[int, Meta(ge=1, le=MAX_CHANGES)] = 100
    newest: bool = False
    """The last `limit` changes behind `since`, not the first ones."""


class ListDeadLetters(Request):
    """Dead letters in the order of partitions and offsets."""

    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Letters of this job only."""
    after: Annotated[str, Meta(max_length=100)] = ""
    """Continue behind this id, the `next` of the answer before."""
    limit: Annotated[int, Meta(ge=1, le=MAX_DEAD_LETTERS)] = 100


class ReplayDeadLetters(Request):
    """Publish the messages of dead letters again: those named, or the next `limit` behind `after`."""

    ids: Annotated[list[str], Meta(max_length=MAX_DEAD_LETTERS)] = msgspec.field(default_factory=list)
    all: bool = False
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    after: Annotated[str, Meta(max_length=100)] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_DEAD_LETTERS)] = 100


class ChangeSettings(Request):
    """Change live settings: null takes a setting back to its default, one that is left out keeps its value."""

    settings: Annotated[dict[SettingName, Any], Meta(max_length=100)]
    member: Annotated[str, Meta(max_length=300)] = ""
    """NAME or SERVICE/NAME of the only member that gets the change; empty for all members that read the setting."""


class ListControlLog(Request):
    """Changes made over the control API, the newest first."""

    who: LogText = ""
    """Changes by this token or user only."""
    operation: Annotated[str, Meta(max_length=100, pattern=r"^[a-z_]*$")] = ""
    """Changes by this operation only."""
    search: LogText = ""
    """Part of the object or of the change; letters in any case."""
    before: Annotated[str, Meta(max_length=100, pattern=r"^[0-9a-f-]*$")] = ""
    """Continue behind this entry, the `next` of the answer before."""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Change(msgspec.Struct, kw_only=True):
    """A page that is new, changed, moved, gone or returned."""

    seq: int
    """Number that rises in the order of commits."""
    id: str
    """Stable id; a change that is delivered twice keeps it."""
    at: str
    """Instant of the record, ISO 8601 in UTC."""
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
    """Reason why the message is not published again; empty if it can be."""


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
    """Reason why the member cannot work, in one line."""
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
    """Counters of the member, per second."""
    pages: int = 0
    """Pages since its start: fetched, parsed or stored, by its service; 0 for services that have none."""
    bytes: int = 0
    """Bytes received from servers since its start, by what fetches."""
    admitted: int = 0
    """Of a downloader: concurrent fetches that memory and CPU of its container allow; 0: not limited."""
    bound_by: str = ""
    """Bound that keeps `admitted` below the configured concurrency: memory, cpu, loop, pressure or first batch."""


class MemberList(msgspec.Struct, kw_only=True):
    """All members by service and name."""

    members: list[Member]


class Store(msgspec.Struct, kw_only=True):
    """The file or server that a member writes rows to."""

    member: str
    """Name of the member of storage; empty in one program."""
    place: str
    """Path of nephila.db, or the database without its password."""
    state: StoreState
    since: float = 0.0
    """Begin of the state, in seconds since 1970 UTC; 0 while it works."""
    cause: str = ""
    """Why rows are not written, in one line."""
    remedy: str = ""
    """What to do about it."""
    rows_waiting: int = 0
    """Rows received and not durable."""
    flushed_at: float = 0.0
    """Last flush that made rows durable, in seconds since 1970 UTC; 0: none since the start."""
    batch_rows: int = 0
    """The most rows of the next flush; it falls while the database does not take as many in time."""


class Disk(msgspec.Struct, kw_only=True):
    """The disk of a program, or of a member with a directory."""

    member: str
    """SERVICE/NAME of the member; empty in one program."""
    free_bytes: int
    size_bytes: int
    full_in_s: float | None = None
    """Seconds until it is full at the speed of the last hour; null while it does not fill, or for ten minutes after the
    start."""


class RefusingHost(msgspec.Struct, kw_only=True):
    """A host that has refused every request for five minutes or longer while URLs are queued."""

    host: str
    since: float
    """First refusal without an answer since, in seconds since 1970 UTC."""
    queued: int


class Status(msgspec.Struct, kw_only=True):
    """The state of the program or system."""

    version: str
    kind: SystemKind
    place: str
    """Directory of the program, or HOST:PORT of its broker."""
    uptime_s: float
    """Seconds since the start of the program that answers."""
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
    """Reasons why work stands still at present, one line each."""
    storage: list[Store] = []
    """Where rows are written to, by member."""
    transport: list[str] = []
    """Those of `problems` that keep messages from the members: nobody can report meanwhile."""
    disks: list[Disk] = []
    """Disks with a directory of a member, the fullest first."""
    refusing_hosts: list[RefusingHost] = []
    """The longest first; twenty of each scheduler at most."""


class Settings(msgspec.Struct, kw_only=True):
    """Live settings: what can be changed while the system runs."""

    settings: dict[str, Any] = {}
    """Settings that differ from their default."""


class ControlLogEntry(msgspec.Struct, kw_only=True):
    """One change made over the control API."""

    id: str
    at: float
    """Seconds since 1970 UTC."""
    who: str
    """Name of the token, of the user of a session, or of the socket."""
    author: str = ""
    """For whom `who` made the change, as `who` says: the author of a CrawlJob, of which `who` is the operator. Empty:
    for itself."""
    operation: str
    subject: str
    """The object, as "job news"."""
    change: str
    """Short difference of the states; secrets are hidden."""


class ControlLog(msgspec.Struct, kw_only=True):
    """Some changes."""

    entries: list[ControlLogEntry]
    next: str = ""
    """Pass it as `before` for older ones; empty: these were the oldest."""
