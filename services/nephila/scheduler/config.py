"""Settings of the scheduler."""

from typing import Annotated

import msgspec
from msgspec import Meta

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.config import Positive

CREDITS = 1 << 30
"""The inputs of the scheduler never wait for its output: otherwise the loop of services could deadlock."""
LOOK_S = 600.0
"""Longest wait between two turns while anything is due: UTC may be set, and monotonic time stops during sleep."""


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each field with its unit and its reason."""

    directory: str = ""
    """Directory of the commit log; created if absent."""
    partitions: Positive = 64
    """Partitions of the keyed topics at the creation of the system: a power of two, the same for all services.
    `nephila service topics grow` adds partitions, and this number stays."""
    concurrency: Positive = 100
    """Simultaneous fetches: the capacity of the downloader. Over Kafka it is divided among the partitions of a
    scheduler that have work; each has at least 16."""
    member_concurrency: Annotated[int, Meta(ge=0)] = 0
    """Over Kafka: simultaneous fetches of all partitions of one scheduler together, instead of a part for each. Shares
    of tenants and weights of jobs hold where this limit binds. 0 = none."""
    hot_hosts: Positive = 20_000
    """Hosts held as objects; all others are bytes in the host store, 2-20 µs away."""
    hot_robots_bytes: int = 64 * 1024 * 1024
    """Memory for robots.txt files of hosts held as objects, with their rules; a file that many hosts share counts
    once."""
    window: Positive = 1024
    """Maximum number of requests without a receipt: bounds memory and the fetches that a crash repeats."""
    agent: str = "nephila"
    """Product token that selects the group in robots.txt (RFC 9309, 2.2.1)."""
    tries: Positive = 3
    """Attempts per fetch for 429, 5xx and network errors."""
    retry_delay_s: float = 2.0
    """Time before the second attempt after a network error or 5xx; doubles with each attempt."""
    backoff_s: float = 60.0
    """First pause of a host that answered 429 or 503 or timed out, unless Retry-After states another; doubles each
    time. After an answer, a 503 or a time-out is a first pause again."""
    backoff_max_s: float = 86_400.0
    """Maximum pause, whether or not the host stated it."""
    backoff_forget_s: float = 1_800.0
    """Time without a refusal, from the end of the last pause, after which the back-off is reset."""
    jitter: float = 0.1
    """Random share that is added to a pause, so that hosts do not resume at the same instant."""
    per_address: int = 4
    """Simultaneous fetches on one server address, over all hosts and all jobs except those with delay 0. 0 = no
    limit."""
    address_gap_s: float = 0.25
    """Time between two starts on one server address: many names on one machine must not add up to a flood."""
    networks: tuple[str, ...] = ()
    """Other limits for single networks: "10.0.0.0/8=16/0.05" = connections/gap in seconds. The same as the
    downloader's."""
    tenants: tuple[str, ...] = ()
    """Quotas and shares of tenants: "news pages=100000 bytes=5000000000 browserSeconds=3600 per=day share=2". per is
    day or month (UTC). namespaces=press,radio: of Kubernetes, whose CrawlJobs have the tenant; the operator reads
    them."""
    crawl_delay_max_s: float = 300.0
    """Maximum Crawl-delay; a site that wants less traffic has Disallow."""
    robots_ttl_s: float = 86_400.0
    """Time that a robots.txt is used (RFC 9309, 2.4)."""
    robots_retry_s: float = 600.0
    """Time that an unreachable robots.txt forbids everything before it is requested again."""
    start_by_s: float = 60.0
    """Time after which a request that is not yet dialled becomes void."""
    lease_s: float = 120.0
    """Time after start_by at which a URL without an outcome is fetched again; longer than any fetch
    (total_timeout_s of the downloader). Requests of a killed downloader, and their hosts, wait this long unless
    another member reports them before: over Kafka the next owner of its partitions does so after two sessions."""
    receipt_s: float = 60.0
    """Over Kafka: time after an outcome at which a missing receipt is investigated. Once parser, storage and scheduler
    have read everything that existed then, its message is lost, and the URL is fetched again. A slow service causes no
    fetch."""
    max_hops: int = 10
    """Redirects followed from one URL."""
    segment_bytes: Positive = 64 * 1024 * 1024
    """Growth of the log that triggers a snapshot; older segments are then deleted."""
    blobs: str = ""
    """Over Kafka: where snapshots of partitions are stored, a directory that all schedulers see or
    s3://bucket/path. Empty: in `directory`, and the next owner of a partition reads its whole log."""
    snapshot_bytes: Positive = 8 * 1024 * 1024
    """Over Kafka: growth of a partition's log that triggers a snapshot; the next owner reads at most this much."""
    snapshot_age_s: float = 21_600.0
    """Over Kafka: maximum age of a commit that is in no snapshot; well below the retention of the log."""
    recrawl: bool = True
    """Fetch pages again when they are due. Off in a program whose crawl ends: there `--refresh` starts it."""
    status_interval_s: float = 0.0
    """Time between status messages of changed jobs on `job-status`; 0 = never, since one program has no reader for
    them."""
    fsync_interval_s: float = 1.0
    """Maximum time that a commit is only in the page cache; a killed process loses nothing, a power cut this
    much."""

    def address_limits(self) -> AddressLimits:
        """Concurrency and gap of server addresses."""
        return AddressLimits(self.per_address, self.address_gap_s, self.networks, "scheduler.networks")
