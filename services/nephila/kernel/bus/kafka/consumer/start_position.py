"""Where reading begins of partitions that have come here, and what their last member left beside the position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from nephila.kernel.bus.kafka.consumer.commit_metadata import CommitMetadata, encode_metadata, parse_metadata
from nephila.kernel.bus.kafka.consumer.inbox import Inbox
from nephila.kernel.runtime.errors import TemporaryError, UserError


class StartPosition(NamedTuple):
    """One partition as it is found."""

    start: int
    """Offset that is read first."""
    end: int
    """Behind the last record that is there."""
    metadata: CommitMetadata
    """What is true while we hold it."""
    refused: UserError | None
    """Why it must not be read."""
    crashed: bool = False
    """Its last member did not let go of it."""


async def start_positions(
    consumer: AIOKafkaConsumer, inbox: Inbox, tps: list[TopicPartition]
) -> dict[TopicPartition, StartPosition]:
    """Positions that were committed, else the beginning of the log. Raises `KafkaError`."""
    committed = await consumer._coordinator.fetch_committed_offsets(tps)
    first = await consumer.beginning_offsets(tps)
    last = await consumer.end_offsets(tps)
    found = {}
    for tp in tps:
        start, metadata, refused = first[tp], CommitMetadata(), None
        if tp in committed:
            start, metadata = committed[tp].offset, parse_metadata(committed[tp].metadata)
        if not first[tp] <= start <= last[tp]:
            refused = inbox.check_gap(tp, start, first[tp], last[tp])
            start = first[tp]
        found[tp] = StartPosition(start, last[tp], metadata.opened(), refused, metadata.held)
    return found


def crashed_partitions(
    inbox: Inbox, tps: Iterable[TopicPartition], found: Mapping[TopicPartition, StartPosition]
) -> dict[int, int]:
    """Partitions of leased topics that their last members did not let go of, with the offsets where reading begins."""
    leased = [tp for tp in tps if inbox.topics[tp.topic].topic.leased]
    return {tp.partition: found[tp].start for tp in leased if found[tp].crashed}


async def mark_held(
    consumer: AIOKafkaConsumer, inbox: Inbox, tps: Iterable[TopicPartition], found: dict[TopicPartition, StartPosition]
) -> None:
    """Say that these are held, before anything of them is delivered: a crash is known by it. Raises `KafkaError`.

    Not of what is refused, so that it stays refused."""
    marked = {
        tp: (found[tp].start, encode_metadata(found[tp].metadata))
        for tp in tps
        if not inbox.partition_states[tp].stopped
    }
    if marked:
        await consumer.commit(marked)


async def has_committed_to(consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether the group has committed positions at or behind these. Raises `TemporaryError`."""
    try:
        committed = await consumer._coordinator.fetch_committed_offsets(list(ends))
    except KafkaError as error:
        raise TemporaryError(f"{type(error).__name__}: {error}") from None
    return all(tp in committed and committed[tp].offset >= end for tp, end in ends.items())
