"""Compacted topics: every member reads all of them, from the beginning, before it works, and goes on reading.

A table has no group and no committed position; each message is the whole desired state of one thing, so a reader may
see it again and only the last counts. Invariant: `caught_up` is set once all that was there at the start was
delivered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from nephila.kernel.bus.base import Receipt
from nephila.kernel.bus.delivering import Subscription
from nephila.kernel.bus.kafka_config import KafkaConfig
from nephila.kernel.bus.wire import TooNew, message_of, unseal
from nephila.kernel.errors import PermanentError, Unready, UserError
from nephila.kernel.topics import Topic

log = logging.getLogger(__name__)

BACKOFF_S = 0.5


class Table:
    """One compacted topic and all that read it in this program."""

    def __init__(self, topic: Topic, config: KafkaConfig, fatal: Callable[[UserError], None]) -> None:
        self.topic = topic
        self.config = config
        self.readers: list[Subscription] = []
        self.caught_up = asyncio.Event()
        self.next = 0
        """Offset that is read next."""
        self._fatal = fatal
        self._tp = TopicPartition(f"{config.prefix}{topic.name}", 0)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once everything that is there has been delivered. Raises `Unready` for what a newer release wrote: who
        has not read all of a table does not begin to work."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        caught = asyncio.get_running_loop().create_task(self.caught_up.wait())
        await asyncio.wait([self._task, caught], return_when=asyncio.FIRST_COMPLETED)
        caught.cancel()
        if self._task.done():
            self._task.result()

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            try:
                await self._read()
            except KafkaError as error:
                log.warning("table %s: %s: %s; trying again", self.topic.name, type(error).__name__, error)
                await asyncio.sleep(BACKOFF_S)
            except TooNew as error:
                where = f"{self._tp.topic} at {self.next}"
                newer = f"{where} was written by a newer release ({error}): update this service; nothing is lost"
                if not self.caught_up.is_set():
                    raise Unready(newer) from None
                self._fatal(Unready(newer))
                return

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.config.bootstrap,
            client_id=f"nephila-{self.config.name}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=int(self.config.request_timeout_s * 1000),
        )
        consumer.assign([self._tp])
        try:
            await consumer.start()
            end = (await consumer.end_offsets([self._tp]))[self._tp]
            consumer.seek(self._tp, self.next)
            while True:
                if await consumer.position(self._tp) >= end:
                    self.caught_up.set()
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    self._take(records)
        finally:
            with contextlib.suppress(KafkaError):
                await consumer.stop()

    def _take(self, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            try:
                messages = [message_of(self.topic.message, frame) for frame in unseal(record.value, record.headers)]
            except PermanentError as error:
                log.error("%s at %d is skipped: %s", self._tp.topic, record.offset, error)
                messages = []
            for message in messages:
                for reader in self.readers:
                    reader.bus.unacked += 1
                    reader.offer(0, message, Receipt())
            self.next = record.offset + 1
