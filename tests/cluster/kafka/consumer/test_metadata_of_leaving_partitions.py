"""A suspect is delivered only where its metadata could be committed: not in a partition that leaves or stands still."""

from __future__ import annotations

import pytest
from aiokafka.structs import TopicPartition
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.kafka.client import consumer as client
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer.commit_metadata import HELD
from nephila_cluster.kafka.consumer.consumer_group import ConsumerGroup
from nephila_cluster.kafka.consumer.offsets import PartitionPosition
from nephila_cluster.kafka.consumer.partition_state import PartitionState, Phase

TP = TopicPartition("pages", 3)
PROBING = HELD.probing(7, 0)


class Consumer:
    """Of a broker that has this topic."""

    def partitions_for_topic(self, topic):
        """See `AIOKafkaConsumer`."""
        return {TP.partition}


@pytest.fixture
def commits(monkeypatch):
    """What was committed."""
    found = []

    async def commit_offsets(consumer, offsets):
        found.append(offsets)

    monkeypatch.setattr(client, "commit_offsets", commit_offsets)
    return found


def state_in(phase: Phase) -> PartitionState:
    """A partition of this member that was read up to offset 7."""
    state = PartitionState()
    state.position = PartitionPosition(7)
    for one in (Phase.OPEN, phase):
        state.enter(one)
    assert state.phase is phase
    return state


def group_with(state: PartitionState | None) -> ConsumerGroup:
    """A member that is connected."""
    group = ConsumerGroup("parser", KafkaConfig(name="p"), ManualClock(), None, pytest.fail)
    group.consumer = Consumer()  # type: ignore[assignment]
    if state is not None:
        group.inbox.partition_states[TP] = state
    return group


async def test_the_metadata_of_an_open_partition_is_committed_with_its_offset(commits):
    """The next member finds the suspect there."""
    state = state_in(Phase.OPEN)
    assert await group_with(state)._commit_metadata(TP, PROBING)
    assert [(offset, "7" in text) for ((offset, text),) in (one.values() for one in commits)] == [(7, True)]
    assert state.metadata == PROBING


@pytest.mark.parametrize("held", ["leaving", "stopped", "without position", "of another member"])
async def test_nothing_is_committed_for_a_partition_that_delivers_nothing(commits, held):
    """The suspect is left to the next member, and no crash is counted against it."""
    state = state_in(Phase.LEAVING if held == "leaving" else Phase.OPEN)
    state.stopped = held == "stopped"
    if held == "without position":
        state.position = None
    assert not await group_with(None if held == "of another member" else state)._commit_metadata(TP, PROBING)
    assert commits == []
    assert state.metadata == HELD
