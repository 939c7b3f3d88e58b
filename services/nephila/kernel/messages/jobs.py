"""Generated from proto/nephila/v1/jobs.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec



class ScopeMode(IntEnum):
    """Which hosts count as inside, relative to the seeds."""

    UNSPECIFIED = 0
    DOMAIN = 1
    PREFIX = 2
    ANY = 3


class NearCopies(IntEnum):
    """What happens to a page whose text is nearly that of another page of the job."""

    UNSPECIFIED = 0
    MARK = 1
    SKIP = 2


class CrawlJob(msgspec.Struct, array_like=True, gc=False):
    """The whole desired state of a crawl. Topic `jobs` (compacted by uid)."""

    uid: str = ""
    name: str = ""
    # Rises with each change of the desired state.
    generation: int = 0
    paused: bool = False
    # The job and all that is known of its URLs is dropped; rows stay.
    deleted: bool = False
    # The tenant that the job belongs to; empty: none.
    tenant: str = ""
    # The site that the job belongs to; empty: none.
    site: str = ""
    # The section spec of the CrawlJob document as JSON, without `paused` and files of seeds.
    document: bytes = b""


class QuotaUse(msgspec.Struct, array_like=True, gc=False):
    """What a partition has spent of a quota since the period began."""

    # "job:NAME", "site:NAME" or "tenant:NAME".
    account: str = ""
    # Begin of the period, seconds since 1970 UTC.
    since: float = 0.0
    pages: int = 0
    bytes: int = 0
    browser_s: float = 0.0
    # In reports: URLs without a receipt, which may count later.
    in_flight: int = 0


class QuotaGrant(msgspec.Struct, array_like=True, gc=False):
    """Pages of a job's budget granted to one partition since the job started. The partition dispatches a URL
    only while its stored and in-flight pages are fewer than its granted minus its returned pages.
    """

    partition: int = 0
    pages: int = 0


class PartitionStatus(msgspec.Struct, array_like=True, gc=False):
    """A job in one partition."""

    partition: int = 0
    # Of its owner; a later report of an earlier owner is ignored.
    epoch: int = 0
    # Of the desired state that this report describes.
    generation: int = 0
    queued: int = 0
    # URLs dispatched and without receipt.
    in_flight: int = 0
    stored: int = 0
    denied: int = 0
    failed: int = 0
    dropped: int = 0
    # Nothing is in flight, and no queued URL may be dispatched in the job's present state.
    idle: bool = False
    # Rises with every event under one epoch.
    activity: int = 0
    # The latest idle check of the coordinator that was read before this report.
    idle_check: int = 0
    # As in the status that this report answers; pages of another start do not count.
    start_generation: int = 0
    # Pages of the budget returned since the job started.
    returned: int = 0
    # Pages used: stored, in flight, or reserved for recrawls.
    used: int = 0
    # Pages of the budget that it could use soon, and those it could use now, in all.
    requested: int = 0
    needed_now: int = 0
    # Anchors of the job's scope that are known in the partition.
    anchors: int = 0
    # The owner has read its own first report: returned includes what earlier owners returned.
    confirmed: bool = False
    # What the partition has spent of the quotas of the job, its site and its tenant; by all their jobs.
    uses: list[QuotaUse] = msgspec.field(default_factory=list)
    # As in JobStatus.
    quota: str = ""
    links_held: int = 0
    links_lost: int = 0
    window: str = ""
    # As in JobState; pages granted to the parent count for the partitions that were split from it.
    split_pages: int = 0
    # Number of partitions of the system, as the owner knows it.
    partitions: int = 0


class JobStatus(msgspec.Struct, array_like=True, gc=False):
    """Status of a job. Topic `job-status` (compacted by uid), from the scheduler that coordinates the job."""

    uid: str = ""
    # Of the desired state that this status describes.
    generation: int = 0
    queued: int = 0
    # URLs dispatched and without receipt.
    in_flight: int = 0
    stored: int = 0
    denied: int = 0
    failed: int = 0
    dropped: int = 0
    # Nothing is left to do but later recrawls, or, while the job is paused, queued URLs; and all seeds and
    # links published before have been read.
    done: bool = False
    # Its page budget is spent.
    spent: bool = False
    paused: bool = False
    deleted: bool = False
    # Seconds since 1970 UTC.
    at: float = 0.0
    # Anchors of the job's scope, summed over partitions; when the number rises, links refused before may be
    # in scope.
    anchors: int = 0
    # Rises by one with each status of the job. A status whose version is not above the one before comes from
    # a coordinator that had not read that one, and is ignored.
    version: int = 0
    # Generation of the desired state with which the job started; an earlier job of the same name may have
    # been deleted.
    start_generation: int = 0
    # Number of the latest check whether all partitions are idle; 0 = none yet.
    idle_check: int = 0
    # Pages of the budget granted to partitions so far.
    granted: list[QuotaGrant] = msgspec.field(default_factory=list)
    # A partition could fetch and no page of the budget is free: partitions return what they do not need.
    exhausted: bool = False
    # Which quota is used up, in words; empty: none.
    quota: str = ""
    # Links that the scope refuses: held for a wider scope, and not held because of the limit.
    links_held: int = 0
    links_lost: int = 0
    # Which window the job waits for, in words; empty: none.
    window: str = ""


class JobProgress(msgspec.Struct, array_like=True, gc=False):
    """Reports on partitions of a job. Topic `progress` (compacted by id), from their owner."""

    # uid@member.
    id: str = ""
    job: str = ""
    parts: list[PartitionStatus] = msgspec.field(default_factory=list)
