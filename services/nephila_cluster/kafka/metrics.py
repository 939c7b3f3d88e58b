"""Metrics of the bus over Kafka, by consumer group and topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nephila.kernel.bus.metrics import DEAD_LETTERS
from nephila.kernel.runtime.metrics import Metric

from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.consumer.consumer_group import ConsumerGroup
from nephila_cluster.kafka.consumer.lag import oldest_unacked_s, records_behind

GROUP = "group"
GROUP_TOPIC = ("group", "topic")


def _by_group(read: Callable[[ConsumerGroup], float]) -> Callable[[KafkaBus], Mapping[str, float]]:
    return lambda bus: {name: read(group) for name, group in bus.groups.items()}


def _lag(bus: KafkaBus) -> Mapping[tuple[str, str], float]:
    return {
        (name, topic): lag
        for name, group in bus.groups.items()
        for topic, lag in records_behind(group.consumer, group.inbox).items()
    }


def _oldest_unacked(bus: KafkaBus) -> Mapping[tuple[str, str], float]:
    now = bus.clock.now()
    return {
        (name, topic): age
        for name, group in bus.groups.items()
        for topic, age in oldest_unacked_s(group.inbox, now).items()
    }


METRICS: tuple[Metric[KafkaBus], ...] = (
    Metric(
        "lag_records",
        "Records of this member's partitions that are not processed. A rise: the group is too slow; add members.",
        _lag,
        GROUP_TOPIC,
    ),
    Metric(
        "oldest_unacked_seconds",
        "Age of the oldest record that was read and is not processed. A rise: a message or a dependency blocks.",
        _oldest_unacked,
        GROUP_TOPIC,
    ),
    Metric(
        "partitions",
        "Partitions that this member owns in a group and has opened. A change: the ring has moved them.",
        _by_group(lambda group: len(group.held)),
        GROUP,
    ),
    Metric(
        "rebalances_total",
        "Assignments received. A steady rise: members come and go, or a heartbeat is late.",
        _by_group(lambda group: group.rebalances),
        GROUP,
        counter=True,
    ),
    Metric(
        "evictions_total",
        "Times that the group removed this member while it lived. A rise: it was starved of CPU, frozen, or cut off.",
        _by_group(lambda group: group.evictions),
        GROUP,
        counter=True,
    ),
    Metric(
        "isolated_partitions",
        "Partitions of this member whose messages are delivered one at a time. Above 0: members ended there in a row.",
        _by_group(lambda group: len(group.inbox.isolation.isolated)),
        GROUP,
    ),
    Metric(
        "partitions_gained_total",
        "Partitions that came to this member. A rise: another member has left, or this one has joined.",
        _by_group(lambda group: group.partitions_gained),
        GROUP,
        counter=True,
    ),
    Metric(
        "partitions_lost_total",
        "Partitions that left this member. A rise: another member has joined, or this one was silent for too long.",
        _by_group(lambda group: group.partitions_lost),
        GROUP,
        counter=True,
    ),
    Metric(
        "handover_seconds",
        "From the assignment of partitions until they are open. A rise: take-overs are slow; their hosts wait.",
        lambda bus: {name: group.handover_s.value() for name, group in bus.groups.items()},
        GROUP,
        histogram=True,
    ),
    Metric(
        "consumers_replaced_total",
        "Consumers that were stuck and were replaced. Any rise is a fault of client, broker or network.",
        _by_group(lambda group: group.restarts),
        GROUP,
        counter=True,
    ),
    Metric(
        "unacked",
        "Messages delivered and not acked, waiting ones included. At the credits: the service is the bottleneck.",
        lambda bus: bus.unacked,
    ),
    DEAD_LETTERS,
)
