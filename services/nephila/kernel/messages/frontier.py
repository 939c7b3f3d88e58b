"""Generated from proto/nephila/v1/frontier.proto by tools/protogen.py; do not edit."""

import msgspec

from nephila.kernel.messages.context import Context, Render
from nephila.kernel.messages.jobs import CrawlJob, QuotaUse
from nephila.kernel.messages.parse import Outcome, Receipt, Record


class QueuedUrl(msgspec.Struct, array_like=True, gc=False):
    """A URL that waits in the queue of its host."""

    job: str = ""
    host: str = ""
    # The queue entry as the host store has it: fingerprint, counters, context and URL
    # (scheduler/jobs/queue_entry.py).
    entry: bytes = b""
    # It precedes all other URLs of its host (redirect target, retry, returned lease).
    head: bool = False
    # Seconds since 1970 UTC before which it is not tried again; 0 means any time.
    not_before: float = 0.0


class LeasedUrl(msgspec.Struct, array_like=True, gc=False):
    """A request was dispatched for this URL. Fields after attempt are set over Kafka only, where a successor
    keeps leases.
    """

    url_key: bytes = b""
    job: str = ""
    host: str = ""
    attempt: int = 0
    # `lease_until` of its request, seconds since 1970 UTC.
    lease_until: float = 0.0
    # Server address on which the fetch was counted.
    address: str = ""
    # Its queue entry, of a robots.txt or a fetch of a deleted job, which no row of a queue has.
    entry: bytes = b""
    # The fetch has ended: its page is in flight to storage, or it was a robots.txt.
    landed: bool = False
    # Its terminal row, in flight to storage.
    record: Record | None = None
    # The receipt of its row, which arrived before its outcome.
    receipt: Receipt | None = None


class EndedUrl(msgspec.Struct, array_like=True, gc=False):
    """This URL has its terminal row."""

    url_key: bytes = b""
    job: str = ""
    host: str = ""
    fetch_no: int = 0
    outcome: Outcome = Outcome.UNSPECIFIED


class RobotsTxt(msgspec.Struct, array_like=True, gc=False):
    """robots.txt of one origin, as fetched."""

    # "https://host" or "http://host:8080".
    origin: str = ""
    host: str = ""
    # HTTP status; 0 when the server could not be reached.
    status: int = 0
    body: bytes = b""
    fetched_at: float = 0.0
    expires_at: float = 0.0
    # Error class when there was no usable answer.
    reason: str = ""
    # The finer reason where there is one (tls_expired of tls); else empty.
    cause: str = ""


class HostUse(msgspec.Struct, array_like=True, gc=False):
    """Use of one host by a job with a budget per host."""

    job: str = ""
    pages: int = 0
    bytes: int = 0
    time_s: float = 0.0


class UrlState(msgspec.Struct, array_like=True, gc=False):
    """State of a URL that is recrawled."""

    job: str = ""
    url_key: bytes = b""
    url: str = ""
    host: str = ""
    depth: int = 0
    seed: bool = False
    # Number of the last fetch.
    fetch_no: int = 0
    # End of the last fetch that brought or confirmed a copy or was answered by a redirect, and of the first
    # fetch, seconds since 1970 UTC. fetched_at is 0 where the URL was excluded without a fetch.
    fetched_at: float = 0.0
    first_at: float = 0.0
    # When it is due again; 0 = never (gone, or not watched).
    next_at: float = 0.0
    # Seconds between the instant that set next_at and next_at.
    interval_s: float = 0.0
    # Evidence: fetches that could show a change, and those that did; halved with the sums below when it is
    # old.
    checks: int = 0
    changes: int = 0
    changed_at: float = 0.0
    # Sum of the intervals between checks without and with a change, for the estimate of the rate.
    quiet_s: float = 0.0
    changed_s: float = 0.0
    text_hash: bytes = b""
    etag: str = ""
    last_modified: str = ""
    # 404 and 410 in a row.
    missing: int = 0
    outcome: Outcome = Outcome.UNSPECIFIED
    # Last change as stated by the site (sitemap, feed), seconds since 1970 UTC.
    lastmod: float = 0.0
    context: Context | None = None
    # Rendering of this URL; UNSPECIFIED: that of the job.
    render: Render = Render.UNSPECIFIED


class ForgottenUrl(msgspec.Struct, array_like=True, gc=False):
    """A URL that has ended and is no longer known."""

    job: str = ""
    url_key: bytes = b""
    # How it had ended; UNSPECIFIED: it stays in the counts.
    outcome: Outcome = Outcome.UNSPECIFIED
    # Number of the first fetch of URLs that are admitted from here on: above that of each fetch before.
    fetch_no: int = 0


