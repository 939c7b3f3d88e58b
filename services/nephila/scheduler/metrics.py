"""Metrics of the scheduler, of one program and of a cluster.

`FRONTIER_METRICS` fits the scheduler of one program and the scheduler over a broker: same names, same meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from nephila.kernel.process.disk import DiskSpace
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.metrics import Metric
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters
from nephila.scheduler.jobs.job import Job


class AnyScheduler(Protocol):
    """The part that the scheduler of one program and the scheduler of a cluster have in common."""

    clock: Clock

    @property
    def disk(self) -> DiskSpace: ...

    @property
    def requests(self) -> int:
        """Requests handed out."""

    @property
    def errors(self) -> Mapping[str, int]:
        """Fetches that failed, by reason."""

    @property
    def commits(self) -> int:
        """Commits written."""

    @property
    def frontiers(self) -> Iterable[Frontier]:
        """One for each partition; all of them for one program's scheduler are one."""

    @property
    def known_jobs(self) -> int:
        """Jobs that are not deleted."""

    @property
    def log_bytes(self) -> int:
        """Bytes of the log since the last snapshots."""

    @property
    def counters(self) -> FrontierCounters:
        """Counters over all frontiers."""

    @property
    def snapshot_age_s(self) -> float:
        """Seconds since the last complete snapshot; of several partitions the oldest; 0 while nothing is missing."""

    @property
    def config(self) -> SchedulerConfig:
        """Its settings."""


def _jobs(scheduler: AnyScheduler) -> Iterable[Job]:
    return (job for frontier in scheduler.frontiers for job in frontier.jobs.values())


def _ended(scheduler: AnyScheduler) -> Mapping[str, float]:
    counts: Counter[str] = Counter()
    for job in _jobs(scheduler):
        for outcome, count in job.counts.ended.items():
            counts[outcome.name.lower()] += count
    return counts


def _quota_shares(scheduler: AnyScheduler) -> Mapping[str, float]:
    """Each frontier knows a part of the use of the others, so the largest share counts."""
    utc, shares = scheduler.clock.now(), dict[str, float]()
    for frontier in scheduler.frontiers:
        for name, share in frontier.quotas.used_shares(utc).items():
            shares[name] = max(shares.get(name, 0.0), share)
    return shares


JOBS_SHOWN = 50
"""Jobs with a label of their own in the metrics by job: those with most work. All others count as `OTHER_JOBS`."""
OTHER_JOBS = "(others)"


def _by_name(scheduler: AnyScheduler) -> dict[str, list[Job]]:
    """Name → the job in each partition; at most `JOBS_SHOWN` names."""
    by_name: dict[str, list[Job]] = {}
    for job in _jobs(scheduler):
        by_name.setdefault(job.spec.name or job.uid, []).append(job)
    if len(by_name) > JOBS_SHOWN:
        most = sorted(
            by_name,
            key=lambda name: sum(job.queue.length + job.counts.dispatched for job in by_name[name]),
            reverse=True,
        )
        rest = [job for name in most[JOBS_SHOWN:] for job in by_name[name]]
        by_name = {**{name: by_name[name] for name in most[:JOBS_SHOWN]}, OTHER_JOBS: rest}
    return by_name


def _ended_by_job(scheduler: AnyScheduler) -> Mapping[tuple[str, str], float]:
    counts: Counter[tuple[str, str]] = Counter()
    for name, jobs in _by_name(scheduler).items():
        for job in jobs:
            for outcome, count in job.counts.ended.items():
                counts[name, outcome.name.lower()] += count
    return counts


SAMPLED = 1000
"""Pages of a job that the freshness is estimated from, in each partition."""


def _checks(scheduler: AnyScheduler, part: int) -> Mapping[str, float]:
    """Job with an objective → its watched pages (part 0), and those of them whose last check is too old (part 1)."""
    now = scheduler.clock.now()
    return {
        name: sum(job.due_table.checked_before(now - job.compiled.recrawl.freshness_s, SAMPLED)[part] for job in jobs)
        for name, jobs in _by_name(scheduler).items()
        if name != OTHER_JOBS and jobs[0].compiled.recrawl.freshness_s
    }


