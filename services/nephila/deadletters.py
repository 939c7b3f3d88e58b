"""Dead letters of a system over Kafka: what they are, and how their messages are published again.

A letter is named by its place in the topic `dead`, PARTITION:OFFSET, with .N behind it where a record holds several.
Letters stay until retention removes them; to replay one twice is harmless, since whatever a message leads to is
idempotent: a page that can be parsed by now takes over the row that said failed(dead_letter), its links go to the
scheduler. What cannot be replayed is said, and why. The scheduler's counts of ended URLs do not change by a replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from nephila.kernel.bus import kafka_topics
from nephila.kernel.bus.claims import Claims
from nephila.kernel.bus.kafka_config import KafkaConfig
from nephila.kernel.bus.wire import HEADERS, TooNew, message_of, unseal
from nephila.kernel.errors import PermanentError, TemporaryError, UserError
from nephila.kernel.messages import DeadLetter, Frame
from nephila.kernel.topics import DEAD, TOPICS, Topic
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


async def read(config: KafkaConfig, claims: Claims | None = None) -> list[Found]:
    """All letters that are there, in the order of partitions and offsets. O(letters) memory. Raises `UserError`."""
    there = await kafka_topics.existing(config, (DEAD,))
    if DEAD.name not in there:
        raise UserError(f"the broker at {config.bootstrap} has no topic {config.prefix}{DEAD.name}: is --prefix right?")
    consumer = AIOKafkaConsumer(
        bootstrap_servers=config.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    tps = [TopicPartition(config.prefix + DEAD.name, number) for number in range(there[DEAD.name])]
    consumer.assign(tps)
    found: list[Found] = []
    try:
        await consumer.start()
        first, last = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        left = {tp for tp in tps if first[tp] < last[tp]}
        while left:
            for records in (await consumer.getmany(*left, timeout_ms=500)).values():
                for record in records:
                    found += await _letters(record, claims)
            left = {tp for tp in left if await consumer.position(tp) < last[tp]}
    except (KafkaError, OSError) as error:
        raise kafka_topics.absent(config, error) from None
    finally:
        await consumer.stop()
    return sorted(found, key=lambda one: [int(part) for part in one.place.replace(":", ".").split(".")])


async def _letters(record: Any, claims: Claims | None) -> list[Found]:
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
                if claims is None:
                    raise PermanentError("it lies in the blob store, and none is set (kafka: blobs)")
                data = await asyncio.to_thread(claims.get, frame.claim)
            found.append(Found(name, at, message_of(DeadLetter, Frame(data, frame.encoding))))
        except (PermanentError, TemporaryError, TooNew) as error:
            found.append(Found(name, at, DeadLetter(), str(error)))
    return found


def chosen(found: Sequence[Found], places: Iterable[str], *, everything: bool) -> list[Found]:
    """Those that were named; with `everything` all. Raises `UserError` for a place where no letter is."""
    if everything:
        return list(found)
    by_place = {one.place: one for one in found}
    missing = [place for place in places if place not in by_place]
    if missing:
        raise UserError(f"no dead letter at {', '.join(missing)}; see nephila dead list")
    return [by_place[place] for place in places]


async def replay(config: KafkaConfig, letters: Iterable[Found]) -> None:
    """Publish the messages again, each as it was, on its topic and partition; returns when the broker has them all.
    Raises `UserError`."""
    wanted = [one.letter for one in letters if not one.refused]
    if not wanted:
        return
    topics = {_TOPICS[letter.topic] for letter in wanted}
    there = await kafka_topics.existing(config, tuple(topics))
    _check(config, wanted, there, topics)
    producer = AIOKafkaProducer(
        bootstrap_servers=config.bootstrap, acks="all", enable_idempotence=True, max_request_size=4 << 20
    )
    try:
        await producer.start()
        for letter in wanted:
            topic, place = config.prefix + letter.topic, letter.partition
            if letter.url_key:  # the system may have grown since
                place = partition_of(letter.url_key, there[letter.topic])
            await producer.send_and_wait(topic, letter.message, partition=place, headers=HEADERS)
    except (KafkaError, OSError) as error:
        raise kafka_topics.absent(config, error) from None
    finally:
        await producer.stop()


def _check(config: KafkaConfig, letters: Iterable[DeadLetter], there: dict[str, int], topics: set[Topic]) -> None:
    for letter in letters:
        if letter.url_key:
            continue
        count = there.get(letter.topic, 0)
        if letter.partition >= count:
            where = f"{config.prefix}{letter.topic}/{letter.partition}"
            raise UserError(f"a letter names {where}, and that topic has {count} partitions")