class Quarantine(msgspec.Struct, array_like=True, gc=False):
    """A part of a host that is closed for a job, because it brings no new text."""

    job: str = ""
    host: str = ""
    # Path prefix, or "prefix?parameter".
    place: str = ""
    reason: str = ""
    since: float = 0.0
    fetches: int = 0
    # It was released by hand and is not closed again.
    released: bool = False


class DomainState(msgspec.Struct, array_like=True, gc=False):
    """What a job has learned of a registrable domain, and what the domain has cost. In a commit `sources` are
    those that are new; the other fields are whole.
    """

    job: str = ""
    # Empty: the job counts as broad from here on.
    domain: str = ""
    # Pages, robots.txt files and look-ups.
    requests: int = 0
    failures: int = 0
    # 4 n bytes: hashes of the first hosts that were fetched from.
    hosts: bytes = b""
    # 4 n bytes: hashes of domains that link to it.
    sources: bytes = b""
    # It is forgotten: the table was full.
    forgotten: bool = False


class Anchor(msgspec.Struct, array_like=True, gc=False):
    """An anchor of a job's scope."""

    job: str = ""
    place: str = ""


class FrontierClaim(msgspec.Struct, array_like=True, gc=False):
    """The owner of a partition from here on: later commits of other epochs are ignored. The claim's offset is
    the epoch.
    """

    member: str = ""
    # Start of the member's program and time of the claim, seconds since 1970 UTC.
    started: float = 0.0
    at: float = 0.0
    # Number of partitions of the system. The first claim with a larger number splits the partition: later
    # commits are of the part that keeps its number.
    partitions: int = 0


class FrontierBirth(msgspec.Struct, array_like=True, gc=False):
    """The first record of a partition that was made by a split: its state begins as the other part of its
    parent's.
    """

    parent: int = 0
    # Offset of the claim in the parent's log that split it: the state is that of all commits before.
    offset: int = 0
    # Number of partitions with which this one first exists.
    partitions: int = 0
    # Leases with a lease_until up to this one were given by the parent, seconds since 1970 UTC.
    leases_until: float = 0.0


class FrontierFile(msgspec.Struct, array_like=True, gc=False):
    """A file of a partition's directory, and the object with its content; empty until it is sent."""

    name: str = ""
    object: str = ""
    size_bytes: int = 0


class DeletedJob(msgspec.Struct, array_like=True, gc=False):
    """A job that was deleted and left rows behind."""

    uid: str = ""
    # The highest number that a fetch of it had.
    last_fetch_no: int = 0


class EndedCount(msgspec.Struct, array_like=True, gc=False):
    """How many URLs of a job ended with an outcome in one partition."""

    job: str = ""
    outcome: Outcome = Outcome.UNSPECIFIED
    count: int = 0


class HostYield(msgspec.Struct, array_like=True, gc=False):
    """Novelty of the path patterns of a host for a job, as the scheduler packs it."""

    job: str = ""
    packed: bytes = b""


class HostState(msgspec.Struct, array_like=True, gc=False):
    """Politeness of one host, shared by all jobs."""

    host: str = ""
    # Seconds since 1970 UTC before which nothing is fetched.
    not_before: float = 0.0
    # The pause that set not_before; it limits the harm of a clock that jumps.
    pause_s: float = 0.0
    # Back-off in force, 0 when none.
    backoff_s: float = 0.0
    # When the last refusal came.
    refused_at: float = 0.0
    address: str = ""
    # Longest Crawl-delay of the host's origins.
    crawl_delay_s: float = 0.0
    # How long the last fetch took, in seconds.
    took_s: float = 0.0
    # Use of this host by jobs with a budget.
    uses: list[HostUse] = msgspec.field(default_factory=list)
    # Whether the host has answered since its last refusal.
    answered: bool = False
    # Shortest pause between two requests that a person has set; 0 for none.
    least_delay_s: float = 0.0
    # Seconds since 1970 UTC until which a person holds the host; 0 for no hold.
    held_until: float = 0.0


class JobState(msgspec.Struct, array_like=True, gc=False):
    """A job in a snapshot."""

    spec: CrawlJob | None = None
    # Its number in the queues.
    number: int = 0
    # Manifest of its seen URLs.
    seen: bytes = b""
    anchors: list[str] = msgspec.field(default_factory=list)
    quarantines: list[Quarantine] = msgspec.field(default_factory=list)
    # Number of every URL's first fetch, and the highest given so far.
    first_fetch_no: int = 0
    last_fetch_no: int = 0
    # Links that the scope refused and that were not held.
    links_lost: int = 0
    # Queued URLs that were in flight when a run was killed: their rows may be stored already.
    priority_refetch: list[bytes] = msgspec.field(default_factory=list)
    # Pages of the page budget that came with the partition when it was split from another (above 0), or went
    # with those that were split from it (below 0).
    split_pages: int = 0


