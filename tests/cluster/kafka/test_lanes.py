"""Topics whose readers keep no state have lanes: few partitions, in which the messages of all partitions travel."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import Page, Receipts, Record, Seed
from nephila.kernel.messages import Receipt as Durable
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import PAGES, RECEIPTS, RECORDS, SEEDS, TOPICS
from nephila_cluster.kafka import grow
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import checked
from nephila_cluster.service.receipt_router import ReceiptRouter

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
        bus.subscribe(topic, topic.name, lambda d: (urls.append(d.message.url), d.ack()), credits=999)
    return bus, urls


async def test_messages_of_all_partitions_travel_in_the_lanes(config):
    """In the order of their partition; a topic with state has its partitions as before."""
    there = await admin.existing(config)
    assert {there[topic.name] for topic in TOPICS if topic.laned} == {2}
    assert {there[topic.name] for topic in TOPICS if not topic.laned and not topic.key} == {8}
    bus, urls = reader_of(config, PAGES, RECORDS, SEEDS)
    await bus.start()
    try:
        names = [f"{number}/{turn}" for turn in range(3) for number in range(8)]
        for name in names:
            bus.publish(PAGES, int(name[0]), Page(url=name))
            bus.publish(RECORDS, int(name[0]), Record(url=f"r{name}"))
            bus.publish(SEEDS, int(name[0]), Seed("j", f"s{name}"))
        await until(lambda: len(urls) == 72)
        for number in range(8):
            assert [url for url in urls if url[0] == str(number)] == [f"{number}/{turn}" for turn in range(3)]
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
        assert (there["pages"], there["seeds"]) == (grown, 8)
        bus.set_layout(await admin.stored_layout(config))
        await until(lambda: bus.layout.count == 8)
        for number in range(8):
            bus.publish(PAGES, number, Page(url=str(number)))
        await until(lambda: sorted(urls) == [str(number) for number in range(8)])
    finally:
        await bus.close()


def test_a_number_of_lanes_is_a_power_of_two(broker):
    with pytest.raises(UsageError, match="lanes must be a power of two, not 3"):
        checked(config_for(broker, lanes=3), "here")


def test_receipts_go_to_the_partitions_of_their_urls():
    """Those of a lane are of several; their receipt resolves when all are at the broker."""
    layout, sent = layout_of(4), []

    class Bus:
        def publish(self, topic, partition, message):
            sent.append((topic, partition, message, Receipt()))
            return sent[-1][3]

    router = ReceiptRouter(Bus(), lambda: layout)
    keys = [bytes([number << 6]) + bytes(15) for number in (0, 1, 3, 1)]
    receipt = router.publish(RECEIPTS, 0, Receipts("j", [Durable(key) for key in keys]))
    assert [(topic, partition, len(batch.receipts)) for topic, partition, batch, _ in sent] == [
        (RECEIPTS, layout.of(keys[0]), 1),
        (RECEIPTS, layout.of(keys[1]), 2),
        (RECEIPTS, layout.of(keys[2]), 1),
    ]
    for *_, each in sent:
        assert not receipt.done
        each.resolve_one()
    assert receipt.done
    router.publish(RECORDS, 3, Record())
    assert sent[-1][:2] == (RECORDS, 3)
