"""Dead letters of a system over Kafka: what they are, and how their messages are published again.

A letter is named by its position in the topic `dead`, PARTITION:OFFSET, with .N behind it where a record holds several.
Letters stay until retention removes them; to replay one twice is harmless, since the effects of a message are
idempotent: a page that can be parsed by now takes over the row that said failed(dead_letter), its links go to the
scheduler. What cannot be replayed is said, and why. The scheduler's counts of ended URLs do not change by a replay.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from nephila.kernel.layout import Layout, layout_of
from nephila.kernel.messages import DeadLetter, Frame
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UsageError, UserError
from nephila.kernel.topics import DEAD, TOPICS, Topic
from nephila_cluster.kafka import grow
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.claim_check import ClaimStore
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.lanes import Lanes
from nephila_cluster.kafka.wire import FORMATS, UnknownFormat, headers_of, message_of, seal, unseal

from nephila_control import system_types
from nephila_control.api import NotFound

MAX_BYTES = 64 << 20
"""Messages of one answer at most; a replay holds them in memory."""
_TOPICS = {topic.name: topic for topic in TOPICS}


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """A letter with its position in the topic."""

    position: str
    at: float
    """Timestamp of the record, in seconds since 1970 UTC."""
    letter: DeadLetter
    problem: str = ""
    """Reason why the letter cannot be read; `letter` is empty then."""

    @property
    def kind(self) -> str:
        """Type of the message, as `Page`."""
        topic = _TOPICS.get(self.letter.topic)
        return topic.message.__name__ if topic is not None else ""

    @property
    def refused(self) -> str:
        """Reason why the message is not published again; empty if it is."""
        topic = _TOPICS.get(self.letter.topic)
        if self.problem:
            return self.problem
        if topic is None:
            return f"topic {self.letter.topic!r} is none of the route"
        if topic.leased:
            return "a request is not replayed: its lease has brought its URL back"
        if not self.letter.message:
            return "the message was not kept"
        if self.letter.format != (number := FORMATS[topic.message]):
            return (
                f"its {self.kind} has format {self.letter.format}, and this program writes {number}: replay it with "
                "the release that wrote it"
            )
        return ""


async def scan(
    config: KafkaConfig, claim_store: ClaimStore | None = None, positions: Sequence[str] = (), after: str = ""
) -> AsyncGenerator[StoredLetter]:
    """Yields letters in the order of partitions and offsets, one record in memory at a time: those at `positions`, else
    those behind `after` that are stored when the scan begins. Raises `UserError` before the first letter if a position
    holds none."""
    there = await admin.existing(config, (DEAD,))
    if DEAD.name not in there:
        raise UserError(f"the broker at {config.bootstrap} has no topic {config.prefix}{DEAD.name}: is --prefix right?")
    consumer = AIOKafkaConsumer(**connection_options(config), enable_auto_commit=False, auto_offset_reset="earliest")
    tps = [TopicPartition(config.prefix + DEAD.name, number) for number in range(there[DEAD.name])]
    try:
        await consumer.start()
        first, last = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        ranges = _ranges(positions, {tp.partition: (first[tp], last[tp]) for tp in tps}, after)
        for partition, start, end in ranges:
            async for record in _records(consumer, tps[partition], start, end):
                for entry in await _letters(record, claim_store):
                    if _wanted(entry.position, positions, after):
                        yield entry
    except (KafkaError, OSError) as error:
        raise await admin.trouble_with(config, error) from None
    finally:
        await consumer.stop()


def _wanted(position: str, positions: Sequence[str], after: str) -> bool:
    if positions:
        return position in positions or position.partition(".")[0] in positions
    return not after or _position(position) > _position(after)


def _position(text: str) -> tuple[int, int, int]:
    """(partition, offset, number in the record). Raises `UsageError`."""
    record, _, number = text.partition(".")
    partition, colon, offset = record.partition(":")
    if not (colon and _number(partition) and _number(offset) and (not number or _number(number))):
        raise UsageError(f"{text[:100]!r} is no PARTITION:OFFSET; see nephila service dead list")
    return int(partition), int(offset), int(number or 0)


def _number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def _ranges(positions: Sequence[str], bounds: dict[int, tuple[int, int]], after: str) -> list[tuple[int, int, int]]:
    """(partition, first offset, end) of what is to be read."""
    if not positions:
        start = _position(after) if after else (-1, 0, 0)
        return [
            (partition, max(first, start[1]) if partition == start[0] else first, end)
            for partition, (first, end) in sorted(bounds.items())
            if partition >= start[0]
        ]
    ranges = set()
    for position in positions:
        partition, offset, _ = _position(position)
        first, last = bounds.get(partition, (0, 0))
        if not first <= offset < last:
            raise NotFound(f"no dead letter at {position}; see nephila service dead list")
        ranges.add((partition, offset, offset + 1))
    return sorted(ranges)


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


async def _letters(record: Any, claim_store: ClaimStore | None) -> list[StoredLetter]:
    position, at = f"{record.partition}:{record.offset}", record.timestamp / 1000
    try:
        frames = unseal(DeadLetter, record.value, record.headers)
    except (PermanentError, UnknownFormat) as error:
        return [StoredLetter(position, at, DeadLetter(), f"no letter: {error}")]
    entries = []
    for number, frame in enumerate(frames):
        name = position if len(frames) == 1 else f"{position}.{number}"
        try:
            data = frame.message
            if frame.claim:
                if claim_store is None:
                    raise PermanentError("it lies in the blob store, and none is set (kafka: blobs)")
                data = await asyncio.to_thread(claim_store.get, frame.claim)
            entries.append(StoredLetter(name, at, message_of(DeadLetter, Frame(data, frame.encoding))))
        except (PermanentError, TemporaryError, UnknownFormat) as error:
            entries.append(StoredLetter(name, at, DeadLetter(), str(error)))
    return entries


class KafkaDeadLetters:
    """The topic `dead` of a system, for `ClusterBackend`."""

    def __init__(self, config: KafkaConfig, claim_store: ClaimStore | None) -> None:
        self._config = config
        self._claim_store = claim_store

    async def page(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        """Raises `UserError`."""
        entries, next_position = await self._some((), request.job, request.after, request.limit)
        return system_types.DeadLetterList(dead_letters=[_row(entry) for entry in entries], next=next_position)

    async def replay(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        """Publish messages again, each as it was, and return when the broker has them. Raises `UserError`."""
        if bool(request.ids) == request.all:
            raise UsageError("name the dead letters as PARTITION:OFFSET, or ask for all of them")
        config = self._config
        system = await grow.present(config)
        layout, lanes = layout_of(system.base, system.count), Lanes()
        lanes.set(await admin.existing(config), system.count)
        entries, next_position = await self._some(request.ids, request.job, request.after, request.limit)
        producer = AIOKafkaProducer(
            **connection_options(config), acks="all", enable_idempotence=True, max_request_size=4 << 20
        )
        try:
            await producer.start()
            for entry in entries:
                if not entry.refused:
                    topic, partition = _TOPICS[entry.letter.topic], _partition(config, entry.letter, layout)
                    lane, headers = lanes.lane(topic, partition), headers_of(topic.message)
                    value = _addressed(topic, entry.letter.message, partition + 1 if lane != partition else 0)
                    await producer.send_and_wait(config.prefix + topic.name, value, partition=lane, headers=headers)
        except (KafkaError, OSError) as error:
            raise await admin.trouble_with(config, error) from None
        finally:
            await producer.stop()
        rows = ((entry.position, entry.refused) for entry in entries)
        done = [system_types.Replayed(id=id, replayed=not refused, refused=refused) for id, refused in rows]
        return system_types.ReplayedList(dead_letters=done, next=next_position)

    async def _some(self, positions: Sequence[str], job: str, after: str, limit: int) -> tuple[list[StoredLetter], str]:
        """Returns letters, and the position of the last one if more follow (else an empty string)."""
        entries: list[StoredLetter] = []
        size = 0
        letters = scan(self._config, self._claim_store, positions, after)
        async with contextlib.aclosing(letters):
            async for entry in letters:
                if job and entry.letter.job != job:
                    continue
                if not positions and entries and (len(entries) == limit or size > MAX_BYTES):
                    return entries, entries[-1].position
                entries.append(entry)
                size += len(entry.letter.message)
        return entries, ""


def _row(entry: StoredLetter) -> system_types.DeadLetter:
    letter = entry.letter
    return system_types.DeadLetter(
        id=entry.position,
        at=round(entry.at, 3),
        service=letter.service,
        topic=letter.topic,
        message=entry.kind,
        job=letter.job,
        url=letter.url,
        url_key=letter.url_key.hex(),
        partition=letter.partition,
        attempts=letter.attempts,
        error=entry.problem or letter.error,
        bytes=len(letter.message),
        refused=entry.refused,
    )


def _partition(config: KafkaConfig, letter: DeadLetter, layout: Layout) -> int:
    """The system may have grown since, so the partition follows from the URL; a message without a URL keeps its own."""
    if _TOPICS[letter.topic].key:
        return 0
    partition = layout.of(letter.url_key) if letter.url_key else letter.partition
    if partition >= layout.count:
        where = f"{config.prefix}{letter.topic}/{letter.partition}"
        raise UserError(f"a letter names {where}, and the system has {layout.count} partitions")
    return partition


def _addressed(topic: Topic, record: bytes, partition: int) -> bytes:
    """The record with this partition in its messages; bytes that are no record stay as they are."""
    try:
        frames = unseal(topic.message, record, headers_of(topic.message))
    except (PermanentError, UnknownFormat):
        return record
    for frame in frames:
        frame.partition = partition
    return seal(frames)
