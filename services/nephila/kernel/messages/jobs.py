"""Generated from proto/nephila/v1/jobs.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec

from nephila.kernel.messages.context import Render


class ScopeMode(IntEnum):
    """Which hosts count as inside, relative to the seeds."""

    UNSPECIFIED = 0
    DOMAIN = 1
    PREFIX = 2
    ANY = 3


class Strategy(IntEnum):
    """Order of a job's URLs within a host."""

    UNSPECIFIED = 0
    DFS = 1
    BEST_FIRST = 2


class NearCopies(IntEnum):
    """What happens to a page whose text is nearly that of another page of the job."""

    UNSPECIFIED = 0
    MARK = 1
    SKIP = 2


class MainText(IntEnum):
    """What becomes the text of a page."""

    UNSPECIFIED = 0
    TRAFILATURA = 1
    ALL = 2
    NONE = 3


class QuotaPeriod(IntEnum):
    """After which time a quota counts from zero again."""

    UNSPECIFIED = 0
    RUN = 1
    DAY = 2
    MONTH = 3


class Scope(msgspec.Struct, array_like=True, gc=False):
    """"""

    mode: ScopeMode = ScopeMode.UNSPECIFIED
    # RE2, searched in the full URL; a URL must match one of them, if there are any.
    include: list[str] = msgspec.field(default_factory=list)
    # RE2, searched in the full URL; a URL must match none.
    exclude: list[str] = msgspec.field(default_factory=list)
    # Deepest link followed from a seed (0 = seeds only); -1 means no limit.
    max_depth: int = 0
    # Stored pages at most; 0 means no limit.
    max_pages: int = 0


class HostPolicy(msgspec.Struct, array_like=True, gc=False):
    """Politeness towards the hosts of one name or one domain."""

    # Host key, or "*.example.org" for all hosts below a name.
    host: str = ""
    # Seconds; -1 = the value of the job.
    delay_s: float = 0.0
    # 0 = the value of the job.
    concurrency: int = 0


class Recrawl(msgspec.Struct, array_like=True, gc=False):
    """When pages are fetched again. All zero: never."""

    # Shortest and longest interval in seconds; between them it follows the page's rate of change.
    min_s: float = 0.0
    max_s: float = 0.0
    # Fixed interval in seconds instead; 0 = none.
    every_s: float = 0.0
    # Fixed instants instead: five fields of cron in time_zone; all pages of the job are due then.
    cron: str = ""
    # Only pages that were seeds are fetched again; the rest is fetched once, when it is new.
    monitor: bool = False
    # A page answered 404 or 410 this often in a row is gone and not fetched again; 0 means 3.
    gone_after: int = 0
    # Watched pages last fetched before this instant are due at it, once; seconds since 1970 UTC, 0 = none.
    refresh_at: float = 0.0
    # Objective: the last check of a watched page is at most so many seconds old; 0 = none. It changes no due
    # time.
    freshness_s: float = 0.0
    # IANA name of the zone of cron; empty: UTC.
    time_zone: str = ""


class HostBudget(msgspec.Struct, array_like=True, gc=False):
    """What one host may cost a job. 0 = no limit."""

    # Fetches of pages.
    pages: int = 0
    # Bytes read from the wire.
    bytes: int = 0
    # Seconds spent in fetches.
    time_s: float = 0.0
    # URLs held in the queue of one host; links beyond are taken when they are found again.
    queued: int = 0


class Traps(msgspec.Struct, array_like=True, gc=False):
    """When a part of a site counts as a trap."""

    # Nothing is judged.
    off: bool = False
    # Fetches of a prefix without new content that are made in any case; 0 means 100.
    cap_fetches: int = 0
    # Share of the host's fetches above which such a prefix is closed; 0 means 0.05.
    cap_share: float = 0.0


class Parse(msgspec.Struct, array_like=True, gc=False):
    """What is taken from the pages of a job."""

    # Kinds of links beside anchors and frames: canonical, alternate, feed, next, form, script, route, json.
    # With route the part of a URL behind "#/" or "#!" belongs to it.
    follow: list[str] = msgspec.field(default_factory=list)
    # Links that say nofollow, ugc or sponsored on every occurrence are left.
    skip_nofollow: bool = False
    main_text: MainText = MainText.UNSPECIFIED
    near_copies: NearCopies = NearCopies.UNSPECIFIED
    # Requisites (styles, pictures, scripts, fonts, icons) of a page that are archived; 0: none.
    requisites: int = 0


