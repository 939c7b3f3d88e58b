"""What a group has read by now: in a log that never ends, and in one without reader."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.messages import FetchRequest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import REQUESTS
from nephila_cluster.scheduler.read_progress import POLL_S, POLLS, read_by_now

from tests.fake_kafka import FakeKafka, FakeKafkaBus


class Room:
    """Four partitions in two lanes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.bus = FakeKafkaBus(FakeKafka(4, lanes=2), self.clock, "owner")

    def publish(self, partition: int) -> None:
        self.bus.publish(REQUESTS, partition, FetchRequest())

    def commit(self, lane: int, offset: int) -> None:
        self.bus.broker.committed["downloader", REQUESTS.name, lane] = offset

    async def asked(self, each_poll) -> frozenset[int]:
        """The answer; `each_poll` is called before each further look."""
        task = asyncio.ensure_future(read_by_now(self.bus, self.clock, "downloader", REQUESTS, range(4)))
        for _ in range(POLLS):
            for _ in range(5):
                await asyncio.sleep(0)
            if task.done():
                break
            each_poll()
            self.clock.advance(POLL_S)
        return await task


@pytest.fixture
def room():
    return Room()


async def test_a_lane_whose_end_is_never_reached_is_read_once_the_end_of_the_call_is(room):
    """Its reader is always one record behind."""
    for _ in range(10):
        room.publish(0)
    room.commit(0, 9)
    offset = [9]

    def go_on() -> None:
        room.publish(2)
        offset[0] += 1
        room.commit(0, offset[0])

    assert await room.asked(go_on) == {0, 1, 2, 3}
    assert len(room.bus.broker.logs[REQUESTS.name, 0]) == 11


async def test_a_lane_without_reader_is_not_read_and_an_empty_one_is(room):
    room.publish(0)
    assert await room.asked(lambda: None) == {1, 3}


async def test_a_broker_that_does_not_answer_is_no_proof(room):
    room.publish(0)
    room.bus.broker.failures = 1
    with pytest.raises(TemporaryError):
        await room.asked(lambda: None)
