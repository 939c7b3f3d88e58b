"""Compacted topics: every member reads all of them from the beginning before it works, and continues to read.

There is no consumer group and no committed offset. Each message is the whole desired state of one thing: a reader may
see it twice, and only the last one counts. One consumer reads all compacted topics of a program, because each consumer
costs a connection, and its timers cost as much CPU as a fetch. Invariants: `caught_up` is set when everything that
existed at the start has been delivered, one topic after the other in order of subscription; a message of a newer
release stops its topic only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.subscription import Subscription
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, UserError
from nephila.kernel.topics import Topic

from nephila_cluster.kafka.client.consumer import relax_polling
from nephila_cluster.kafka.client.contact import BrokerContact, watch_contact
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.wire import UnknownFormat, message_of, unseal

log = logging.getLogger(__name__)

BACKOFF_S = 0.5
WAIT_S = 5.0
"""How long the broker holds a fetch request without new records."""
CATCH_UP_MS = 20
"""The same while a topic is read to its end: a longer wait would delay the next topic."""
POLL_MS = 200
GAP_S = 1.4 * WAIT_S
"""Time without an answer after which the broker counts as away."""


class CompactedTopic:
    """One compacted topic and its readers in this program."""

    def __init__(self, topic: Topic, prefix: str) -> None:
        self.topic = topic
        self.tp = TopicPartition(f"{prefix}{topic.name}", 0)
        self.readers: list[Subscription] = []
        self.next = 0
        """Offset of the next record to read."""
        self.stopped = False
        """This program must not read the next record."""
        self.lost_at = -1
        """The log was found to end before this offset, which had been read; -1: nothing is missing."""

    @property
    def trouble(self) -> str:
        """What is missing and what to do, in one line."""
        return (
            f"topic {self.tp.topic} was read up to {self.lost_at} and ends before it: it was deleted, or its broker "
            "lost data; restart the schedulers, which publish their jobs again, and publish again what else it held"
        )

    def take(self, records: Sequence[ConsumerRecord]) -> None:
        """Deliver records. Raises `UnknownFormat`."""
        for record in records:
            try:
                frames = unseal(self.topic.message, record.value, record.headers)
                messages = [message_of(self.topic.message, frame) for frame in frames]
            except PermanentError as error:
                log.error("%s at %d is skipped: %s", self.tp.topic, record.offset, error)
                messages = []
            for message in messages:
                for reader in self.readers:
                    reader.bus.unacked += 1
                    reader.offer(0, message, Receipt())
            self.next = record.offset + 1
            self.lost_at = -1


class CompactedTopics:
    """All compacted topics of a program."""

    def __init__(self, config: KafkaConfig, clock: Clock, fatal: Callable[[UserError], None]) -> None:
        self.config = config
        self._clock = clock
        self._contact = BrokerContact(GAP_S)
        self.caught_up = asyncio.Event()
        self._topics: dict[TopicPartition, CompactedTopic] = {}
        self._fatal = fatal
        self._task: asyncio.Task[None] | None = None

    @property
    def troubles(self) -> list[str]:
        """Topics that lost what this program has read, one line each."""
        return [topic.trouble for topic in self._topics.values() if topic.lost_at >= 0]

    @property
    def answering_since(self) -> float:
        """Monotonic time since when the broker answers without a gap; the present time while it does not."""
        return self._contact.since(self._clock.monotonic())

    def add(self, topic: Topic, reader: Subscription) -> None:
        """Topics are added only before `start`. Raises ValueError for a group that reads the topic already."""
        new = CompactedTopic(topic, self.config.prefix)
        topic_state = self._topics.setdefault(new.tp, new)
        if any(other.group == reader.group for other in topic_state.readers):
            raise ValueError(f"group {reader.group!r} already reads topic {topic.name!r}")
        topic_state.readers.append(reader)

    async def start(self) -> None:
        """Return when everything that exists has been delivered. Raises `NotReadyError` for a message of a newer
        release: a member that has not read a whole topic must not work."""
        if not self._topics:
            return
        self._task = asyncio.get_running_loop().create_task(self._run())
        caught = asyncio.get_running_loop().create_task(self.caught_up.wait())
        await asyncio.wait([self._task, caught], return_when=asyncio.FIRST_COMPLETED)
        caught.cancel()
        if self._task.done():
            self._task.result()
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # Otherwise the service would continue with stale data and look healthy.
            log.error("compacted topics: %r", error, exc_info=error)
            self._fatal(UserError(f"reading the compacted topics ended: {error!r}"))

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while topics := [topic_state for topic_state in self._topics.values() if not topic_state.stopped]:
            try:
                await self._read(topics)
            except KafkaError as error:
                log.warning("compacted topics: %s: %s; retrying", type(error).__name__, error)
                await asyncio.sleep(BACKOFF_S)

    async def _read(self, topics: list[CompactedTopic]) -> None:
        consumer = AIOKafkaConsumer(
            **connection_options(self.config),
            client_id=f"nephila-{self.config.name}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=CATCH_UP_MS,
            request_timeout_ms=int(self.config.request_timeout_s * 1000),
        )
        consumer.assign([topic_state.tp for topic_state in topics])
        watch_contact(consumer, self._clock, self._contact)
        try:
            await consumer.start()
            ends = await consumer.end_offsets([topic_state.tp for topic_state in topics])
            for topic_state in topics:
                self._check_log_end(topic_state, ends[topic_state.tp])
                consumer.seek(topic_state.tp, topic_state.next)
            consumer.pause(*(topic_state.tp for topic_state in topics[1:]))
            for topic_state in topics:
                await self._catch_up(consumer, topic_state, ends[topic_state.tp])
            self.caught_up.set()
            wait_ms = int(min(WAIT_S, self.config.request_timeout_s / 4) * 1000)
            relax_polling(consumer, wait_ms)
            while True:
                await self._poll(consumer, wait_ms)
                await self._check_log_ends(consumer, topics)
        finally:
            with contextlib.suppress(KafkaError):
                await consumer.stop()

    async def _catch_up(self, consumer: AIOKafkaConsumer, topic_state: CompactedTopic, end: int) -> None:
        """Read one topic to the end that it had at the start; the later topics wait."""
        if topic_state.next < end:
            consumer.resume(topic_state.tp)
        while not topic_state.stopped and (position := await consumer.position(topic_state.tp)) < end:
            await self._poll(consumer, POLL_MS)
            if await consumer.position(topic_state.tp) == position:
                # A topic that was made again meanwhile may never have this end.
                end = min(end, (await consumer.end_offsets([topic_state.tp]))[topic_state.tp])
        if not topic_state.stopped:
            consumer.resume(topic_state.tp)

    async def _check_log_ends(self, consumer: AIOKafkaConsumer, topics: list[CompactedTopic]) -> None:
        """Note logs that end before what was read of them. A fetch answer may have records beyond the high watermark
        that it names, because the broker reads the watermark first: the broker is asked for the end again."""
        doubtful = [
            topic_state.tp
            for topic_state in topics
            if (end := consumer.highwater(topic_state.tp)) is not None and end < topic_state.next
        ]
        if doubtful:
            ends = await consumer.end_offsets(doubtful)
            for tp in doubtful:
                self._check_log_end(self._topics[tp], ends[tp])

    def _check_log_end(self, topic_state: CompactedTopic, end: int) -> None:
        """Note a log that ends before what was read of it; its next records are read from its beginning."""
        if end >= topic_state.next:
            return
        topic_state.lost_at, topic_state.next = topic_state.next, 0
        log.error("%s", topic_state.trouble)

    async def _poll(self, consumer: AIOKafkaConsumer, wait_ms: int) -> None:
        for tp, records in (await consumer.getmany(timeout_ms=wait_ms)).items():
            topic_state = self._topics[tp]
            try:
                topic_state.take(records)
            except UnknownFormat as error:
                where = f"{tp.topic} at {topic_state.next}"
                other = (
                    f"{where} was written by another release ({error}): run one release in all services; "
                    "nothing is lost"
                )
                if not self.caught_up.is_set():
                    raise NotReadyError(other) from None
                topic_state.stopped = True
                consumer.pause(tp)
                self._fatal(NotReadyError(other))
