"""A broker whose topics are new ends its members: by the offsets of the topic that each member writes to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from nephila.kernel.messages import MemberStatus, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import MEMBERS, SEEDS
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.producer import BatchingProducer


class Producer(BatchingProducer):
    """Its broker answers with these offsets."""

    def __init__(self, offsets: list[int]) -> None:
        self.lost: list[UserError] = []
        super().__init__(KafkaConfig(linger_s=0.0), SystemClock(), None, on_lost=self.lost.append)
        self._offsets = iter(offsets)

    async def send_and_wait(self, topic: str, value: bytes, **_: object) -> SimpleNamespace:
        """See `AIOKafkaProducer`."""
        await asyncio.sleep(0)
        return SimpleNamespace(offset=next(self._offsets), timestamp_type=0, timestamp=0)

    async def _connect(self) -> Producer:  # type: ignore[override]
        return self

    async def stop(self) -> None:
        """See `AIOKafkaProducer`."""


@pytest.mark.parametrize(
    ("topic", "offsets", "lost"),
    [
        (MEMBERS, [4, 5, 9, 12], 0),
        (MEMBERS, [4, 5, 0, 1, 2], 1),
        (MEMBERS, [4, 5, -1, 6], 0),
        (SEEDS, [4, 5, 0, 1], 0),
    ],
    ids=["rising", "new", "a repetition has none", "a topic made again by hand"],
)
async def test_offsets_that_begin_again_are_noticed_once(topic, offsets, lost):
    producer = Producer(offsets)
    await producer.start()
    message = Seed("j", "u") if topic is SEEDS else MemberStatus("parser/a")
    for _ in offsets:
        receipt = producer.put(topic, 0, message)
        async with asyncio.timeout(60):
            while not receipt.done:  # noqa: ASYNC110
                await asyncio.sleep(0)
    assert len(producer.lost) == lost
    assert all("has lost its topics" in str(error) for error in producer.lost)
    await producer.close(1.0)
