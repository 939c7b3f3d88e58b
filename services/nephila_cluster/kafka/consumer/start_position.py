"""Where reading of a newly assigned partition starts, and what its last member left in the offset's metadata."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from nephila.kernel.runtime.errors import TemporaryError, UserError

from nephila_cluster.kafka.client.consumer import commit_offsets
from nephila_cluster.kafka.consumer.commit_metadata import HELD, CommitMetadata, encode_metadata, parse_metadata
from nephila_cluster.kafka.consumer.inbox import Inbox
from nephila_cluster.kafka.consumer.partition_state import PartitionState, Phase

log = logging.getLogger(__name__)


class StartPosition(NamedTuple):
    """The start of one partition."""

    start: int
    """Offset of the first record to read."""
    end: int
    """Offset behind the last record."""
    metadata: CommitMetadata
    """Metadata while this member holds the partition."""
    refused: UserError | None
    """Why it must not be read."""
    crashed: bool = False
    """Its last member did not release it."""


async def start_positions(
    consumer: AIOKafkaConsumer, inbox: Inbox, tps: list[TopicPartition]
) -> dict[TopicPartition, StartPosition]:
    """Committed offsets, or else the beginnings of the logs. Raises `KafkaError`."""
    committed = await consumer._coordinator.fetch_committed_offsets(tps)
    first = await consumer.beginning_offsets(tps)
    last = await consumer.end_offsets(tps)
    positions = {}
    for tp in tps:
        start, metadata, refused = first[tp], CommitMetadata(), None
        if tp in committed:
            start, metadata = committed[tp].offset, parse_metadata(committed[tp].metadata)
        if not first[tp] <= start <= last[tp]:
            refused = inbox.check_gap(tp, start, first[tp], last[tp])
            start = first[tp]
        positions[tp] = StartPosition(start, last[tp], metadata.opened(), refused, metadata.held)
    return positions


def crashed_partitions(
    inbox: Inbox, tps: Iterable[TopicPartition], positions: Mapping[TopicPartition, StartPosition]
) -> dict[int, int]:
    """The partitions in the lanes of leased topics that their last members did not release, with the start offsets of
    their lanes."""
    leased = [tp for tp in tps if inbox.topics[tp.topic].topic.leased]
    crashed = {tp.partition: positions[tp].start for tp in leased if positions[tp].crashed}
    return {partition: start for lane, start in crashed.items() for partition in inbox.owned.of([lane])}


def pardon(mine: Mapping[TopicPartition, PartitionState], positions: dict[TopicPartition, StartPosition]) -> bool:
    """Take back crashes of members that live; whether there were any."""
    pardoned = {tp: state for tp, state in mine.items() if state.pardons}
    for tp, state in pardoned.items():
        positions[tp] = positions[tp]._replace(metadata=positions[tp].metadata.pardoned(state.pardons))
        state.metadata, state.pardons = positions[tp].metadata, 0
    return bool(pardoned)


async def mark_held(
    consumer: AIOKafkaConsumer,
    inbox: Inbox,
    tps: Iterable[TopicPartition],
    positions: dict[TopicPartition, StartPosition],
) -> None:
    """Commit that these partitions are held, before anything of them is delivered: this is how a crash is detected.
    Stopped partitions are left out, so that they stay stopped. Raises `KafkaError`."""
    marked = {
        tp: (positions[tp].start, encode_metadata(positions[tp].metadata))
        for tp in tps
        if not inbox.partition_states[tp].stopped
    }
    if marked:
        await commit_offsets(consumer, marked)


async def has_committed_to(consumer: AIOKafkaConsumer | None, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether the group of a consumer has committed offsets at or behind these. Raises `TemporaryError`."""
    if consumer is None:
        raise TemporaryError("the consumer is being replaced")
    try:
        committed = await consumer._coordinator.fetch_committed_offsets(list(ends))
    except KafkaError as error:
        raise TemporaryError(f"{type(error).__name__}: {error}") from None
    return all(tp in committed and committed[tp].offset >= end for tp, end in ends.items())


def open_partition(group: str, inbox: Inbox, tp: TopicPartition, state: PartitionState, start: StartPosition) -> None:
    """Read the partition from now on. Messages that may have crashed members are probed one by one, where a dead letter
    would end their URLs; elsewhere a person has to find the cause."""
    metadata = start.metadata
    state.enter(Phase.OPEN)
    suspected = metadata.needs_isolation and start.start < start.end
    if suspected and state.phase is not Phase.REVOKED and inbox.isolates(tp):
        inbox.isolation.isolate(tp, metadata, start.start, start.end)
        return
    state.metadata = HELD
    if suspected:
        log.warning(
            "%s: %d members in a row ended without progress on %s/%d at offset %d; its messages are delivered again. "
            "Kills from outside and lack of memory do that; if it goes on, the logs of these members have the cause",
            group,
            metadata.crashes,
            tp.topic,
            tp.partition,
            start.start,
        )
