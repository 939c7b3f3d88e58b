"""In a beat outcomes and pages wait for the next instant; all other messages are sent with those of their moment."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from nephila.kernel.messages import Envelope, FetchOutcome, Receipts
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import OUTCOMES, RECEIPTS
from nephila_cluster.kafka.beat import Beat
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.producer import BatchingProducer
from nephila_cluster.kafka.wire import CODECS


class Broker(BatchingProducer):
    """A producer whose records are kept here, with the instant of each."""

    def __init__(self, period_s: float) -> None:
        self.clock = ManualClock()
        beat = Beat(self.clock, period_s)
        beat.set_least_delay(10.0)
        super().__init__(KafkaConfig(linger_s=0.01), self.clock, None, beat)
        self.records: list[tuple[str, int, float]] = []
        """(topic, messages, instant)."""
        self.answers = asyncio.Event()
        self.answers.set()

    async def _connect(self) -> Any:
        return self

    async def send_and_wait(self, topic: str, value: bytes, **options: Any) -> Any:
        """See `AIOKafkaProducer`."""
        frames = CODECS[Envelope].decode(value).frames
        self.records.append((topic, len(frames), self.clock.now()))
        await self.answers.wait()
        return SimpleNamespace(offset=len(self.records), timestamp_type=0, timestamp=0)

    async def stop(self) -> None:
        """See `AIOKafkaProducer`."""

    async def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.01)):
            self.clock.advance(0.01)
            for _ in range(3):
                await asyncio.sleep(0)


async def test_outcomes_of_a_beat_are_one_record_at_its_instant() -> None:
    producer = Broker(0.5)
    await producer.start()
    for _ in range(7):
        producer.put(OUTCOMES, 3, FetchOutcome())
        await producer.pass_time(0.1)
    await producer.pass_time(0.5)
    assert sum(messages for _, messages, _ in producer.records) == 7
    assert len(producer.records) <= 3
    for _, _, at in producer.records:
        assert min(at % 0.5, 0.5 - at % 0.5) < 0.02
    assert not producer.unsent


async def test_what_a_reader_makes_of_a_beat_is_sent_in_it() -> None:
    producer = Broker(0.5)
    await producer.start()
    began = producer.clock.now()
    for _ in range(2):
        producer.put(RECEIPTS, 3, Receipts())
        await producer.pass_time(0.02)
    await producer.pass_time(0.03)
    (record,) = producer.records
    assert (record[:2], record[2] - began < 0.05) == (("receipts", 2), True)


async def test_an_outcome_that_comes_while_a_record_is_under_way_waits_for_the_next_beat() -> None:
    """Else each answer of the broker would start a record of one message."""
    producer = Broker(0.5)
    await producer.start()
    producer.answers.clear()
    producer.put(OUTCOMES, 3, FetchOutcome())
    await producer.pass_time(0.51)
    producer.put(OUTCOMES, 3, FetchOutcome())
    producer.answers.set()
    await producer.pass_time(0.02)
    assert len(producer.records) == 1
    await producer.pass_time(0.5)
    assert [messages for _, messages, _ in producer.records] == [1, 1]


async def test_without_a_beat_an_outcome_waits_for_others_of_its_moment_only() -> None:
    producer = Broker(0.0)
    await producer.start()
    began = producer.clock.now()
    receipt = producer.put(OUTCOMES, 3, FetchOutcome())
    async with asyncio.timeout(60):
        while not receipt.done:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert [(messages, at) for _, messages, at in producer.records] == [(1, began)]


async def test_messages_that_wait_for_the_beat_are_sent_at_the_end() -> None:
    producer = Broker(0.5)
    await producer.start()
    receipt = producer.put(OUTCOMES, 3, FetchOutcome())
    await producer.close(1.0)
    assert receipt.done
    assert len(producer.records) == 1