FRONTIER_METRICS: tuple[Metric[AnyScheduler], ...] = (
    Metric(
        "requests_total",
        "Requests handed out. Flat while urls_queued is not 0: all hosts wait.",
        lambda s: s.requests,
        counter=True,
    ),
    Metric(
        "failures_total",
        "Fetches that failed, by reason. A rise: hosts refuse, or the network is down.",
        lambda s: s.errors,
        "reason",
        counter=True,
    ),
    Metric(
        "urls_queued",
        "URLs in queues. A rise: more is found than fetched.",
        lambda s: sum(job.queue.length for job in _jobs(s)),
    ),
    Metric(
        "urls_ended",
        "URLs that have ended, by outcome. Falls when pages are fetched again.",
        _ended,
        "outcome",
    ),
    Metric(
        "fetches_in_flight",
        "Slots of the downloaders for which requests without outcome count: one each, less where messages travel in "
        "beats. At `concurrency`: the downloaders are the bottleneck.",
        lambda s: sum(frontier.in_flight.slots for frontier in s.frontiers),
    ),
    Metric(
        "urls_outstanding",
        "URLs without receipt. At outstanding_limit: the parser or storage is the bottleneck.",
        lambda s: sum(len(frontier.in_flight) for frontier in s.frontiers),
    ),
    Metric(
        "outstanding_limit",
        "URLs that may be without receipt: `window`, at least 64 per busy partition. A rise: more partitions are busy.",
        lambda s: sum(frontier.window for frontier in s.frontiers),
    ),
    Metric(
        "hosts",
        "Hosts known. A rise: new hosts are found.",
        lambda s: sum(len(frontier.store) for frontier in s.frontiers),
    ),
    Metric(
        "hosts_hot",
        "Hosts kept as objects. At `hot_hosts`: hosts move between memory and the store all the time.",
        lambda s: sum(len(frontier.hosts.hot) for frontier in s.frontiers),
    ),
    Metric(
        "hosts_ready",
        "Hosts that may be fetched now. A rise: add downloaders.",
        lambda s: sum(frontier.readiness.hosts_ready(s.clock.monotonic()) for frontier in s.frontiers),
    ),
    Metric(
        "urls_ready",
        "URLs queued on those hosts. A rise: more downloaders would fetch more.",
        lambda s: sum(frontier.readiness.urls_ready(s.clock.monotonic()) for frontier in s.frontiers),
    ),
    Metric(
        "oldest_ready_seconds",
        "How long the host that has been ready longest has waited. A rise: too little capacity, or a stall.",
        lambda s: max(
            (frontier.readiness.oldest_ready_s(s.clock.monotonic()) for frontier in s.frontiers), default=0.0
        ),
    ),
    Metric(
        "hosts_waiting",
        "Hosts with queued URLs whose delay or pause is not over. A rise: politeness is the limit.",
        lambda s: sum(frontier.readiness.hosts_waiting(s.clock.monotonic()) for frontier in s.frontiers),
    ),
    Metric(
        "hosts_blocked",
        "Hosts that wait for a server address, a budget or a paused job. A rise: time alone does not free them.",
        lambda s: sum(frontier.readiness.hosts_blocked for frontier in s.frontiers),
    ),
    Metric("jobs", "Jobs known. A rise: jobs are applied.", lambda s: s.known_jobs),
    Metric(
        "job_urls_queued",
        "URLs in queues by job: the 50 jobs with most work, and (others). A rise: the job finds more than it fetches.",
        lambda s: {name: sum(job.queue.length for job in jobs) for name, jobs in _by_name(s).items()},
        "crawl",
    ),
    Metric(
        "job_urls_outstanding",
        "URLs taken from queues and without receipt by job. At the limit of one job: its pages are slow to store.",
        lambda s: {name: sum(job.counts.leased for job in jobs) for name, jobs in _by_name(s).items()},
        "crawl",
    ),
    Metric(
        "job_urls_ended",
        "URLs that have ended, by job and outcome. Falls when pages are fetched again.",
        _ended_by_job,
        ("crawl", "outcome"),
    ),
    Metric(
        "job_pages_watched",
        "Pages that are fetched again, of jobs with an objective (recrawl.freshness). A fall: pages are gone.",
        lambda s: _checks(s, 0),
        "crawl",
    ),
    Metric(
        "job_pages_stale",
        "Watched pages whose last check is older than the job's recrawl.freshness. A rise: the objective is missed.",
        lambda s: _checks(s, 1),
        "crawl",
    ),
    Metric(
        "urls_without_page_total",
        "URLs that ended without a page, by reason, robots included. A rise: look at such a URL by nephila explain.",
        lambda s: s.counters.without_page,
        "reason",
        counter=True,
    ),
    Metric(
        "early_fetches_total",
        "Fetches that began over a second before their host might be fetched from. Any rise breaks politeness.",
        lambda s: s.counters.early_fetches,
        counter=True,
    ),
    Metric(
        "lost_messages_total",
        "URLs whose page, record or receipt was lost on the bus; they are fetched again. A rise: the broker lost data.",
        lambda s: s.counters.lost_messages,
        counter=True,
    ),
    Metric(
        "tenant_fetches_total",
        "Fetches of pages by tenant. A rise: its jobs use more of the system.",
        lambda s: {name: use.fetches for name, use in s.counters.tenants.items()},
        "tenant",
        counter=True,
    ),
    Metric(
        "tenant_wire_bytes_total",
        "Bytes received for pages by tenant. A rise above that of its fetches: its pages are larger.",
        lambda s: {name: use.wire_bytes for name, use in s.counters.tenants.items()},
        "tenant",
        counter=True,
    ),
    Metric(
        "tenant_browser_seconds_total",
        "Seconds in a browser by tenant. A rise: more of its pages are rendered.",
        lambda s: {name: use.browser_s for name, use in s.counters.tenants.items()},
        "tenant",
        counter=True,
    ),
    Metric(
        "tenant_quota_used_ratio",
        "Share of the quota of a tenant that is used up in this period: of pages, bytes or browser time, whichever is "
        "most. At 1 its jobs wait for the next period.",
        _quota_shares,
        "tenant",
    ),
    Metric("commits_total", "Commits written. Flat: nothing happens.", lambda s: s.commits, counter=True),
    Metric(
        "frontier_log_bytes",
        "Log since the last snapshots, approximately. A rise: a takeover or a restart reads more.",
        lambda s: s.log_bytes,
    ),
    Metric(
        "snapshot_age_seconds",
        "Age of the oldest snapshot that lacks commits. A rise above snapshot_age_s: snapshots fail.",
        lambda s: s.snapshot_age_s,
    ),
    Metric(
        "disk_free_bytes",
        "Free space on the disk of the directory. A fall to 0: the scheduler ends, and nothing is lost.",
        lambda s: s.disk.free_bytes,
    ),
    Metric(
        "disk_size_bytes",
        "Size of the disk of the directory. A rise: the volume was enlarged.",
        lambda s: s.disk.size_bytes,
    ),
)
