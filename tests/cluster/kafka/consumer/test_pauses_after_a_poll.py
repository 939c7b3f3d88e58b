"""Pauses after a poll cost as many steps as partitions were read, not as many as a member has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from nephila.kernel.topics import SEEDS
from nephila_cluster.kafka.consumer.partition_state import Phase
from nephila_cluster.kafka.consumer.pauses import Pauses

from tests.cluster.kafka.consumer.test_inbox import Rig

PARTITIONS = 1000


class Consumer:
    """The part of the client that pauses."""

    def __init__(self, assigned: set[TopicPartition]) -> None:
        self._subscription = SimpleNamespace(subscription=object(), reassignment_in_progress=False)
        self.assigned, self.stopped, self.looks = frozenset(assigned), set[TopicPartition](), 0

    def assignment(self) -> frozenset[TopicPartition]:
        return self.assigned

    def paused(self) -> set[TopicPartition]:
        self.looks += 1
        return set(self.stopped)

    def pause(self, *tps: TopicPartition) -> None:
        self.stopped.update(tps)

    def resume(self, *tps: TopicPartition) -> None:
        self.stopped.difference_update(tps)


def tp(partition: int) -> TopicPartition:
    return TopicPartition(SEEDS.name, partition)


def member() -> tuple[Rig, Any, Pauses]:
    """A member with all partitions open, whose pauses were applied once."""
    rig = Rig(credits=2, buffer_messages=4)
    consumer, pauses = Consumer({rig.open(number) for number in range(PARTITIONS)}), Pauses(rig.inbox)
    pauses.apply(consumer)  # type: ignore[arg-type]
    assert not consumer.stopped
    return rig, consumer, pauses


async def test_only_partitions_that_were_read_are_looked_at() -> None:
    """One that left meanwhile is not paused: the client would refuse it."""
    rig, consumer, pauses = member()
    for number in (7, 9):
        rig.inbox.partition_states[tp(number)].phase = Phase.LEAVING
    consumer.assigned -= {tp(9)}
    pauses.after_poll(consumer, [tp(7), tp(8), tp(9)])
    assert (consumer.stopped, consumer.looks) == ({tp(7)}, 1)


async def test_a_full_topic_pauses_all_its_partitions_until_it_is_half_empty() -> None:
    """Also when another caller has looked in between."""
    rig, consumer, pauses = member()
    rig.take(tp(0), 0, 1, 2, 3)
    pauses.after_poll(consumer, [tp(0)])
    assert len(consumer.stopped) == PARTITIONS
    pauses.after_poll(consumer, [])
    assert consumer.looks == 2
    for _ in range(6):
        rig.got.pop(0).ack()
    assert rig.inbox.open(tp(5))
    pauses.after_poll(consumer, [])
    assert not consumer.stopped


async def test_nothing_is_paused_while_partitions_are_assigned_anew() -> None:
    """The client has no assignment then."""
    rig, consumer, pauses = member()
    rig.inbox.partition_states[tp(7)].phase = Phase.LEAVING
    consumer._subscription.reassignment_in_progress = True
    pauses.after_poll(consumer, [tp(7)])
    pauses.apply(consumer)
    assert not consumer.stopped