class LoginField(msgspec.Struct, array_like=True, gc=False):
    """A field of a login form. Exactly one of value, env and file is set."""

    name: str = ""
    # As it is sent; secrets are named by env or file instead.
    value: str = ""
    # Environment variable of the downloader that holds the value.
    env: str = ""
    # File below the downloader's directory of secrets that holds the value.
    file: str = ""


class FetchWindows(msgspec.Struct, array_like=True, gc=False):
    """Hours of the day in which a job fetches."""

    # As "22:00-06:00", at least one.
    hours: list[str] = msgspec.field(default_factory=list)
    # IANA name of the zone of the hours; empty: UTC.
    time_zone: str = ""


class Quota(msgspec.Struct, array_like=True, gc=False):
    """What may be spent in a period. 0 = no limit."""

    # Fetches of pages.
    pages: int = 0
    # Bytes read from the wire.
    bytes: int = 0
    browser_s: float = 0.0
    per: QuotaPeriod = QuotaPeriod.UNSPECIFIED


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


class Politeness(msgspec.Struct, array_like=True, gc=False):
    """"""

    # Seconds between the end of a fetch and the start of the next on the same host.
    delay_s: float = 0.0
    # Fetches at once on one host; 0 means 1.
    concurrency_per_host: int = 0
    # robots.txt, Crawl-delay and meta robots are not consulted.
    ignore_robots: bool = False
    # The delay grows with the time a fetch takes: five times that, within 1-30 s.
    adaptive: bool = False
    # Delays of single hosts; the first that matches counts.
    hosts: list[HostPolicy] = msgspec.field(default_factory=list)


class Login(msgspec.Struct, array_like=True, gc=False):
    """How a job logs in to a site: the page with the form is fetched, the form is filled and posted."""

    url: str = ""
    fields: list[LoginField] = msgspec.field(default_factory=list)
    # RE2, found in the page that answers a login that was accepted; empty: that page has no password field.
    check: str = ""
    # RE2, found in pages only when the session is lost; empty: status 401 and redirects to url say so.
    lost: str = ""
    # Actions in the rendered page of url (JSON of the document's steps); empty: its form is posted.
    steps: str = ""


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


class CrawlJob(msgspec.Struct, array_like=True, gc=False):
    """The whole desired state of a crawl. Topic `jobs` (compacted by uid). Deprecated fields are set in messages
    of earlier versions only, which have no document; kernel/documents/job_migration.py reads them.
    """

    uid: str = ""
    name: str = ""
    # Rises with each change of the desired state.
    generation: int = 0
    seeds_before: list[str] = msgspec.field(default_factory=list)
    scope_before: Scope | None = None
    politeness_before: Politeness | None = None
    keep_links_before: bool = False
    paused: bool = False
    strategy_before: Strategy = Strategy.UNSPECIFIED
    keywords_before: list[str] = msgspec.field(default_factory=list)
    recrawl_before: Recrawl | None = None
    host_budget_before: HostBudget | None = None
    traps_before: Traps | None = None
    weight_before: float = 0.0
    sitemaps_before: bool = False
    # The job and all that is known of its URLs is dropped; rows stay.
    deleted: bool = False
    rules_before: list[str] = msgspec.field(default_factory=list)
    parse_before: Parse | None = None
    cookies_before: bool = False
    login_before: Login | None = None
    render_before: Render = Render.UNSPECIFIED
    browser_before: str = ""
    proxy_class_before: str = ""
    schemes_before: str = ""
    language_before: str = ""
    max_page_bytes_before: int = 0
    # The tenant that the job belongs to; empty: none.
    tenant: str = ""
    # The site that the job belongs to; empty: none.
    site: str = ""
    quota_before: Quota | None = None
    site_quota_before: Quota | None = None
    windows_before: FetchWindows | None = None
    # The section spec of the CrawlJob document as JSON, without `paused` and files of seeds.
    document: bytes = b""


class JobProgress(msgspec.Struct, array_like=True, gc=False):
    """Reports on partitions of a job. Topic `progress` (compacted by id), from their owner."""

    # uid@member.
    id: str = ""
    job: str = ""
    parts: list[PartitionStatus] = msgspec.field(default_factory=list)
