"""A consumer that is stuck is replaced: each replacement is counted once, and attempts without a broker are not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import TopicPartition
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.kafka.client import consumer as client
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer import consumer_group
from nephila_cluster.kafka.consumer.consumer_group import ConsumerGroup
from nephila_cluster.kafka.metrics import METRICS

STUCK = [TopicPartition("pages", 3)]


class Group(ConsumerGroup):
    """Connects at the second attempt."""

    def __init__(self) -> None:
        super().__init__("parser", KafkaConfig(name="p", silent_s=5.0), ManualClock(), None, pytest.fail)
        self.attempts = 0

    async def _connect(self) -> None:
        self.attempts += 1
        if self.attempts % 2:
            raise KafkaConnectionError("no broker")
        self.consumer = object()  # type: ignore[assignment]


@pytest.fixture
def ended(monkeypatch):
    """The consumers that were stopped; no attempt waits."""
    found = []

    async def stop_consumer(consumer, *, leave):
        found.append((consumer, leave))

    monkeypatch.setattr(client, "stop_consumer", stop_consumer)
    monkeypatch.setattr(consumer_group, "BACKOFF_S", 0.0)
    return found


async def test_a_replaced_consumer_is_counted_and_stopped_without_leaving_the_group(ended, caplog):
    """Its partitions stay with this member; the metric says how often."""
    group, bus = Group(), SimpleNamespace()
    bus.groups = {"parser": group}
    (metric,) = [one for one in METRICS if one.name == "consumers_replaced_total"]
    for number in (1, 2):
        stuck = object()
        async with asyncio.timeout(60):
            await group._renew(stuck, STUCK)  # type: ignore[arg-type]
        assert ended[-1] == (stuck, False)
        assert (group.restarts, group.attempts) == (number, 2 * number)
        assert metric.read(bus) == {"parser": number}
    assert caplog.messages[0] == "parser: the consumer was silent for 5 s on pages/3; it is replaced"
