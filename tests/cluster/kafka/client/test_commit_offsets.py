"""Commits of a group: errors that pass are retried; a topic that does not exist is an error at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    GroupLoadInProgressError,
    IllegalGenerationError,
    IllegalStateError,
    UnknownTopicOrPartitionError,
)
from nephila_cluster.kafka.client import consumer as module

TP = TopicPartition("seeds", 1)


class Coordinator:
    """Answers commits with these errors, one each; then it accepts."""

    def __init__(self, *errors: type[Exception]) -> None:
        self.errors = list(errors)
        self.committed: list[dict[TopicPartition, tuple[int, str]]] = []
        self.updates = 0
        self._commit_lock = asyncio.Lock()
        self._coordinator = self._client = self
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=SimpleNamespace(tps={TP})))

    async def ensure_coordinator_known(self) -> None:
        """It is."""

    def force_metadata_update(self) -> None:
        self.updates += 1

    async def _do_commit_offsets(self, assignment, offsets) -> None:
        if self.errors:
            raise self.errors.pop(0)()
        self.committed.append({tp: tuple(offset) for tp, offset in offsets.items()})


async def test_an_error_that_passes_is_retried(monkeypatch):
    """A coordinator that loads its offsets."""
    monkeypatch.setattr(module, "COMMIT_RETRY_S", 0.0)
    made = Coordinator(GroupLoadInProgressError, GroupLoadInProgressError)
    await module.commit_offsets(made, {TP: (7, "held")})
    assert made.committed == [{TP: (7, "held")}]


async def test_the_offsets_of_a_deleted_topic_are_not_committed_when_it_is_made_again():
    """A retry would let the group skip the first records of the new topic."""
    made = Coordinator(UnknownTopicOrPartitionError)
    with pytest.raises(UnknownTopicOrPartitionError):
        await module.commit_offsets(made, {TP: (7, "")})
    assert (made.committed, made.updates) == ([], 1)


async def test_a_commit_of_an_older_generation_fails():
    """The partitions may have another member."""
    with pytest.raises(CommitFailedError):
        await module.commit_offsets(Coordinator(IllegalGenerationError), {TP: (7, "")})


async def test_a_partition_that_is_not_assigned_is_refused():
    """Nothing is sent."""
    made = Coordinator()
    with pytest.raises(IllegalStateError):
        await module.commit_offsets(made, {TopicPartition("seeds", 2): (7, "")})
    assert made.committed == []
