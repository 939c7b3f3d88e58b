"""A program that reads its tables no more does not go on as if it did."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest
from aiokafka import TopicPartition
from nephila.kernel.messages import CrawlJob
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.compacted import CompactedTopics
from nephila_cluster.kafka.config import KafkaConfig

from tests.contracts.buses import config_for
from tests.waits import until


class Reader:
    """Of a table that is never asked for."""

    group = "scheduler"


class Broken(CompactedTopics):
    """Tables of a client with a defect."""

    def __init__(self, fatal) -> None:
        super().__init__(KafkaConfig(), SystemClock(), fatal)
        self.add(JOBS, Reader())
        self.go_on = asyncio.Event()

    async def _read(self, tables) -> None:
        self.caught_up.set()
        await self.go_on.wait()
        raise ValueError("a defect")


async def test_what_nobody_expected_ends_the_program(caplog):
    """In one line, and the log has where it was."""
    ended: list[UserError] = []
    tables = Broken(ended.append)
    await tables.start()
    assert not ended
    tables.go_on.set()
    with pytest.raises(ValueError, match="a defect"):
        await tables._task
    await asyncio.sleep(0)
    assert [str(error) for error in ended] == ["reading the compacted topics ended: ValueError('a defect')"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_an_end_that_was_wanted_is_none():
    """The bus is closed."""
    ended: list[UserError] = []
    tables = Broken(ended.append)
    await tables.start()
    await tables.close()
    await asyncio.sleep(0)
    assert not ended


async def test_a_topic_that_was_deleted_and_made_again_is_reported_until_it_is_filled(broker, caplog):
    """A running member keeps what it knew, says so, and reads what is published again."""
    config = msgspec.structs.replace(config_for(broker), name="m")
    await admin.apply(config)
    bus = KafkaBus(config, SystemClock())
    got: list[str] = []
    bus.subscribe(JOBS, "scheduler", lambda d: (got.append(d.message.uid), d.ack()), credits=9)
    try:
        await bus.start()
        for uid in ("a", "b"):
            await bus.publish(JOBS, 0, CrawlJob(uid))
        await until(lambda: got == ["a", "b"])
        assert bus.troubles == []
        name = f"{config.prefix}{JOBS.name}"
        async with admin.admin(config) as client:
            await client.delete_topics([name])
            await until_gone(client, name)
        await admin.apply(config)
        await until(lambda: any("was deleted, or its broker lost data" in line for line in bus.troubles))
        (line,) = [line for line in bus.troubles if JOBS.name in line]
        assert "was read up to 2" in line
        await bus.publish(JOBS, 0, CrawlJob("c"))
        await until(lambda: got == ["a", "b", "c"])
        assert bus.troubles == []
    finally:
        await bus.close()


class Watermarks:
    """A consumer with the high watermark of its last fetch answer, and the end that the broker names when asked."""

    def __init__(self, topics: CompactedTopics, watermark: int, end: int) -> None:
        (self.tp,) = topics._topics
        self.watermark, self.end = watermark, end
        self.asked = 0

    def highwater(self, tp: TopicPartition) -> int:
        return self.watermark

    async def end_offsets(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked += 1
        return dict.fromkeys(tps, self.end)


@pytest.mark.parametrize(
    ("watermark", "end", "asked", "lost"),
    [(5, 5, 0, False), (4, 5, 1, False), (4, 7, 1, False), (4, 4, 1, True), (0, 2, 1, True)],
    ids=["whole", "stale answer", "stale answer, and more came", "shorter", "made again"],
)
async def test_only_an_end_that_the_broker_confirms_is_a_loss(watermark, end, asked, lost):
    """A fetch answer may have records beyond the high watermark that it names."""
    topics = Broken(lambda error: None)
    consumer = Watermarks(topics, watermark, end)
    (state,) = topics._topics.values()
    state.next = 5
    await topics._check_log_ends(consumer, [state])
    assert (consumer.asked, bool(topics.troubles)) == (asked, lost)
    assert state.next == (0 if lost else 5)


async def until_gone(client, name: str) -> None:
    """The broker deletes in the background."""

    async def is_gone() -> bool:
        return name not in await client.list_topics()

    await until(is_gone)
