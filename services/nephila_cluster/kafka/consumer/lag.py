"""How far a group is behind at this member: records that are not processed, and the age of the oldest one taken."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer

from nephila_cluster.kafka.consumer.inbox import Inbox


def records_behind(consumer: AIOKafkaConsumer | None, inbox: Inbox) -> dict[str, int]:
    """Topic → records that are not processed. No request to the broker: the end of a log is as of the last fetch."""
    counts = {reader.topic.name: 0 for reader in inbox.topics.values()}
    for tp, state in inbox.partition_states.items():
        if state.position is not None and consumer is not None:
            end = consumer.highwater(tp) if tp in consumer.assignment() else None
            counts[inbox.topics[tp.topic].topic.name] += max((end or 0) - state.position.committed_to, 0)
    return counts


def oldest_unacked_s(inbox: Inbox, now: float) -> dict[str, float]:
    """Topic → age of the oldest record that is taken and not processed; 0 without one. `now`: UTC seconds."""
    ages = {reader.topic.name: 0.0 for reader in inbox.topics.values()}
    for tp, state in inbox.partition_states.items():
        written = state.position.oldest_written_at if state.position is not None else None
        if written:
            name = inbox.topics[tp.topic].topic.name
            ages[name] = max(ages[name], now - written / 1000)
    return ages
