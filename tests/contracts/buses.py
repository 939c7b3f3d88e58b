"""A rig for every bus: how it is made, started, waited for and ended, so that one suite says what all of them mean."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.pipe.link import Channel
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import TOPICS, Topic
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.admin.topic_settings import alter
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import KafkaConfig

from tests.fake_kafka import FakeKafka, FakeKafkaBus
from tests.waits import until

_numbers = itertools.count()


def config_for(broker: Any, **settings: Any) -> KafkaConfig:
    """Topics of a test's own, few partitions, quick to notice."""
    defaults = {
        "bootstrap": broker.address,
        "prefix": f"t{os.getpid()}-{next(_numbers)}-",
        "partitions": 4,
        "name": "member-0",
        "session_s": 2.0,
        "heartbeat_s": 0.1,
        "linger_s": 0.001,
        "drain_s": 0.5,
        "commit_interval_s": 0.05,
    }
    return KafkaConfig(**{**defaults, **settings})


async def compacted(config: KafkaConfig, bus: KafkaBus, topic: Topic, last: Any) -> None:
    """Let a real broker compact a topic at once, and publish `last` until its first record is gone."""
    name = config.prefix + topic.name
    async with admin.admin(config) as client:
        await alter(client, {name: {"min.compaction.lag.ms": "0", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}})
    consumer = AIOKafkaConsumer(bootstrap_servers=config.bootstrap, enable_auto_commit=False)
    await consumer.start()
    tp = TopicPartition(name, 0)
    consumer.assign([tp])
    try:

        async def is_compacted() -> bool:
            await bus.publish(topic, 0, last)
            consumer.seek(tp, 0)
            return (await consumer.getone(tp)).offset > 0

        await until(is_compacted)
    finally:
        await consumer.stop()


class LocalRig:
    """Objects within one program."""

    acked_receipts = True
    """A receipt says that every reader has acked; else that the bus has the message."""

    def __init__(self, broker: object = None) -> None:
        self.clock = ManualClock()
        self.bus: Any = LocalBus(self.clock)

    async def start(self) -> None:
        """Nothing to start."""

    async def settle(self) -> None:
        """All that can be delivered has been."""

    async def until(self, condition: Callable[[], bool]) -> None:
        """Nothing to wait for: what is so is so at once."""
        assert condition()

    async def close(self) -> None:
        """Nothing to end."""


class TwoProcesses:
    """What is published here is read over there: two buses and the pipe between them, without a process."""

    def __init__(self, clock: ManualClock) -> None:
        self.here, self.there = LocalBus(clock), LocalBus(clock)
        self.near = Channel(self.here, lambda data: self.far.receive(bytes(data)), _at_once, print)
        self.far = Channel(self.there, lambda data: self.near.receive(bytes(data)), _at_once, print)
        for topic in TOPICS:
            self.near.forward(topic, "over there")
        self.subscribe = self.there.subscribe
        self.publish = self.here.publish

    @property
    def unacked(self) -> int:
        """Deliveries over there, and what this end still waits for when there are none."""
        return self.there.unacked or self.here.unacked


def _at_once(callback: Callable[[], None]) -> None:
    """There is no loop that anything could be put off to."""
    callback()


class WorkersRig(LocalRig):
    """Two programs on one machine."""

    def __init__(self, broker: object = None) -> None:
        super().__init__(broker)
        self.bus = TwoProcesses(self.clock)


class BrokerClock(ManualClock):
    """A broker compares its own time with that of members; waits end when the test says."""

    def now(self) -> float:
        """The time of the machine."""
        return time.time()


class KafkaRig:
    """Over a real broker."""

    acked_receipts = False

    def __init__(self, broker: Any, **settings: Any) -> None:
        self.config = config_for(broker, **settings)
        self.clock = BrokerClock()
        self.bus: Any = KafkaBus(self.config, self.clock)

    async def start(self) -> None:
        """Topics, then the bus."""
        await admin.apply(self.config)
        await self.bus.start()

    async def settle(self) -> None:
        """All that was published has been taken, and is with its reader or waits for credit."""
        await until(lambda: self.bus.producer.unsent == 0)
        for group in self.bus.groups.values():
            await until(lambda group=group: len(group.held) == self.config.partitions)
            partition_states = group.inbox.partition_states
            ends = await group.consumer.end_offsets(list(partition_states))
            await until(
                lambda partition_states=partition_states, ends=ends: all(
                    partition_states[tp].position.next >= ends[tp] for tp in partition_states
                )
            )

    async def until(self, condition: Callable[[], bool]) -> None:
        """It comes over the network."""
        await until(condition)

    async def compact(self, topic: Topic, last: Any) -> None:
        """The broker compacts a topic: its oldest record is gone. `last` is published until a segment is closed."""
        await compacted(self.config, self.bus, topic, last)

    async def close(self) -> None:
        """Leave the group, send what waits."""
        await self.bus.close()


class FakeKafkaRig:
    """Over the Kafka in memory that other tests use."""

    acked_receipts = False

    def __init__(self, broker: object = None) -> None:
        self.clock = ManualClock()
        self.bus: Any = FakeKafkaBus(FakeKafka(), self.clock, "owner")
        self.bus.slow = True

    async def start(self) -> None:
        """Nothing to start."""

    async def settle(self) -> None:
        """Everything published was taken and handed over."""
        while self.bus.take() + self.bus.deliver():
            pass

    async def until(self, condition: Callable[[], bool]) -> None:
        """After everything was handed over."""
        await self.settle()
        assert condition()

    async def compact(self, topic: Topic, last: Any) -> None:
        """Remove what later records replace."""
        assert self.bus.broker.compact(topic)

    async def close(self) -> None:
        """Nothing to end."""


RIGS: dict[str, type] = {"local": LocalRig, "workers": WorkersRig, "fake-kafka": FakeKafkaRig, "kafka": KafkaRig}
