"""Metrics of the scheduler over a broker."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.scheduler.cluster.scheduler import ClusterScheduler

METRICS: tuple[Metric[ClusterScheduler], ...] = (
    Metric(
        "requests_total",
        "Requests handed out. Flat while urls_queued is not 0: all hosts wait.",
        lambda s: s.counts.requests,
        counter=True,
    ),
    Metric(
        "failures_total",
        "Fetches that failed, by reason. A rise: hosts refuse, or the network is down.",
        lambda s: s.counts.errors,
        "reason",
        counter=True,
    ),
    Metric("urls_queued", "URLs in queues. A rise: more is found than fetched.", lambda s: s.queued),
    Metric(
        "urls_ended",
        "URLs that have ended, by outcome. Falls when pages are fetched again.",
        lambda s: s.ended(),
        "outcome",
    ),
    Metric(
        "fetches_in_flight",
        "Requests without outcome. At `concurrency`: the downloaders are the bottleneck.",
        lambda s: s.total(lambda owner: owner.frontier.in_fetch),
    ),
    Metric(
        "urls_outstanding",
        "URLs without receipt. At outstanding_limit: the parser or storage is the bottleneck.",
        lambda s: s.total(lambda owner: owner.frontier.outstanding),
    ),
    Metric(
        "outstanding_limit",
        "URLs that may be without receipt: `window`, at least 64 per busy partition. A rise: more partitions are busy.",
        lambda s: s.total(lambda owner: owner.frontier.window),
    ),
    Metric(
        "hosts",
        "Hosts known. A rise: new hosts are found.",
        lambda s: s.total(lambda owner: len(owner.frontier.store)),
    ),
    Metric(
        "hosts_hot",
        "Hosts kept as objects. At `hot_hosts`: hosts move between memory and the store all the time.",
        lambda s: s.total(lambda owner: len(owner.frontier.hosts.hot)),
    ),
    Metric(
        "hosts_ready",
        "Hosts that may be fetched now. A rise: add downloaders.",
        lambda s: s.total(lambda owner: owner.frontier.hosts_ready(s.clock.monotonic())),
    ),
    Metric(
        "urls_ready",
        "URLs queued on those hosts. A rise: more downloaders would fetch more.",
        lambda s: s.total(lambda owner: owner.frontier.urls_ready(s.clock.monotonic())),
    ),
    Metric(
        "oldest_ready_seconds",
        "How long the host that has been ready longest has waited. A rise: too little capacity, or a stall.",
        lambda s: max((one.frontier.oldest_ready_s(s.clock.monotonic()) for one in s.owners.values()), default=0.0),
    ),
    Metric("jobs", "Jobs known. A rise: jobs are applied.", lambda s: sum(not job.deleted for job in s.jobs.values())),
    Metric(
        "partitions",
        "Partitions that this member owns. A rise: another member has left.",
        lambda s: len(s.owners),
    ),
    Metric("commits_total", "Commits written. Flat: nothing happens.", lambda s: s.counts.commits, counter=True),
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
    Metric(
        "frontier_log_bytes",
        "Log since the last snapshots, approximately. A rise: a takeover reads more.",
        lambda s: s.total(lambda owner: owner.log_bytes),
    ),
)
