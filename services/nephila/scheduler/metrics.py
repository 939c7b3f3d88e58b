"""Figures of the scheduler over a broker."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Figure
from nephila.scheduler.cluster.scheduler import Shards

FIGURES: tuple[Figure[Shards], ...] = (
    Figure(
        "requests_total",
        "Requests handed out; flat while queued is not: hosts wait.",
        lambda s: s.counts.requests,
        rises=True,
    ),
    Figure("failures_total", "Fetches that failed, by reason.", lambda s: s.counts.errors, "reason", rises=True),
    Figure("urls_queued", "URLs that wait; a rise: more is found than fetched.", lambda s: s.queued),
    Figure(
        "urls_ended",
        "URLs that have ended, by outcome; falls when pages are fetched again.",
        lambda s: s.ended(),
        "outcome",
    ),
    Figure("fetches_in_flight", "Requests without outcome.", lambda s: s.total(lambda one: one.frontier.in_fetch)),
    Figure(
        "urls_outstanding",
        "URLs without receipt; at `window`: storage is the brake.",
        lambda s: s.total(lambda one: one.frontier.outstanding),
    ),
    Figure("hosts", "Hosts known.", lambda s: s.total(lambda one: len(one.frontier.store))),
    Figure("hosts_hot", "Hosts kept as objects.", lambda s: s.total(lambda one: len(one.frontier.hosts.hot))),
    Figure("jobs", "Jobs known.", lambda s: sum(not job.deleted for job in s.jobs.values())),
    Figure("partitions", "Partitions that are this member's.", lambda s: len(s.shards)),
    Figure("commits_total", "Commits written; flat: nothing happens.", lambda s: s.counts.commits, rises=True),
    Figure(
        "emissions_held_total",
        "Times that nothing went out because the partition may have been lost; a rise: the broker is slow to hear us.",
        lambda s: s.counts.blocked,
        rises=True,
    ),
    Figure(
        "addresses_held",
        "Server addresses that it is this member's turn at, of several.",
        lambda s: s.lines.turns.held_now,
    ),
    Figure(
        "address_entries_total",
        "Server addresses claimed, passed on or told of; steep: many are shared with other schedulers.",
        lambda s: s.lines.turns.told,
        rises=True,
    ),
    Figure(
        "frontier_log_bytes",
        "Log since the last snapshots, about; who takes the partitions over replays it.",
        lambda s: s.total(lambda one: one.log_bytes),
    ),
)
