"""Metrics of the scheduler: a table for both schedulers, and what only the one of a cluster has.

`FRONTIER_METRICS` fits the scheduler of one program and the scheduler over a broker: same names, same meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.metrics import Metric
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.job_state import Job

if TYPE_CHECKING:
    from nephila.scheduler.cluster.scheduler import ClusterScheduler


class AnyScheduler(Protocol):
    """The part that the scheduler of one program and the scheduler of a cluster have in common."""

    clock: Clock

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


def _jobs(scheduler: AnyScheduler) -> Iterable[Job]:
    return (job for frontier in scheduler.frontiers for job in frontier.jobs.values())


def _ended(scheduler: AnyScheduler) -> Mapping[str, float]:
    found: Counter[str] = Counter()
    for job in _jobs(scheduler):
        for outcome, count in job.ended.items():
            found[outcome.name.lower()] += count
    return found


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
        lambda s: sum(job.queued for job in _jobs(s)),
    ),
    Metric(
        "urls_ended",
        "URLs that have ended, by outcome. Falls when pages are fetched again.",
        _ended,
        "outcome",
    ),
    Metric(
        "fetches_in_flight",
        "Requests without outcome. At `concurrency`: the downloaders are the bottleneck.",
        lambda s: sum(frontier.in_fetch for frontier in s.frontiers),
    ),
    Metric(
        "urls_outstanding",
        "URLs without receipt. At outstanding_limit: the parser or storage is the bottleneck.",
        lambda s: sum(frontier.outstanding for frontier in s.frontiers),
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
        lambda s: sum(frontier.hosts_ready(s.clock.monotonic()) for frontier in s.frontiers),
    ),
    Metric(
        "urls_ready",
        "URLs queued on those hosts. A rise: more downloaders would fetch more.",
        lambda s: sum(frontier.urls_ready(s.clock.monotonic()) for frontier in s.frontiers),
    ),
    Metric(
        "oldest_ready_seconds",
        "How long the host that has been ready longest has waited. A rise: too little capacity, or a stall.",
        lambda s: max((one.oldest_ready_s(s.clock.monotonic()) for one in s.frontiers), default=0.0),
    ),
    Metric("jobs", "Jobs known. A rise: jobs are applied.", lambda s: s.known_jobs),
    Metric("commits_total", "Commits written. Flat: nothing happens.", lambda s: s.commits, counter=True),
    Metric(
        "frontier_log_bytes",
        "Log since the last snapshots, approximately. A rise: a takeover or a restart reads more.",
        lambda s: s.log_bytes,
    ),
)

METRICS: tuple[Metric[ClusterScheduler], ...] = (
    *FRONTIER_METRICS,
    Metric(
        "partitions",
        "Partitions that this member owns. A rise: another member has left.",
        lambda s: len(s.owners),
    ),
    Metric(
        "emissions_held_total",
        "Publications postponed because a heartbeat is late. A rise: the broker answers late.",
        lambda s: s.counts.blocked,
        counter=True,
    ),
    Metric(
        "addresses_held",
        "Server addresses that several schedulers use and this one holds. A rise: it has more of the shared hosts.",
        lambda s: s.address_queue.lock.held_count,
    ),
    Metric(
        "address_entries_total",
        "Messages about shared server addresses. A steep rise: many addresses are shared with other schedulers.",
        lambda s: s.address_queue.lock.entries_sent,
        counter=True,
    ),
)
