"""Requests that are at the broker already: found in lanes that others use, by owners with leases of any length."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.messages import FetchRequest, Render
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import REQUESTS, Topic, requests_topic
from nephila_cluster.scheduler import sent_requests as module
from nephila_cluster.scheduler.sent_requests import NEAR_S, name_of, sent_requests

from tests.fake_kafka import FakeKafka, FakeKafkaBus

LEASE_S = 180.0


class Room:
    """Eight partitions in two lanes; schedulers that lease and publish."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.bus = FakeKafkaBus(FakeKafka(8, lanes=2), self.clock, "owner")
        self.read_records = 0
        read = self.bus.read

        async def counting(topic: Topic, ranges):
            lanes = {self.bus.broker.lane(topic, p): ranges[p] for p in ranges}
            self.read_records += sum(end - start for start, end in lanes.values())
            async for part in read(topic, ranges):
                yield part

        self.bus.read = counting
        self.number = 0

    def lease(self, render: Render = Render.NEVER, lease_s: float = LEASE_S) -> FetchRequest:
        self.number += 1
        request = FetchRequest("j", b"%16d" % self.number, f"http://a.test/{self.number}", "a.test", fetch_no=1)
        request.attempt, request.render, request.lease_until = 1, render, self.clock.now() + lease_s
        return request

    def publish(self, partition: int, request: FetchRequest, seconds: float = 1.0) -> FetchRequest:
        self.bus.publish(requests_topic(request), partition, request)
        self.clock.advance(seconds)
        return request

    async def sent(self, *requests: tuple[int, FetchRequest]) -> list[FetchRequest]:
        names = await sent_requests(self.bus, requests)
        return [request for _, request in requests if name_of(request) in names]


@pytest.fixture
def room():
    return Room()


async def test_the_newest_request_of_a_partition_is_found_behind_many_of_others(room):
    """Partition 2 has the last records of the lane; one request of partition 4 lies far before them."""
    sent = room.publish(4, room.lease())
    for _ in range(500):
        room.publish(2, room.lease(), 0.1)
    missing = room.lease()
    assert await room.sent((4, sent), (4, missing)) == [sent]


async def test_requests_of_one_turn_are_told_apart_by_name(room):
    """They have one instant; the broker took some of them."""
    turn = [room.lease() for _ in range(5)]
    for request in turn[:3]:
        room.publish(4, request, 0.0)
    assert await room.sent(*((4, request) for request in turn)) == turn[:3]


async def test_all_requests_of_a_turn_are_compared_however_many_records_they_fill(room):
    """The search goes on to the first older lease."""
    room.publish(4, room.lease())
    turn = [room.publish(4, room.lease(), 0.0) for _ in range(module.TAIL + 10)]
    missing = room.lease()
    assert await room.sent(*((4, request) for request in [*turn, missing])) == turn


async def test_an_older_lease_than_the_newest_was_published(room):
    """Leases are published in their order; what another partition of the lane published proves nothing."""
    first, second, third = room.publish(4, room.lease()), room.publish(4, room.lease()), room.lease()
    room.clock.advance(1.0)
    for _ in range(200):
        room.publish(2, room.lease())
    assert await room.sent((4, first), (4, second), (4, third), (6, third)) == [first, second]


async def test_a_partition_without_a_request_costs_its_lane(room):
    """No record says that the search may end."""
    for _ in range(1000):
        room.publish(2, room.lease(), 0.01)
    assert await room.sent((4, room.lease())) == []
    assert room.read_records == 1000


async def test_the_search_ends_where_all_requests_of_a_partition_are_found(room):
    """A quiet partition costs the records since its last requests."""
    for _ in range(3000):
        room.publish(2, room.lease(), 0.01)
    sent = room.publish(4, room.lease())
    for _ in range(module.TAIL - 1):
        room.publish(2, room.lease(), 0.01)
    assert await room.sent((4, sent)) == [sent]
    assert room.read_records == module.TAIL


LONG_S = 4 * LEASE_S


async def test_leases_of_an_owner_with_longer_ones_were_published(room):
    """Its settings have been lowered since."""
    sent = room.publish(4, room.lease(lease_s=LONG_S))
    room.clock.advance(LEASE_S / 2)
    missing = room.lease(lease_s=LONG_S)
    assert await room.sent((4, sent), (4, missing)) == [sent]


async def test_leases_of_an_owner_with_longer_ones_were_published_before_shorter_ones_of_the_next(room):
    """The last requests of the partition have older leases, and this one is not among them."""
    sent = room.publish(4, room.lease(lease_s=LONG_S))
    for _ in range(5 * module.TAIL):
        room.publish(4, room.lease(), 0.01)
    room.clock.advance(0.01)
    missing = room.lease()
    assert await room.sent((4, sent), (4, missing)) == [sent]


async def test_the_request_of_a_partition_that_rested_is_missing(room):
    """Its lease ends long after those of the last requests."""
    for _ in range(5 * module.TAIL):
        room.publish(4, room.lease(), 0.01)
    room.clock.advance(2 * NEAR_S)
    assert await room.sent((4, room.lease())) == []


async def test_a_partition_with_many_requests_costs_its_last_records(room):
    """It has older leases there already."""
    for _ in range(3000):
        room.publish(2, room.lease(), 0.01)
    assert await room.sent((2, room.lease())) == []
    assert room.read_records == module.TAIL


async def test_requests_for_a_browser_are_in_their_own_topic(room):
    plain, rendered = room.publish(4, room.lease()), room.publish(4, room.lease(Render.ALWAYS))
    missing = room.lease(Render.ALWAYS)
    assert await room.sent((4, plain), (4, rendered), (4, missing)) == [plain, rendered]
    assert await room.sent((4, room.lease())) == []
    assert not await room.sent()


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_missing_at_the_end_is_what_is_found_missing(room, seed, monkeypatch):
    """Owners of all partitions publish in random turns; each dies with the last requests of its last turns unsent."""
    monkeypatch.setattr(module, "TAIL", 4)
    rng = random.Random(seed)
    leased: dict[int, list[FetchRequest]] = {partition: [] for partition in range(8)}
    unsent = {partition: rng.randrange(4) for partition in leased}
    for _ in range(60):
        partition = rng.choice((0, 0, 0, 0, 1, 2, 2, 3, 4, 5, 5, 5, 6, 7))
        leased[partition] += [room.lease() for _ in range(rng.randrange(1, 4))]
        # Those that are never sent stay behind.
        ready = leased[partition][: len(leased[partition]) - unsent[partition]]
        published = {name_of(one) for one in room.bus.broker.all(REQUESTS, partition)}
        for request in ready:
            if name_of(request) not in published:
                room.publish(partition, request, 0.0)
        room.clock.advance(rng.random())
    for partition, requests in leased.items():
        published = {name_of(one) for one in room.bus.broker.all(REQUESTS, partition)}
        in_flight = [(partition, request) for request in requests if rng.random() < 0.5]
        found = await room.sent(*in_flight)
        assert found == [request for _, request in in_flight if name_of(request) in published]
