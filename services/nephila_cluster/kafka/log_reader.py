"""Reads ranges of a log again, for the owner of a partition that needs its history.

There is no group and no committed offset: the reader names the range of each partition. Every record must be readable:
invalid bytes and records of a newer release are refused in one line, never skipped. If the beginning of the log is
deleted while it is read, the caller must retry. Records are deleted by the caller, once a snapshot has their
content. A compacted topic has gaps anywhere: the broker removes each record that a later one of its key replaces.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import KafkaError
from nephila.kernel.bus.contract import LogRecords
from nephila.kernel.messages import Frame
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UserError
from nephila.kernel.topics import Topic

from nephila_cluster.kafka.claim_check import ClaimStore
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.wire import UnknownFormat, message_of, partition_of, unseal

READ_RECORDS = 500
LARGE_BYTES = 16 << 10


class KafkaLogReader:
    """A `LogReader` with one connection per call, as calls are rare."""

    def __init__(self, config: KafkaConfig, claim_store: ClaimStore | None) -> None:
        self._config = config
        self._claim_store = claim_store

    def _tp(self, topic: Topic, partition: int) -> TopicPartition:
        return TopicPartition(f"{self._config.prefix}{topic.name}", partition)

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            **connection_options(self._config),
            client_id=f"nephila-{self._config.name}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=int(self._config.request_timeout_s * 1000),
            max_partition_fetch_bytes=self._config.fetch_bytes,
        )

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = self._consumer()
        try:
            await consumer.start()
            yield consumer
        except KafkaError as error:
            raise TemporaryError(f"{type(error).__name__}: {error}") from None
        finally:
            with contextlib.suppress(KafkaError):
                await consumer.stop()

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        tps = [self._tp(topic, partition) for partition in partitions]
        async with self._connected() as consumer:
            first, last = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        return {tp.partition: (first[tp], last[tp]) for tp in tps}

    async def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]:
        ends = {self._tp(topic, p): end for p, (start, end) in ranges.items() if end > start}
        if not ends:
            return
        async with self._connected() as consumer:
            consumer.assign(list(ends))
            for tp in ends:
                consumer.seek(tp, ranges[tp.partition][0])
            begun: set[TopicPartition] = set()
            while ends:
                batches = await consumer.getmany(timeout_ms=100, max_records=READ_RECORDS)
                if not batches:
                    await self._check_ends(consumer, ends)
                for tp, records in batches.items():
                    if not topic.key and tp not in begun and records[0].offset > ranges[tp.partition][0]:
                        # The client jumps to the oldest record when the wanted one was deleted meanwhile.
                        raise TemporaryError(
                            f"{tp.topic}/{tp.partition}: the beginning of the log was deleted while it was read"
                        )
                    begun.add(tp)
                    for record in records:
                        is_removed = topic.key and record.value is None
                        if record.offset < ends.get(tp, 0) and not is_removed:
                            for part in await self._messages(topic, record):
                                yield part
                for tp in list(ends):
                    if await consumer.position(tp) >= ends[tp]:
                        del ends[tp]
                        consumer.pause(tp)

    @staticmethod
    async def _check_ends(consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> None:
        """Raise `TemporaryError` for a log that ends before the range: its topic was deleted and made again."""
        now = await consumer.end_offsets(list(ends))
        for tp, end in ends.items():
            if now[tp] < end:
                raise TemporaryError(f"{tp.topic}/{tp.partition} was deleted while it was read: it ends at {now[tp]}")

    async def _messages(self, topic: Topic, record: ConsumerRecord) -> list[LogRecords]:
        """The messages of a record by partition."""
        if len(record.value or b"") > LARGE_BYTES:
            await asyncio.sleep(0)  # let heartbeats and timers run
        where = f"{record.topic}/{record.partition} at {record.offset}"
        try:
            parts: dict[int, list[tuple[int, Any]]] = {}
            for frame in unseal(topic.message, record.value, record.headers):
                messages = parts.setdefault(partition_of(frame, record.partition), [])
                messages.append((record.offset, message_of(topic.message, await self._whole(frame))))
            return list(parts.items())
        except PermanentError as error:
            raise UserError(f"{where} cannot be read: {error}") from None
        except UnknownFormat as error:
            raise UserError(
                f"{where} was written by another release ({error}): run one release in all services"
            ) from None

    async def _whole(self, frame: Frame) -> Frame:
        if not frame.claim:
            return frame
        if self._claim_store is None:
            raise PermanentError(f"object {frame.claim} is in a blob store, and none is configured")
        return Frame(await asyncio.to_thread(self._claim_store.get, frame.claim), frame.encoding)

    async def read_up_to(self, group: str, topic: Topic, ends: Mapping[int, int]) -> frozenset[int]:
        offsets = await self.committed(group, topic, ends)
        return frozenset(partition for partition, end in ends.items() if offsets.get(partition, -1) >= end)

    async def committed(self, group: str, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        tps = [self._tp(topic, partition) for partition in partitions]
        async with self._admin() as admin:
            offsets = await admin.list_consumer_group_offsets(f"{self._config.prefix}{group}", partitions=tps)
        return {tp.partition: offsets[tp].offset for tp in tps if tp in offsets and offsets[tp].offset >= 0}

    async def delete_before(self, topic: Topic, offsets: Mapping[int, int]) -> None:
        async with self._admin() as admin:
            await admin.delete_records({self._tp(topic, p): RecordsToDelete(offset) for p, offset in offsets.items()})

    @contextlib.asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(**connection_options(self._config), request_timeout_ms=30_000)
        try:
            await admin.start()
            yield admin
        except (KafkaError, OSError, ValueError) as error:
            raise TemporaryError(f"{type(error).__name__}: {error}") from None
        finally:
            await admin.close()
