"""Metrics of the scheduler over Kafka: those of every scheduler, and those of its partitions and addresses."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.scheduler.metrics import FRONTIER_METRICS

from nephila_cluster.scheduler.scheduler import ClusterScheduler

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
