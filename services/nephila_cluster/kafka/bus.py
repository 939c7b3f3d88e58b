"""The bus over Kafka: the bus contract between programs on many machines.

`publish` batches by partition, and its receipt resolves when the broker has the record (producer.py). Each group of
this program is one consumer whose assignor is the ring (consumer/). Compacted topics are read completely before work
begins (compacted.py). Delivery is at-least-once: after a crash a message may come again, and none is lost. Services
subscribe first, then `start` is called; messages published before are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from typing import Any

import msgspec
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from nephila.kernel.bus.contract import DeadHandler, Handler, LogRecords, Receipt
from nephila.kernel.bus.dead_letters import dead_letter_for, no_letters, reason_of
from nephila.kernel.bus.subscription import Subscription
from nephila.kernel.layout import LayoutSetting, layout_of
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError, UsageError, UserError
from nephila.kernel.topics import DEAD, TOPICS, Topic

from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.admin.stored_layout import other_number
from nephila_cluster.kafka.beat import Beat
from nephila_cluster.kafka.claim_check import ClaimStore, sweep
from nephila_cluster.kafka.client import consumer as client
from nephila_cluster.kafka.client.connections import mend
from nephila_cluster.kafka.compacted import CompactedTopics
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer.consumer_group import ConsumerGroup
from nephila_cluster.kafka.consumer.kafka_subscription import KafkaSubscription
from nephila_cluster.kafka.consumer.start_position import has_committed_to
from nephila_cluster.kafka.group import agreement
from nephila_cluster.kafka.group.agreement import BEAT
from nephila_cluster.kafka.group.rebalance import OnMemberCrash, RebalanceListener
from nephila_cluster.kafka.log_reader import KafkaLogReader
from nephila_cluster.kafka.producer import BatchingProducer
from nephila_cluster.kafka.wire import FORMATS, frame_of, seal

log = logging.getLogger(__name__)

LOOK_S = 1.0
REFRESH_S = 10.0
"""Longest time for the clients to ask for the topics after a growth."""
CLOSE_S = 5.0
"""Longest time to send the remaining messages at the end."""


class KafkaBus:
    """A `Bus` and `LogReader` over Kafka. `agreed`: settings that all members of the system must share."""

    def __init__(
        self,
        config: KafkaConfig,
        clock: Clock,
        claim_store: ClaimStore | None = None,
        agreed: Mapping[str, str] | None = None,
        on_fatal: Callable[[UserError], None] | None = None,
    ) -> None:
        """`agreed`: settings that have to be the same in all members of the system, compared at the start. `on_fatal`
        is called when a person has to look: a loss, a message of a newer release, a duplicate member."""
        name = config.name or f"member-{uuid.uuid4().hex[:12]}"
        self.config = msgspec.structs.replace(config, name=name)
        self.clock = clock
        self.claim_store = claim_store
        self.max_attempts = config.max_attempts
        self.unacked = 0
        self.dead_letters: Counter[tuple[str, str]] = Counter()
        """(topic, reason) → dead letters published by this program."""
        self.on_quiet: Callable[[], None] | None = None
        self.on_fatal = on_fatal
        self.fatal: UserError | None = None
        self.beat = Beat(clock, config.beat_s)
        self.producer = BatchingProducer(self.config, clock, claim_store, self.beat, self._on_lost)
        self.groups: dict[str, ConsumerGroup] = {}
        self.compacted = CompactedTopics(self.config, clock, self._on_fatal)
        self._started = self._is_connected = False
        self._log_reader = KafkaLogReader(self.config, claim_store)
        self._tasks: list[asyncio.Task[None]] = []
        self.agreed = {BEAT: f"{config.beat_s:g}", **agreed} if agreed else {}
        self.layout = layout_of(self.config.partitions)
        self.topic_partitions = self.config.partitions
        """Partitions of keyed topics; more than `layout` has, while a growth is prepared."""
        self._on_layout: list[Callable[[], None]] = []

    # ---- the contract

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Raises `PermanentError` for a message that cannot be sent."""
        return self.producer.put(topic, 0 if topic.key else partition, message)

    def publish_after(self, receipts: Iterable[Receipt], topic: Topic, partition: int, message: Any) -> Receipt:
        """Publish when these receipts have resolved; an invalid message is refused at once."""
        return self.producer.put(topic, 0 if topic.key else partition, message, receipts)

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        """Topics are subscribed only before `start`."""
        if credits < 1:
            raise ValueError(f"credits must be at least 1, got {credits}")
        if self._started:
            raise RuntimeError(f"group {group!r} subscribes to {topic.name!r} after the bus was started")
        if topic.key:
            self.compacted.add(topic, Subscription(self, topic, group, handler, credits, on_dead))
            return
        self.dead_letters.update(no_letters(topic))
        inbox = self._group(group).inbox
        name = f"{self.config.prefix}{topic.name}"
        if name in inbox.topics:
            raise ValueError(f"group {group!r} already reads topic {topic.name!r}")
        inbox.topics[name] = KafkaSubscription(self, topic, group, handler, credits, on_dead, inbox.ended)

    def set_credits(self, topic: Topic, group: str, credits: int) -> None:
        """Compacted topics take no credits."""
        self.groups[group].inbox.topics[f"{self.config.prefix}{topic.name}"].set_credits(credits)

    def _group(self, name: str) -> ConsumerGroup:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = ConsumerGroup(
                *(name, self.config, self.clock, self.claim_store, self._on_fatal, self.agreed, self.beat),
                lanes=self.producer.lanes,
            )
        return group

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        """The letter holds the message as a record of its topic."""
        self.dead_letters[topic.name, reason_of(error)] += 1
        letter = dead_letter_for(topic, service, partition, message, error, attempts)
        letter.format = FORMATS[topic.message]
        try:
            letter.message = seal([frame_of(topic.message, message)])
            return self.publish(DEAD, partition, letter)
        except PermanentError as second:  # too large without a blob store, or no message
            letter.message, letter.error = b"", f"{letter.error} (the message was not kept: {second})"
            return self.publish(DEAD, partition, letter)

    # ---- beyond the contract

    def watch_partitions(self, group: str, listener: RebalanceListener) -> None:
        """Notify a service of its partitions; only before `start`."""
        self._group(group).owned.listener = listener

    def watch_crashes(self, group: str, on_member_crash: OnMemberCrash) -> None:
        """Notify a service of requests that crashed members may have had in flight; only before `start`."""
        self._group(group).on_member_crash = on_member_crash

    def watch_layout(self, on_change: Callable[[], None]) -> None:
        self._on_layout.append(on_change)

    def set_layout(self, setting: LayoutSetting) -> None:
        """The number of partitions, from the topic `settings`. It only grows."""
        if setting.base != self.config.partitions:
            self._on_fatal(UsageError(other_number(self.config, setting)))
            return
        self.topic_partitions = max(setting.topics, self.topic_partitions)
        if setting.count <= self.layout.count:
            return
        self.layout = layout_of(setting.base, setting.count)
        log.info("the system has %d partitions now", setting.count)
        if self._is_connected:
            self._spawn(self._grow())
        else:
            self._report_layout()

    async def _grow(self) -> None:
        """Let the clients see the new partitions before anything is published on them."""
        consumers = [group.consumer for group in self.groups.values() if group.consumer is not None]
        # A client that is replaced meanwhile never ends this question; the one after it asks at its start.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_S):
                await asyncio.gather(self.producer.refresh(), *map(client.refresh, consumers))
        await self._count_lanes()
        self._report_layout()
        await asyncio.gather(*(group.grow() for group in self.groups.values()))

    async def _count_lanes(self) -> None:
        """Look at the topics until their lanes are those of the layout: they were there before it was published."""
        while self.producer.lanes.partitions < (partitions := self.layout.count):
            try:
                self.producer.lanes.set(await admin.existing(self.config), partitions)
            except UserError as error:
                log.info("the lanes cannot be counted: %s", error)
                await asyncio.sleep(LOOK_S)

    def _report_layout(self) -> None:
        for on_change in self._on_layout:
            on_change()

    def held(self, group: str) -> frozenset[int]:
        """Partitions that this member owns in a group."""
        return self.groups[group].held if group in self.groups else frozenset()

    def has_all(self, group: str) -> bool:
        """Whether this member owns all partitions of a group, or all lanes."""
        inbox = self.groups[group].inbox
        return len(inbox.held) >= max(map(self._partitions, inbox.route))

    def _partitions(self, topic: Topic) -> int:
        return self.producer.lanes.count(topic) or self.topic_partitions

    def may_emit(self, group: str) -> bool:
        """False when the broker may have assigned this member's partitions to others."""
        return self.groups[group].may_emit

    def set_patient(self, group: str, patient: bool) -> None:
        self.groups[group].inbox.patient = patient

    @property
    def unsettled(self) -> str:
        """What this member still takes over, in one line; empty when everything assigned to it is open."""
        groups = sorted(name for name, group in self.groups.items() if not group.settled)
        return f"takes partitions over: group {', '.join(groups)}" if groups else ""

    def set_able(self, able: bool) -> None:
        """State whether this member can work; one that cannot gives its partitions to others."""
        for group in self.groups.values():
            group.set_able(able)

    @property
    def member(self) -> str:
        return self.config.name

    @property
    def answering_since(self) -> float:
        return self.compacted.answering_since

    def last_offset(self, topic: Topic, partition: int) -> int:
        return self.producer.last_offset(topic, partition)

    def lanes(self, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        return self.producer.lanes.of(topic, partitions)

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        lanes = self.producer.lanes.of(topic, partitions)
        bounds = await self._log_reader.bounds(topic, set(lanes.values()))
        return {partition: bounds[lane] for partition, lane in lanes.items()}

    async def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]:
        parts: dict[int, tuple[int, int]] = {}
        for partition, lane in self.producer.lanes.of(topic, ranges).items():
            start, end = parts.get(lane, ranges[partition])
            parts[lane] = min(start, ranges[partition][0]), max(end, ranges[partition][1])
        async for partition, records in self._log_reader.read(topic, parts):
            start, end = ranges.get(partition, (0, 0))
            if within := [record for record in records if start <= record[0] < end]:
                yield partition, within

    async def end_offsets(self, topics: Iterable[Topic]) -> dict[TopicPartition, int]:
        """Partitions without records are left out."""
        ends = {}
        # While a growth is prepared, some topics may not have their new partitions yet.
        there = await admin.existing(self.config) if self.topic_partitions > self.layout.count else {}
        for topic in topics:
            bounds = await self._log_reader.bounds(topic, range(there.get(topic.name, self._partitions(topic))))
            name = f"{self.config.prefix}{topic.name}"
            ends.update({TopicPartition(name, p): last for p, (first, last) in bounds.items() if last > first})
        return ends

    async def has_read_to(self, group: str, ends: Mapping[TopicPartition, int]) -> bool:
        return await has_committed_to(self.groups[group].consumer, ends)

    async def read_up_to(self, group: str, topic: Topic, ends: Mapping[int, int]) -> frozenset[int]:
        lanes = self.producer.lanes.of(topic, ends)
        last: dict[int, int] = {}
        for partition, lane in lanes.items():
            last[lane] = max(last.get(lane, 0), ends[partition])
        read = await self._log_reader.read_up_to(group, topic, last)
        return frozenset(partition for partition, lane in lanes.items() if lane in read)

    async def committed(self, group: str, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        lanes = self.producer.lanes.of(topic, partitions)
        offsets = await self._log_reader.committed(group, topic, set(lanes.values()))
        return {partition: offsets[lane] for partition, lane in lanes.items() if lane in offsets}

    async def delete_before(self, topic: Topic, offsets: Mapping[int, int]) -> None:
        await self._log_reader.delete_before(topic, offsets)

    @property
    def troubles(self) -> list[str]:
        """Why this member is not ready, one line each; empty when it is."""
        return [line for _, line in self.faults]

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The troubles with their kinds: `fault`, `producer`, `clock`, `topics`, `consumer`, `heartbeat`,
        `isolation`."""
        troubles = [("fault", str(self.fatal))] if self.fatal is not None else []
        if self.producer.trouble:
            troubles.append(("producer", self.producer.trouble))
        if self.producer.skew.trouble:
            troubles.append(("clock", self.producer.skew.trouble))
        troubles += [("topics", line) for line in self.compacted.troubles]
        for group in self.groups.values():
            missing = "no topic {} on the broker: see nephila service topics apply"
            troubles += [("topics", missing.format(name)) for name in group.missing]
            if group.trouble:
                troubles.append(("consumer", f"group {group.name}: {group.trouble}"))
            elif group.held and not group.may_emit:
                line = f"group {group.name}: the broker has not answered heartbeats in time; check broker and network"
                troubles.append(("heartbeat", line))
            if group.inbox.isolation.trouble:
                troubles.append(("isolation", f"group {group.name}: {group.inbox.isolation.trouble}"))
        return troubles

    # ---- life

    async def start(self) -> None:
        """Compare the topics, connect, read the compacted topics, join the groups. Raises `UserError` in one line."""
        self._started = True
        mend()
        grown, partitions = await admin.check(self.config, TOPICS)
        self.producer.lanes.set(partitions, self.layout.count)
        if grown is not None:
            self.set_layout(grown)
            await self._count_lanes()
        began = max((group.membership.started for group in self.groups.values()), default=0.0)
        if self.claim_store is not None:
            await self._reach(self.claim_store)
        me = agreement.LocalMember(self.groups.keys(), began, self.agreed)
        if self.agreed:
            await agreement.refuse_differences(self.config, me)
        try:
            await self.producer.start()
            await self.compacted.start()
            await self._count_lanes()
            self._is_connected = True
            for group in self.groups.values():
                await group.start()
            if self.claim_store is not None:
                self._spawn(sweep(self.claim_store, self.clock))
            if self.agreed:
                self._spawn(self._compare(me))
        except (KafkaError, OSError) as error:
            await self.close()
            raise await admin.trouble_with(self.config, error) from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish the messages in handlers, commit, leave the groups, send what waits. Services were drained before."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.gather(*(group.close() for group in self.groups.values()))
        await self.compacted.close()
        await self.producer.close(CLOSE_S)

    @staticmethod
    async def _reach(claim_store: ClaimStore) -> None:
        """A member without its blob store would own partitions whose messages it cannot read."""
        try:
            await asyncio.to_thread(claim_store.reach)
        except TemporaryError as error:
            raise NotReadyError(f"the blob store does not answer: {error}") from None

    def _spawn(self, routine: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(routine))

    async def _compare(self, me: agreement.LocalMember) -> None:
        line = await agreement.later_difference(self.config, me)
        if line:
            self._on_fatal(UsageError(line))

    def _on_lost(self, error: UserError) -> None:
        for group in self.groups.values():
            group.has_lost_topics = True
        self._on_fatal(error)

    def _on_fatal(self, error: UserError) -> None:
        if self.fatal is None:
            self.fatal = error
        if self.on_fatal is not None:
            self.on_fatal(error)
        else:
            log.error("%s", error)
