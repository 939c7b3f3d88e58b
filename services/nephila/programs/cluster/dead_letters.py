"""Dead letters of a system over Kafka: what they are, and how their messages are published again.

A letter is named by its place in the topic `dead`, PARTITION:OFFSET, with .N behind it where a record holds several.
Letters stay until retention removes them; to replay one twice is harmless, since whatever a message leads to is
idempotent: a page that can be parsed by now takes over the row that said failed(dead_letter), its links go to the
scheduler. What cannot be replayed is said, and why. The scheduler's counts of ended URLs do not change by a replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from nephila.kernel.bus.kafka.admin import topics as admin
from nephila.kernel.bus.kafka.claim_check import ClaimStore
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.bus.kafka.wire import HEADERS, TooNew, message_of, unseal
from nephila.kernel.messages import DeadLetter, Frame
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UsageError, UserError
from nephila.kernel.topics import DEAD, TOPICS
from nephila.native import partition_of

_TOPICS = {topic.name: topic for topic in TOPICS}


@dataclass(frozen=True, slots=True)
class Found:
    """One letter and where it lies."""

    place: str
    at: float
    """When it was written, seconds since 1970 UTC."""
    letter: DeadLetter
    problem: str = ""
    """Why the letter itself cannot be read; then it is empty."""

    @property
    def kind(self) -> str:
        """The type of the message, as `Page`."""
        topic = _TOPICS.get(self.letter.topic)
        return topic.message.__name__ if topic is not None else ""

    @property
    def refused(self) -> str:
        """Why its message is not published again; empty when it is."""
        topic = _TOPICS.get(self.letter.topic)
        if self.problem:
            return self.problem
        if topic is None:
            return f"topic {self.letter.topic!r} is none of the route"
        if topic.leased:
            return "a request is not replayed: its lease has brought its URL back"
        if not self.letter.message:
            return "the message was not kept"
        return ""


async def scan(
    config: KafkaConfig, claim_store: ClaimStore | None = None, places: Sequence[str] = ()
) -> AsyncIterator[Found]:
    """Letters in the order of partitions and offsets, one record in memory at a time: those named, or all that were
    there when it began. Raises `UserError`, for a place where no letter is before any is given."""
    there = await admin.existing(config, (DEAD,))
    if DEAD.name not in there:
        raise UserError(f"the broker at {config.bootstrap} has no topic {config.prefix}{DEAD.name}: is --prefix right?")
    consumer = AIOKafkaConsumer(
        bootstrap_servers=config.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    tps = [TopicPartition(config.prefix + DEAD.name, number) for number in range(there[DEAD.name])]
    try:
        await consumer.start()
        first, last = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        ranges = _named(places, {tp.partition: (first[tp], last[tp]) for tp in tps})
        for partition, start, end in ranges:
            async for record in _records(consumer, tps[partition], start, end):
                for one in await _letters(record, claim_store):
                    if not places or one.place in places or one.place.partition(".")[0] in places:
                        yield one
    except (KafkaError, OSError) as error:
        raise admin.trouble_with(config, error) from None
    finally:
        await consumer.stop()


def _named(places: Sequence[str], bounds: dict[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(partition, first offset, end) of what is to be read."""
    if not places:
        return [(partition, *ends) for partition, ends in sorted(bounds.items())]
    found = set()
    for place in places:
        partition, colon, offset = place.partition(".")[0].partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise UsageError(f"{place!r} is no PARTITION:OFFSET; see nephila dead list")
        first, last = bounds.get(int(partition), (0, 0))
        if not first <= int(offset) < last:
            raise UserError(f"no dead letter at {place}; see nephila dead list")
        found.add((int(partition), int(offset), int(offset) + 1))
    return sorted(found)


async def _records(consumer: AIOKafkaConsumer, tp: TopicPartition, start: int, end: int) -> AsyncIterator[Any]:
    if start >= end:
        return
    consumer.assign([tp])
    consumer.seek(tp, start)
    while True:
        for record in (await consumer.getmany(tp, timeout_ms=500, max_records=50)).get(tp, ()):
            if record.offset < end:
                yield record
        if await consumer.position(tp) >= end:
            return


async def _letters(record: Any, claim_store: ClaimStore | None) -> list[Found]:
    place, at = f"{record.partition}:{record.offset}", record.timestamp / 1000
    try:
        frames = unseal(record.value, record.headers)
    except (PermanentError, TooNew) as error:
        return [Found(place, at, DeadLetter(), f"no letter: {error}")]
    found = []
    for number, frame in enumerate(frames):
        name = place if len(frames) == 1 else f"{place}.{number}"
        try:
            data = frame.message
            if frame.claim:
                if claim_store is None:
                    raise PermanentError("it lies in the blob store, and none is set (kafka: blobs)")
                data = await asyncio.to_thread(claim_store.get, frame.claim)
            found.append(Found(name, at, message_of(DeadLetter, Frame(data, frame.encoding))))
        except (PermanentError, TemporaryError, TooNew) as error:
            found.append(Found(name, at, DeadLetter(), str(error)))
    return found


async def replay(
    config: KafkaConfig, claim_store: ClaimStore | None, places: Sequence[str], job: str | None
) -> AsyncIterator[Found]:
    """Publish messages again, each as it was; gives each letter when the broker has its message, or has refused it for
    what `refused` says. Raises `UserError`."""
    there = await admin.existing(config)
    producer = AIOKafkaProducer(
        bootstrap_servers=config.bootstrap, acks="all", enable_idempotence=True, max_request_size=4 << 20
    )
    try:
        await producer.start()
        async for one in scan(config, claim_store, places):
            if job is not None and one.letter.job != job:
                continue
            if not one.refused:
                partition = _partition(config, one.letter, there)
                topic = config.prefix + one.letter.topic
                await producer.send_and_wait(topic, one.letter.message, partition=partition, headers=HEADERS)
            yield one
    except (KafkaError, OSError) as error:
        raise admin.trouble_with(config, error) from None
    finally:
        await producer.stop()


def _partition(config: KafkaConfig, letter: DeadLetter, there: dict[str, int]) -> int:
    """Where its URL belongs, for the system may have grown since; else where it was read."""
    count = there.get(letter.topic, 0)
    partition = partition_of(letter.url_key, count) if letter.url_key and count else letter.partition
    if partition >= count:
        where = f"{config.prefix}{letter.topic}/{letter.partition}"
        raise UserError(f"a letter names {where}, and that topic has {count} partitions")
    return partition
