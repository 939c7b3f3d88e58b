"""Most topics have lanes: few partitions, in which the messages of all partitions travel."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from aiokafka.admin import NewTopic
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import FetchRequest, Page, Record, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import NotReadyError, UsageError
from nephila.kernel.topics import OUTCOMES, PAGES, RECORDS, REQUESTS, SEEDS, TOPICS
from nephila_cluster.kafka import bus as module
from nephila_cluster.kafka import grow
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.client import consumer as client
from nephila_cluster.kafka.config import checked

from tests.contracts.buses import config_for
from tests.waits import until


@pytest.fixture
async def config(broker):
    """A system of eight partitions and two lanes."""
    config = config_for(broker, partitions=8, lanes=2)
    await admin.apply(config)
    return config


def reader_of(config, *topics) -> tuple[KafkaBus, list[str]]:
    bus, urls = KafkaBus(config, SystemClock()), []
    for topic in topics:
        bus.subscribe(
            topic, topic.name, lambda d: (urls.append(f"{d.partition} {d.message.url}"), d.ack()), credits=999
        )
    return bus, urls


class Listener:
    """A service that keeps state of its partitions, and takes its time to load them."""

    def __init__(self) -> None:
        self.assigned: list[int] = []
        self.lost: set[int] = set()
        self.loads = asyncio.Event()
        self.loads.set()

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        self.assigned += sorted(partitions)
        await self.loads.wait()

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        self.lost |= partitions

    def on_lost(self, partitions: frozenset[int]) -> None:
        self.lost |= partitions


async def test_messages_of_all_partitions_travel_in_the_lanes(config):
    """In the order of their partition, which the reader gets; a log of state has the partitions of the system."""
    there = await admin.existing(config)
    assert {there[topic.name] for topic in TOPICS if topic.laned} == {there["requests"]} == {2}
    assert {there[topic.name] for topic in TOPICS if not topic.laned and not topic.key} == {8}
    bus, urls = reader_of(config, PAGES, RECORDS, SEEDS, REQUESTS)
    await bus.start()
    try:
        names = [f"{number}/{turn}" for turn in range(3) for number in range(8)]
        for name in names:
            bus.publish(PAGES, int(name[0]), Page(url=name))
            bus.publish(RECORDS, int(name[0]), Record(url=f"r{name}"))
            bus.publish(SEEDS, int(name[0]), Seed("j", f"s{name}"))
            bus.publish(REQUESTS, int(name[0]), FetchRequest(url=f"q{name}"))
        await until(lambda: len(urls) == 96)
        for number in range(8):
            for kind in ("", "r", "s", "q"):
                expected = [f"{number} {kind}{number}/{turn}" for turn in range(3)]
                assert [url for url in urls if url.startswith(f"{number} {kind}{number}")] == expected
    finally:
        await bus.close()


async def test_what_of_a_partition_was_read_is_what_of_its_lane_was_read(config):
    bus, _ = reader_of(config, PAGES)
    await bus.start()
    try:
        await asyncio.gather(*(published(bus.publish(PAGES, 6, Page(url="a"))) for _ in range(3)))
        bounds = await bus.bounds(PAGES, [1, 4, 6])
        assert bounds[4] == bounds[6]
        assert bounds[6][1] > bounds[1][1] == 0
        assert bus.last_offset(PAGES, 6) == bounds[6][1] - 1
        ends = {4: bounds[4][1], 6: bounds[6][1], 1: 1}

        async def is_read() -> bool:
            return await bus.read_up_to("pages", PAGES, ends) == {4, 6}

        await until(is_read)
    finally:
        await bus.close()


async def published(receipt: Receipt) -> None:
    await until(lambda: receipt.done)


async def test_a_system_whose_topics_have_no_lanes_keeps_them(broker):
    """It was created by a release without lanes: a member of this release writes to all its partitions."""
    before = config_for(broker, partitions=4, lanes=4)
    await admin.apply(before)
    config = msgspec.structs.replace(before, lanes=2)
    bus, urls = reader_of(config, PAGES)
    await bus.start()
    try:
        await asyncio.gather(*(published(bus.publish(PAGES, number, Page(url="a"))) for number in range(4)))
        assert {number: end for number, (_, end) in (await bus.bounds(PAGES, range(4))).items()} == dict.fromkeys(
            range(4), 1
        )
        await until(lambda: len(urls) == 4)
        assert not [change for change in await admin.apply(config) if change.created]
    finally:
        await bus.close()


@pytest.mark.parametrize(("lanes", "grown"), [(2, 2), (16, 8)])
async def test_a_system_that_grows_has_more_lanes_where_it_had_too_few(broker, lanes, grown):
    """A running member writes to new partitions at once."""
    config = config_for(broker, partitions=4, lanes=lanes)
    await admin.apply(config)
    bus, urls = reader_of(config, PAGES)
    await bus.start()
    try:
        assert await grow.grow(config, 8, wait_s=0.0) == (0, 4)
        there = await admin.existing(config)
        assert (there["pages"], there["requests"], there["frontier"]) == (grown, grown, 8)
        bus.set_layout(await admin.stored_layout(config))
        await until(lambda: bus.layout.count == 8)
        for number in range(8):
            bus.publish(PAGES, number, Page(url=str(number)))
        await until(lambda: sorted(urls) == [f"{number} {number}" for number in range(8)])
    finally:
        await bus.close()


async def test_a_log_is_read_again_by_partition(config):
    """Its lane has records of other partitions, which are left out; offsets are those of the lane."""
    bus, _ = reader_of(config, SEEDS)
    await bus.start()
    try:
        for number in (6, 4, 6, 0):
            await published(bus.publish(SEEDS, number, Seed("j", str(number))))
        ranges = await bus.bounds(SEEDS, [6, 4])
        read = [(p, offset, seed.url) async for p, records in bus.read(SEEDS, ranges) for offset, seed in records]
        assert read == [(6, 0, "6"), (4, 1, "4"), (6, 2, "6")]
        await until(lambda: bus.unacked == 0)
        await bus.groups["seeds"].commit()
        assert await bus.committed("seeds", SEEDS, [6, 4, 1]) == {6: 4, 4: 4, 1: 0}
        assert await bus.read_up_to("seeds", SEEDS, {6: 4, 0: 4, 1: 1}) == {6, 0}
        ends = await bus.end_offsets([SEEDS])
        assert sum(ends.values()) == 4
        assert await bus.has_read_to("seeds", ends)
        assert bus.has_all("seeds")
    finally:
        await bus.close()


async def test_a_service_with_state_gets_all_partitions_of_its_lanes(config):
    """Two members share two lanes: four partitions each; none is lost when one of them leaves."""
    buses, listeners = [], []
    for number in range(2):
        bus, listener = KafkaBus(msgspec.structs.replace(config, name=f"m{number}"), SystemClock()), Listener()
        bus.subscribe(SEEDS, "seeds", lambda d: d.ack(), credits=9)
        bus.watch_partitions("seeds", listener)
        buses.append(bus)
        listeners.append(listener)
        await bus.start()
    try:
        await until(lambda: [len(bus.held("seeds")) for bus in buses] == [4, 4])
        assert {number % 2 for number in buses[0].held("seeds")} != {number % 2 for number in buses[1].held("seeds")}
        assert listeners[0].lost == buses[1].held("seeds")
        await buses[1].close()
        await until(lambda: buses[0].held("seeds") == frozenset(range(8)))
    finally:
        for bus in buses:
            await bus.close()


async def test_messages_of_new_partitions_wait_until_their_reader_serves_them(broker):
    """Their writer has read of the growth before; what is behind them in the lane waits as well, and comes once."""
    config = config_for(broker, partitions=4, lanes=2)
    await admin.apply(config)
    reader, urls = reader_of(config, SEEDS)
    listener = Listener()
    reader.watch_partitions("seeds", listener)
    writer = KafkaBus(msgspec.structs.replace(config, name="w"), SystemClock())
    await reader.start()
    await writer.start()
    try:
        await grow.grow(config, 8, wait_s=0.0)
        writer.set_layout(await admin.stored_layout(config))
        await until(lambda: len(listener.assigned) == 4)
        assert listener.assigned == [0, 1, 2, 3]
        for number in (2, 6, 0, 7):
            await published(writer.publish(SEEDS, number, Seed("j", str(number))))
        states = reader.groups["seeds"].inbox.partition_states.values()
        await until(lambda: sorted(state.waits_at for state in states) == [0, 1])
        assert urls == ["2 2"]
        listener.loads.clear()
        reader.set_layout(await admin.stored_layout(config))
        await until(lambda: listener.assigned == list(range(8)))
        assert urls == ["2 2"]
        listener.loads.set()
        await until(lambda: sorted(urls) == ["0 0", "2 2", "6 6", "7 7"])
        assert urls.index("6 6") < urls.index("0 0")
        await until(lambda: reader.held("seeds") == frozenset(range(8)))
    finally:
        await reader.close()
        await writer.close()


async def grow_to_eight(config, bus) -> None:
    await grow.grow(config, 8, wait_s=0.0)
    bus.set_layout(await admin.stored_layout(config))


async def test_a_growth_is_seen_while_a_consumer_is_replaced(broker, monkeypatch):
    """The group has no consumer meanwhile, and messages of new partitions come once it has one."""
    config = config_for(broker, partitions=4, lanes=2)
    await admin.apply(config)
    reader, urls = reader_of(config, SEEDS)
    listener, stops, stop_consumer = Listener(), asyncio.Event(), client.stop_consumer
    reader.watch_partitions("seeds", listener)

    async def stop_late(consumer, *, leave) -> None:
        await stops.wait()
        await stop_consumer(consumer, leave=leave)

    await reader.start()
    try:
        await until(lambda: len(reader.held("seeds")) == 4)
        monkeypatch.setattr(client, "stop_consumer", stop_late)
        group = reader.groups["seeds"]
        renewal = asyncio.create_task(group._renew(group.consumer, []))
        await until(lambda: group.consumer is None)
        await grow_to_eight(config, reader)
        await until(lambda: listener.assigned == list(range(8)))
        stops.set()
        await renewal
        for number in (6, 2):
            reader.publish(SEEDS, number, Seed("j", str(number)))
        await until(lambda: urls == ["6 6", "2 2"])
    finally:
        stops.set()
        await reader.close()


async def test_a_member_without_groups_has_the_lanes_of_a_growth(broker):
    config = config_for(broker, partitions=4, lanes=16)
    await admin.apply(config)
    writer = KafkaBus(config, SystemClock())
    await writer.start()
    try:
        await grow_to_eight(config, writer)
        await until(lambda: writer.lanes(SEEDS, [6]) == {6: 6})
    finally:
        await writer.close()


async def test_a_consumer_that_answers_no_more_holds_no_growth_up(broker, monkeypatch):
    """It is replaced before it has asked for the topics: its client never ends that question."""

    async def never(consumer) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "REFRESH_S", 0.1)
    monkeypatch.setattr(client, "refresh", never)
    config = config_for(broker, partitions=4, lanes=2)
    await admin.apply(config)
    bus, urls = reader_of(config, PAGES)
    await bus.start()
    try:
        await grow_to_eight(config, bus)
        await until(lambda: bus.producer.lanes.partitions == 8)
        bus.publish(PAGES, 6, Page(url="6"))
        await until(lambda: urls == ["6 6"])
    finally:
        await bus.close()


async def test_lanes_that_are_fewer_than_the_partitions_keep_their_number(broker):
    """Also when the setting has risen since; a topic that a scheduler reads gets the number of the others."""
    config = config_for(broker, partitions=4, lanes=2)
    await admin.apply(config, topics=(OUTCOMES, *(topic for topic in TOPICS if not topic.owned)))
    config = msgspec.structs.replace(config, lanes=4)
    changes = {change.name: change for change in await admin.apply(config)}
    assert (changes["seeds"].created, changes["seeds"].partitions) == (True, 2)
    await grow.grow(config, 8, wait_s=0.0)
    there = await admin.existing(config)
    assert (there["pages"], there["requests"], there["frontier"]) == (2, 2, 8)


async def test_other_numbers_of_lanes_of_a_scheduler_are_refused(broker):
    """Partitions would not be at the owners of their lanes."""
    config = config_for(broker, partitions=4, lanes=2)
    await admin.apply(config, topics=[topic for topic in TOPICS if topic is not OUTCOMES])
    async with admin.admin(config) as client:
        await client.create_topics([NewTopic(f"{config.prefix}outcomes", 4, 1)])
    with pytest.raises(UsageError, match=r"must have the same number of partitions, not .*outcomes 4, .*outlinks 2"):
        await until_seen(config)


async def until_seen(config) -> None:
    """A new topic is visible after a moment."""
    while True:
        with contextlib.suppress(NotReadyError):
            await admin.check(config, TOPICS)
        await asyncio.sleep(0)


def test_a_number_of_lanes_is_a_power_of_two(broker):
    with pytest.raises(UsageError, match="lanes must be a power of two, not 3"):
        checked(config_for(broker, lanes=3), "here")
