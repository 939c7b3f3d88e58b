"""A member owns all partitions of its lanes; a message waits until its partition is served, in its lane."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from aiokafka import TopicPartition
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchRequest, Page, Seed
from nephila.kernel.topics import PAGES, REQUESTS, SEEDS
from nephila_cluster.kafka.consumer.owned_partitions import OwnedPartitions, Route
from nephila_cluster.kafka.lanes import Lanes
from nephila_cluster.kafka.wire import frame_of

from tests.cluster.kafka.consumer.test_inbox import Rig


class Service:
    """What a service was called for; it serves when `loads` is set."""

    def __init__(self) -> None:
        self.assigned: list[set[int]] = []
        self.lost: set[int] = set()
        self.loads = asyncio.Event()
        self.loads.set()

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        self.assigned.append(set(partitions))
        await self.loads.wait()

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """Nothing is left to finish."""

    def on_lost(self, partitions: frozenset[int]) -> None:
        self.lost |= partitions


def owned(partitions: int, lanes: int) -> tuple[OwnedPartitions, Service, Lanes]:
    """A group that reads seeds."""
    counts = Lanes()
    counts.set({SEEDS.name: lanes, PAGES.name: lanes}, partitions)
    parts, service = OwnedPartitions(counts), Service()
    parts.listener = service
    parts.read([SEEDS])
    return parts, service, counts


async def test_a_lane_has_every_partition_that_is_equal_to_it_by_the_number_of_lanes():
    parts, service, _ = owned(8, 2)
    await parts.assign({1})
    assert service.assigned == [{1, 3, 5, 7}]
    assert parts.of({0, 1}) == frozenset(range(8))
    parts.lose({1})
    assert service.lost == {1, 3, 5, 7}
    assert parts.route(1, 3) is Route.WAIT


async def test_both_halves_of_a_split_stay_in_their_lane():
    parts, service, counts = owned(4, 2)
    await parts.assign({0})
    assert parts.route(0, 4) is Route.WAIT
    counts.set({SEEDS.name: 2}, 8)
    assert parts.route(0, 4) is Route.WAIT
    await parts.grow({0})
    await parts.grow({0})
    assert service.assigned == [{0, 2}, {4, 6}]
    assert parts.route(0, 4) is Route.DELIVER


async def test_a_system_with_fewer_partitions_than_lanes_gets_more_lanes():
    """A writer that knows of the partition, and of no more lanes, has put its message into the lane of its parent."""
    parts, service, counts = owned(2, 2)
    await parts.assign({0})
    assert parts.route(0, 2) is Route.WAIT
    counts.set({SEEDS.name: 4}, 2)  # a growth is prepared
    await parts.assign({3})
    assert service.assigned == [{0}, {3}]
    counts.set({SEEDS.name: 4}, 4)
    await parts.grow({0, 3})
    assert service.assigned == [{0}, {3}]
    assert parts.route(0, 2) is Route.FORWARD
    assert parts.route(3, 3) is Route.DELIVER


async def test_a_partition_that_is_lost_while_its_service_loads_it_is_not_served():
    parts, service, _ = owned(4, 2)
    service.loads.clear()
    loading = asyncio.create_task(parts.assign({0}))
    await asyncio.sleep(0)
    assert parts.route(0, 2) is Route.WAIT
    parts.lose({0})
    service.loads.set()
    await loading
    assert parts.route(0, 2) is Route.WAIT


async def test_a_group_without_a_listener_gets_every_message():
    counts = Lanes()
    counts.set({PAGES.name: 2}, 4)
    parts = OwnedPartitions(counts)
    parts.read([PAGES])
    await parts.assign({0})
    assert (parts.of({0}), parts.route(0, 2), parts.route(0, 99)) == ({0}, Route.DELIVER, Route.DELIVER)


def frame_for(partition: int, url: str):
    frame = frame_of(Seed, Seed("j", url))
    frame.partition = partition + 1
    return frame


async def test_a_record_waits_in_its_lane_without_a_commit_and_is_read_again():
    parts, _, counts = owned(4, 2)
    rig = Rig(credits=99, owned=parts)
    tp = rig.open(0)
    await parts.assign({0})
    records = {0: [frame_for(2, "a")], 1: [frame_for(0, "b"), frame_for(4, "c")], 2: [frame_for(0, "d")]}
    assert rig.take_frames(tp, records) is None
    assert [(d.partition, d.message.url) for d in rig.got] == [(2, "a")]
    assert not rig.inbox.open(tp)
    for delivery in rig.got:
        delivery.ack()
    assert rig.inbox.offsets() == {tp: 1}
    assert rig.take_frames(tp, records) is None
    assert len(rig.got) == 1
    counts.set({SEEDS.name: 2}, 8)
    await parts.grow(rig.inbox.staying)
    assert rig.inbox.resume() == {tp: 1}
    assert rig.inbox.open(tp)
    rig.take_frames(tp, records)
    assert [(d.partition, d.message.url) for d in rig.got[1:]] == [(0, "b"), (4, "c"), (0, "d")]


def owned_requests(partitions: int, lanes: int) -> OwnedPartitions:
    """A group of downloaders."""
    counts = Lanes()
    counts.set({REQUESTS.name: lanes}, partitions)
    parts = OwnedPartitions(counts)
    parts.listener = Service()
    parts.read([REQUESTS])
    return parts


async def test_requests_that_wait_for_their_partition_are_the_next_members_when_their_lane_is_released():
    """Requests are committed before delivery; those that were never delivered are committed back."""
    parts = owned_requests(4, 2)
    rig = Rig(REQUESTS, credits=99, owned=parts)
    tp = rig.open(0)
    await parts.assign({0})
    records = {at: [frame_of(FetchRequest, FetchRequest(url=str(at)))] for at in range(3)}
    records[1][0].partition = 4 + 1
    batch = [SimpleNamespace(offset=at) for at in records]
    rig.inbox.committed(ahead := rig.inbox.leased_offsets({tp: batch}))
    assert ahead == {tp: 3}
    rig.take_frames(tp, records)
    assert rig.urls == ["0"]
    assert rig.inbox.offsets() == {}
    rig.inbox.leave(frozenset({0}), has_listener=True)
    assert rig.inbox.final_offsets(frozenset({0})) == {tp: 1}


async def test_a_leased_message_in_the_lane_of_before_is_left_to_its_lease():
    """Published again, it could come beside the request that repeats its lease."""
    parts = owned_requests(4, 4)
    rig, again = Rig(REQUESTS, credits=99, owned=parts), []
    rig.bus.subscribe(REQUESTS, "g", again.append, credits=9)
    tp = rig.open(0)
    await parts.assign({0})
    frames = [frame_of(FetchRequest, FetchRequest(url=url)) for url in "ab"]
    frames[0].partition = 3
    rig.take_frames(tp, {0: frames})
    assert rig.urls == ["b"]
    assert again == []
    assert rig.inbox.offsets() == {tp: 1}


async def test_a_message_in_the_lane_of_before_is_published_again_and_its_record_is_done_with_that():
    parts, _, _ = owned(4, 4)
    rig, again = Rig(credits=99, owned=parts), []
    rig.bus.subscribe(SEEDS, "g", again.append, credits=9)
    tp = rig.open(0)
    await parts.assign({0})
    rig.take_frames(tp, {0: [frame_for(2, "a"), frame_of(Seed, Seed("j", "b"))]})
    assert [(d.partition, d.message.url) for d in rig.got] == [(0, "b")]
    assert [(d.partition, d.message.url) for d in again] == [(2, "a")]
    rig.got[0].ack()
    assert rig.inbox.offsets() == {}
    again[0].ack()
    assert rig.inbox.offsets() == {tp: 1}


async def test_a_partition_moves_with_the_messages_of_its_lane():
    """Those that wait for credit, and those in handlers."""
    parts, _, _ = owned(4, 2)
    rig = Rig(credits=1, owned=parts)
    rig.open(0)
    await parts.assign({0})
    rig.take_frames(TopicPartition("seeds", 0), {0: [frame_for(2, "a"), frame_for(0, "b")]})
    lanes = frozenset({0})
    rig.inbox.leave(lanes, True)
    idle = asyncio.ensure_future(rig.inbox.idle(lanes))
    await asyncio.sleep(0)
    assert not idle.done()
    rig.got[0].ack()
    await idle
    assert [d.partition for d in rig.got] == [2]


def test_pages_have_no_owner_and_say_their_partition():
    rig = Rig(PAGES, credits=99)
    frame = frame_of(Page, Page(url="a"))
    frame.partition = 6
    rig.take_frames(rig.open(1), {0: [frame]})
    assert [(d.partition, d.message.url) for d in rig.got] == [(5, "a")]
    assert isinstance(rig.bus, LocalBus)
