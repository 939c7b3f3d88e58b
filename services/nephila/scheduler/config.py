"""Settings of the scheduler."""

from __future__ import annotations

import msgspec

from nephila.kernel.runtime.config import Positive

CREDITS = 1 << 30
"""The inputs of the scheduler never wait for its output: otherwise the loop of services could deadlock."""
LOOK_S = 600.0
"""Longest wait between two turns while anything is due: UTC may be set, and monotonic time stops during sleep."""


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each field with its unit and its reason."""

    directory: str = ""
    """Where the commit log lives; created when absent."""
    partitions: Positive = 64
    """Power of two; the same for all keyed topics of a system and fixed for its life."""
    concurrency: Positive = 100
    """Fetches in flight at once: what the downloader announced as its capacity."""
    hot_hosts: Positive = 20_000
    """Hosts kept as objects; all others are bytes in the host store, 2-20 µs away."""
    hot_robots_bytes: int = 64 * 1024 * 1024
    """Memory for robots.txt files of hosts kept as objects, rules included; one that many hosts share counts once."""
    window: Positive = 1024
    """Requests without receipt at most: bounds memory and what a crash fetches again."""
    agent: str = "nephila"
    """Product token looked up in robots.txt (RFC 9309, 2.2.1)."""
    tries: Positive = 3
    """Attempts per fetch for 429, 5xx and network errors."""
    retry_delay_s: float = 2.0
    """Seconds before the second try of a URL after a network error or 5xx; doubles with each try."""
    backoff_s: float = 60.0
    """First pause of a host that answered 429 or 503 or timed out, unless it named its own in Retry-After; doubles."""
    backoff_max_s: float = 86_400.0
    """Longest pause, named by the host or not."""
    backoff_forget_s: float = 1_800.0
    """Seconds without a refusal, counted from the end of the last pause, after which a back-off is forgiven."""
    jitter: float = 0.1
    """Share of a pause that is added at random, so that hosts do not come back in step."""
    per_address: int = 4
    """Fetches in flight on one server address, over all hosts and jobs but those with delay 0. 0 = no limit."""
    address_gap_s: float = 0.25
    """Seconds between two starts on one server address: many names on one machine must not add up to a flood."""
    networks: tuple[str, ...] = ()
    """Other limits for single networks, "10.0.0.0/8=16/0.05" = connections/gap; the downloader's should be the same."""
    crawl_delay_max_s: float = 300.0
    """A Crawl-delay beyond this counts as this much; a site that wants less traffic has Disallow."""
    robots_ttl_s: float = 86_400.0
    """How long a robots.txt is believed (RFC 9309, 2.4)."""
    robots_retry_s: float = 600.0
    """How long an unreachable robots.txt is believed to forbid everything before it is asked for again."""
    start_by_s: float = 60.0
    """A request not dialled this many seconds after it was handed out is void."""
    lease_s: float = 120.0
    """Seconds after start_by at which a URL without outcome is taken back; longer than any fetch may last (the
    downloader's total_timeout_s). What a killed downloader had in hand, and its hosts, wait that long where nobody
    reports it before: over a broker the member that takes its partitions over does, after two sessions."""
    max_hops: int = 10
    """Redirects followed from one URL."""
    segment_bytes: Positive = 64 * 1024 * 1024
    """Log growth that triggers a snapshot, after which older segments are deleted."""
    blobs: str = ""
    """Over a broker: where snapshots of partitions lie, a directory that all schedulers see or s3://bucket/path. Empty:
    they stay in `directory`, and whoever takes a partition over reads its whole log."""
    snapshot_bytes: Positive = 8 * 1024 * 1024
    """Over a broker: growth of a partition's log that triggers a snapshot; whoever takes it over reads so much."""
    snapshot_age_s: float = 21_600.0
    """Over a broker: commits are in a snapshot after so long; well below the time that the broker keeps the log."""
    recrawl: bool = True
    """Pages are fetched again when they are due. Off in a program whose crawl ends: there `--refresh` says when."""
    status_interval_s: float = 0.0
    """How often the jobs that have changed are told on `job-status`; 0 = never: in one program nobody reads it."""
    fsync_interval_s: float = 1.0
    """Longest time a commit may live in the page cache alone; a killed process loses nothing, a power cut this much."""