class FrontierManifest(msgspec.Struct, array_like=True, gc=False):
    """A snapshot of one partition in the blob store. It is written last: all objects it names exist."""

    partition: int = 0
    # Number of partitions of the system.
    partitions: int = 0
    epoch: int = 0
    # The last commit that it includes; later commits are at or after offset in the log.
    sequence: int = 0
    offset: int = 0
    files: list[FrontierFile] = msgspec.field(default_factory=list)
    # Seconds since 1970 UTC.
    taken_at: float = 0.0
    # As in FrontierBirth.
    leases_until: float = 0.0


class PartitionPosition(msgspec.Struct, array_like=True, gc=False):
    """How far a partition's commits are contained in a snapshot."""

    partition: int = 0
    epoch: int = 0
    sequence: int = 0
    ended: list[EndedCount] = msgspec.field(default_factory=list)


class FrontierCommit(msgspec.Struct, array_like=True, gc=False):
    """One atomic commit of one partition."""

    partition: int = 0
    epoch: int = 0
    # Per partition, rising by one.
    sequence: int = 0
    queued: list[QueuedUrl] = msgspec.field(default_factory=list)
    leased: list[LeasedUrl] = msgspec.field(default_factory=list)
    ended: list[EndedUrl] = msgspec.field(default_factory=list)
    hosts: list[HostState] = msgspec.field(default_factory=list)
    robots: list[RobotsTxt] = msgspec.field(default_factory=list)
    jobs: list[CrawlJob] = msgspec.field(default_factory=list)
    # New anchors of scopes: hosts, domains or directories of seeds and of what seeds redirect to.
    anchors: list[Anchor] = msgspec.field(default_factory=list)
    # New state of URLs that are fetched again.
    urls: list[UrlState] = msgspec.field(default_factory=list)
    quarantines: list[Quarantine] = msgspec.field(default_factory=list)
    # New totals of quotas.
    uses: list[QuotaUse] = msgspec.field(default_factory=list)
    # Links that the scope of their job refuses, kept for a wider one.
    held: list[QueuedUrl] = msgspec.field(default_factory=list)
    # URLs that had ended and may be found again.
    forgotten: list[ForgottenUrl] = msgspec.field(default_factory=list)
    domains: list[DomainState] = msgspec.field(default_factory=list)


class HostRecord(msgspec.Struct, array_like=True, gc=False):
    """An idle host, without its queues."""

    state: HostState | None = None
    robots: list[RobotsTxt] = msgspec.field(default_factory=list)
    yields: list[HostYield] = msgspec.field(default_factory=list)


class FrontierSnapshot(msgspec.Struct, array_like=True, gc=False):
    """The state of a frontier after the commits that its partitions name. Large parts lie in files of their own
    beside it, which the manifests name: queues and hosts, and the seen URLs of each job. More states of URLs
    may follow in further messages of the same snapshot, with nothing else set.
    """

    partitions: list[PartitionPosition] = msgspec.field(default_factory=list)
    jobs: list[JobState] = msgspec.field(default_factory=list)
    # Number of the next job.
    next_job: int = 0
    # Manifest of the host store.
    hosts: bytes = b""
    # URLs outside the queues: in flight, or delayed until a time.
    queued: list[QueuedUrl] = msgspec.field(default_factory=list)
    # Those of queued that are dispatched and have no receipt yet.
    leased: list[LeasedUrl] = msgspec.field(default_factory=list)
    # Instant of the snapshot, seconds since 1970 UTC.
    taken_at: float = 0.0
    deleted: list[DeletedJob] = msgspec.field(default_factory=list)
    # States of URLs of watched_job as its due table packs them, each behind its url_key. A next_at below 0
    # means that the URL is queued or outstanding.
    watched_job: str = ""
    watched: list[bytes] = msgspec.field(default_factory=list)
    uses: list[QuotaUse] = msgspec.field(default_factory=list)
    # Held links of holding_job, as queue entries.
    holding_job: str = ""
    held: list[bytes] = msgspec.field(default_factory=list)
    domains: list[DomainState] = msgspec.field(default_factory=list)


class FrontierRecord(msgspec.Struct, array_like=True, gc=False):
    """Topic `frontier`: one of the three."""

    claim: FrontierClaim | None = None
    commit: FrontierCommit | None = None
    birth: FrontierBirth | None = None
