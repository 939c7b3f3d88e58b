"""Sends messages to the broker: batched by partition, one record at a time per partition, retried until the broker has
it.

Invariant: a receipt resolves only when all in-sync replicas have the record (acks=all), and the records of a partition
are written in the order of their messages, also after errors. A record may be written twice after a lost
answer, never zero times. Memory is bounded by the credits of the publishers: they ack after receipts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed
from nephila.kernel.bus.contract import Receipt, all_of
from nephila.kernel.messages import Frame
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UserError
from nephila.kernel.runtime.waits import Backoff, OneTimer
from nephila.kernel.topics import MEMBERS, Topic

from nephila_cluster.kafka.beat import HELD, LINGER, Beat
from nephila_cluster.kafka.claim_check import ClaimStore
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.clock_skew import ClockSkew
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.lanes import Lanes
from nephila_cluster.kafka.wire import frame_of, headers_of, seal

log = logging.getLogger(__name__)

RETRY = Backoff(0.1, 5.0)
LOG_APPEND_TIME = 1
"""The broker's own timestamp, as the topics are configured (admin/topics.py)."""
SLOW_S = 3.0
"""An answer that takes longer is reported."""


class _PartitionQueue:
    """One partition of one topic."""

    __slots__ = ("busy", "offset", "partition", "topic", "waiting")

    def __init__(self, topic: Topic, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.busy = False
        self.offset = -1
        self.waiting: deque[tuple[Frame, bytes | None, Receipt]] = deque()


class _Flush:
    """Queues that are sent together at one instant."""

    __slots__ = ("_linger", "_linger_s", "_queues", "_send", "_timer")

    def __init__(self, clock: Clock, linger_s: float, send: Callable[[list[_PartitionQueue]], None]) -> None:
        self._queues: list[_PartitionQueue] = []
        self._send = send
        self._timer = OneTimer(clock, self.now)
        self._linger_s = linger_s
        self._linger: asyncio.TimerHandle | None = None

    def add(self, queue: _PartitionQueue, wait_s: float | None) -> None:
        """Send the queue with the others that wait; the first sets the instant. 0: after the linger, as there is no
        beat; None: `now` is called later."""
        self._queues.append(queue)
        if wait_s:
            self._timer.start(wait_s)
        elif wait_s is not None and self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(self._linger_s, self.now)

    def now(self) -> None:
        self.cancel()
        queues, self._queues = self._queues, []
        self._send(queues)

    def cancel(self) -> None:
        self._timer.cancel()
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None


class BatchingProducer:
    """The producer of a program."""

    def __init__(
        self,
        config: KafkaConfig,
        clock: Clock,
        claim_store: ClaimStore | None,
        beat: Beat | None = None,
        on_lost: Callable[[UserError], None] = lambda error: None,
    ) -> None:
        """`beat`: of this member; None: there is never one. `on_lost`: called when the broker has other topics than
        before."""
        self._on_lost = on_lost
        self.config = config
        self._clock = clock
        self.claim_store = claim_store
        self.unsent = 0
        """Messages without receipt."""
        self.trouble = ""
        """Why nothing can be sent at present; empty when it can."""
        self.skew = ClockSkew()
        self.lanes = Lanes()
        self._queues: dict[tuple[str, int], _PartitionQueue] = {}
        self._beat = beat or Beat(clock, 0.0)
        self._flushes = _Flush(clock, config.linger_s, self._send_all), _Flush(clock, config.linger_s, self._send_all)
        """Of the messages that wait for the beat, and of the others."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._producer: AIOKafkaProducer | None = None
        self._renewing = asyncio.Lock()

    async def start(self) -> None:
        """Connect. Raises `KafkaError`."""
        self._producer = await self._connect()
        self._flush()

    async def _connect(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **connection_options(self.config),
            client_id=f"nephila-{self.config.name}",
            enable_idempotence=True,
            acks="all",
            compression_type=None,
            linger_ms=0,
            max_batch_size=64 << 10,
            max_request_size=4 << 20,
            request_timeout_ms=int(self.config.request_timeout_s * 1000),
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer

    def put(self, topic: Topic, partition: int, message: Any, after: Iterable[Receipt] = ()) -> Receipt:
        """Queue a message; it is sent when the receipts in `after` have resolved. Raises `PermanentError` for a
        message that cannot be sent."""
        frame = frame_of(topic.message, message)
        if len(frame.message) > self.config.inline_bytes and self.claim_store is None:
            raise PermanentError(
                f"a message of {len(frame.message)} bytes for topic {topic.name} needs a blob store, and none is set"
            )
        if len(frame.message) > self.config.inline_bytes and topic.key:
            raise PermanentError(f"a message of {len(frame.message)} bytes is too large for the table {topic.name}")
        key = getattr(message, topic.key).encode() if topic.key else None
        lane = self.lanes.lane(topic, partition)
        frame.partition = partition + 1 if lane != partition else 0
        queue = self._queues.get((topic.name, lane))
        if queue is None:
            queue = self._queues[(topic.name, lane)] = _PartitionQueue(topic, lane)
        receipt = Receipt()
        self.unsent += 1
        if after:
            all_of(after).add_done_callback(lambda: self._enqueue(queue, (frame, key, receipt)))
        else:
            self._enqueue(queue, (frame, key, receipt))
        return receipt

    def _enqueue(self, queue: _PartitionQueue, item: tuple[Frame, bytes | None, Receipt]) -> None:
        queue.waiting.append(item)
        if not queue.busy:
            queue.busy = True
            held = queue.topic in HELD
            beat = self._beat
            wait_s = beat.wait_s(0.0) if held else beat.period_s * LINGER
            self._flushes[not held].add(queue, wait_s if self._producer is not None else None)

    async def refresh(self) -> None:
        """Ask for the topics again: they may have more partitions."""
        if self._producer is not None:
            with contextlib.suppress(KafkaError):
                await self._producer.client.force_metadata_update()

    def last_offset(self, topic: Topic, partition: int) -> int:
        """Offset of the last record of this partition that the broker took from this program; -1: none."""
        queue = self._queues.get((topic.name, self.lanes.lane(topic, partition)))
        return queue.offset if queue is not None else -1

    def _flush(self) -> None:
        for flush in self._flushes:
            flush.now()

    def _send_all(self, queues: list[_PartitionQueue]) -> None:
        for queue in queues:
            task = asyncio.get_running_loop().create_task(self._send(queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, queue: _PartitionQueue) -> None:
        left = len(queue.waiting)
        while queue.waiting:
            if left <= 0 and self._beat.period_s and queue.topic in HELD:
                self._flushes[0].add(queue, self._beat.wait_s(0.0))
                return
            key, taken = queue.waiting[0][1], self._gather(queue)
            frames = [await self._claimed(frame, queue.topic.retention_s) for frame, _ in taken]
            offset = await self._deliver(queue.topic, queue.partition, key, seal(frames))
            self._compare(queue, offset)
            queue.offset = max(queue.offset, offset)
            self.unsent -= len(taken)
            left -= len(taken)
            for _, receipt in taken:
                receipt.resolve_one()
        queue.busy = False

    def _compare(self, queue: _PartitionQueue, offset: int) -> None:
        """Notice a broker that has lost everything, by the topic that each member writes to all the time: its offsets
        begin again. Under new topics an old producer id may be that of another member, whose records the broker would
        take for repetitions."""
        if queue.topic is MEMBERS and 0 <= offset < queue.offset:
            queue.offset = offset
            self._on_lost(
                UserError(
                    f"the broker at {self.config.bootstrap} has lost its topics and has new ones: this member ends and "
                    "has to start again; jobs that no CrawlJob declares have to be applied again"
                )
            )

    def _gather(self, queue: _PartitionQueue) -> list[tuple[Frame, Receipt]]:
        """Messages that fit into one record; of a compacted topic one message."""
        taken: list[tuple[Frame, Receipt]] = []
        size = 0
        while queue.waiting and (not taken or (size < self.config.batch_bytes and not queue.topic.key)):
            frame, _, receipt = queue.waiting[0]
            if taken and size + len(frame.message) > self.config.batch_bytes:
                break
            queue.waiting.popleft()
            taken.append((frame, receipt))
            size += len(frame.message)
        return taken

    async def _claimed(self, frame: Frame, keep_s: float) -> Frame:
        """Store a large message; the object is durable before the record that names it is sent."""
        if len(frame.message) <= self.config.inline_bytes or self.claim_store is None:
            return frame
        failures = 0
        while True:
            try:
                name = await asyncio.to_thread(self.claim_store.put, frame.message, self._clock.now() + keep_s)
                return Frame(b"", frame.encoding, name, frame.partition)
            except TemporaryError as error:
                self._say(f"the blob store refuses messages: {error}")
                failures += 1
                await asyncio.sleep(RETRY.after(failures))

    async def _deliver(self, route: Topic, partition: int, key: bytes | None, value: bytes) -> int:
        topic, headers = f"{self.config.prefix}{route.name}", headers_of(route.message)
        failures = 0
        while True:
            producer = self._producer
            # The client retries by itself for the time-out of a request, without any log line.
            late = asyncio.get_running_loop().call_later(
                SLOW_S, self._say, f"{topic}/{partition}: the broker has not answered for {SLOW_S:g} s"
            )
            try:
                if producer is None:
                    raise ProducerClosed
                sent = self._clock.now()
                taken = await producer.send_and_wait(topic, value, key=key, partition=partition, headers=headers)
                self._stamped(sent, taken)
                if self.trouble:
                    log.warning("the broker accepts messages again")
                    self.trouble = ""
                return int(taken.offset)
            except (KafkaError, AssertionError) as error:  # aiokafka asserts that the partition exists
                self._say(f"{topic}/{partition}: the broker refuses messages: {type(error).__name__}: {error}")
                failures += 1
                await asyncio.sleep(RETRY.after(failures))
                await self._renew(producer)
            finally:
                late.cancel()

    def _stamped(self, sent: float, taken: Any) -> None:
        before = self.skew.trouble
        if taken.timestamp_type == LOG_APPEND_TIME:
            self.skew.observe(sent, taken.timestamp / 1000, self._clock.now())
        if self.skew.trouble and not before:
            log.warning("%s", self.skew.trouble)

    async def _renew(self, broken: AIOKafkaProducer | None) -> None:
        """Replace a producer that stopped after a gap in its sequence numbers, or that was fenced."""
        async with self._renewing:
            if self._producer is not broken:
                return
            task = broken._sender.sender_task if broken is not None else None
            if task is not None and not task.done():
                return
            self._producer = None
            if broken is not None:
                with contextlib.suppress(Exception):
                    await broken.stop()
            with contextlib.suppress(KafkaError):
                self._producer = await self._connect()

    def _say(self, trouble: str) -> None:
        """Log once per kind of trouble, not once per attempt."""
        if not self.trouble:
            log.warning("%s; retrying", trouble)
        self.trouble = trouble

    async def close(self, wait_s: float) -> None:
        """Send what waits, for this long at most, and disconnect."""
        if self._producer is not None:
            self._flush()
        for flush in self._flushes:
            flush.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=wait_s)
        for task in set(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        if self.unsent:
            log.warning("%d messages were not taken by the broker in time", self.unsent)
        producer, self._producer = self._producer, None
        if producer is not None:
            # A broker that is away takes nothing more: the program ends all the same.
            with contextlib.suppress(asyncio.CancelledError, KafkaError, TimeoutError):
                await asyncio.wait_for(producer.stop(), max(wait_s, 1.0))
