"""Figures of the scheduler over a broker."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.scheduler.cluster.scheduler import ClusterScheduler

METRICS: tuple[Metric[ClusterScheduler], ...] = (
    Metric(
        "requests_total",
        "Requests handed out; flat while queued is not: hosts wait.",
        lambda s: s.counts.requests,
        counter=True,
    ),
    Metric("failures_total", "Fetches that failed, by reason.", lambda s: s.counts.errors, "reason", counter=True),
    Metric("urls_queued", "URLs that wait; a rise: more is found than fetched.", lambda s: s.queued),
    Metric(
        "urls_ended",
        "URLs that have ended, by outcome; falls when pages are fetched again.",
        lambda s: s.ended(),
        "outcome",
    ),
    Metric("fetches_in_flight", "Requests without outcome.", lambda s: s.total(lambda one: one.frontier.in_fetch)),
    Metric(
        "urls_outstanding",
        "URLs without receipt; at `window`: storage is the brake.",
        lambda s: s.total(lambda one: one.frontier.outstanding),
    ),
    Metric("hosts", "Hosts known.", lambda s: s.total(lambda one: len(one.frontier.store))),
    Metric("hosts_hot", "Hosts kept as objects.", lambda s: s.total(lambda one: len(one.frontier.hosts.hot))),
    Metric("jobs", "Jobs known.", lambda s: sum(not job.deleted for job in s.jobs.values())),
    Metric("partitions", "Partitions that are this member's.", lambda s: len(s.owners)),
    Metric("commits_total", "Commits written; flat: nothing happens.", lambda s: s.counts.commits, counter=True),
    Metric(
        "emissions_held_total",
        "Times that nothing went out because the partition may have been lost; a rise: the broker is slow to hear us.",
        lambda s: s.counts.blocked,
        counter=True,
    ),
    Metric(
        "addresses_held",
        "Server addresses that it is this member's turn at, of several.",
        lambda s: s.address_queue.lock.held_count,
    ),
    Metric(
        "address_entries_total",
        "Server addresses claimed, passed on or told of; steep: many are shared with other schedulers.",
        lambda s: s.address_queue.lock.entries_sent,
        counter=True,
    ),
    Metric(
        "frontier_log_bytes",
        "Log since the last snapshots, about; who takes the partitions over replays it.",
        lambda s: s.total(lambda one: one.log_bytes),
    ),
)
