"""A message that ends whoever has it in hand, on a real broker: counted over members, and put aside in the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import msgspec
import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.poison import MAX_CRASHES
from nephila.kernel.messages import DeadLetter, FetchRequest, Outlinks, Page
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import DEAD, OUTLINKS, PAGES, REQUESTS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.consumer.commit_metadata import CRASHES_TO_ISOLATE
from nephila_cluster.kafka.consumer.consumer_group import ConsumerGroup
from nephila_cluster.kafka.metrics import METRICS
from nephila_cluster.kafka.wire import headers_of, message_of, unseal

from tests.cluster.kafka.group.test_rebalance import vanish
from tests.contracts.buses import config_for
from tests.waits import until

POISON = "http://a.test/poison"


@pytest.fixture
async def rig(broker):
    """A parser that vanishes at one page, begun again as often as it does."""

    class Rig:
        def __init__(self) -> None:
            self.config = config_for(broker, session_s=1.0)
            self.got: Counter[str] = Counter()
            self.dead: list[DeadLetter] = []
            self.ends = 0
            self.buses: list[KafkaBus] = []
            self.closing: list[asyncio.Task[None]] = []

        async def operator(self) -> KafkaBus:
            """Reads the dead letters, publishes."""
            bus = KafkaBus(msgspec.structs.replace(self.config, name="operator"), SystemClock())
            bus.subscribe(DEAD, "undertaker", lambda d: (self.dead.append(d.message), d.ack()), credits=9)
            self.buses.append(bus)
            await bus.start()
            return bus

        async def parser(self, name: str) -> KafkaBus:
            """A member; it dies of the poison."""
            bus = KafkaBus(msgspec.structs.replace(self.config, name=name), SystemClock())
            gone = [False]

            def on_page(delivery: Delivery) -> None:
                if gone[0]:
                    return
                self.got[delivery.message.url] += 1
                if delivery.message.url == POISON:
                    gone[0] = True
                    self.ends += 1
                    self.closing.append(vanish(bus))
                else:
                    delivery.ack()

            bus.subscribe(PAGES, "parser", on_page, credits=99, on_dead=lambda page, error: ())
            self.buses.append(bus)
            await bus.start()
            return bus

        async def end(self, bus: KafkaBus) -> None:
            """What kill -9 leaves: connections closed, no word to the group."""
            self.buses.remove(bus)
            await asyncio.gather(*self.closing)
            await bus.producer.close(1)

    made = Rig()
    await admin.apply(made.config)
    yield made
    await asyncio.gather(*made.closing)
    for bus in made.buses:
        await bus.close()


@pytest.mark.parametrize("names", ["a", "ab"])
async def test_a_page_that_ends_its_member_is_put_aside(rig, names):
    """The same member begun again, or another one each time: all other pages are handled, this one is a dead letter
    with its bytes, after as many ends as it takes and no more."""
    operator = await rig.operator()
    for number in range(6):
        operator.publish(PAGES, 1, Page("j", b"", f"http://a.test/{number}"))
        operator.publish(PAGES, 2, Page("j", b"", f"http://b.test/{number}"))
    operator.publish(PAGES, 1, Page("j", b"k" * 16, POISON, body=b"<p>"))
    operator.publish(PAGES, 1, Page("j", b"", "http://a.test/last"))
    bus: Any = None
    for turn in range(CRASHES_TO_ISOLATE + MAX_CRASHES + 1):
        bus = await rig.parser(names[turn % len(names)])
        if turn < CRASHES_TO_ISOLATE + MAX_CRASHES:
            await until(lambda turn=turn: rig.ends == turn + 1)
            await rig.end(bus)
    await until(lambda: len(rig.dead) == 1 and len(rig.got) == 14)
    letter = rig.dead[0]
    assert (letter.url, letter.service, letter.topic, letter.partition) == (POISON, "parser", "pages", 1)
    assert letter.attempts == CRASHES_TO_ISOLATE + MAX_CRASHES
    assert rig.ends == CRASHES_TO_ISOLATE + MAX_CRASHES
    (frame,) = unseal(Page, letter.message, headers_of(Page))
    assert message_of(Page, frame).body == b"<p>"
    await until(lambda: bus.unacked == 0 and not bus.groups["parser"].inbox.isolation.active)
    await operator.publish(PAGES, 2, Page("j", b"", "http://b.test/later"))
    await until(lambda: rig.got["http://b.test/later"] == 1)


async def test_links_are_delivered_again_however_often_their_member_ends(rig):
    """Nobody would name what a dead letter of links loses: the member is begun again until it survives."""
    operator = await rig.operator()
    await operator.publish(OUTLINKS, 1, Outlinks("j", parent_url=POISON))
    kills = 2 * (CRASHES_TO_ISOLATE + MAX_CRASHES)
    for turn in range(kills + 1):
        bus = KafkaBus(msgspec.structs.replace(rig.config, name="s"), SystemClock())
        got: list[Delivery] = []
        bus.subscribe(OUTLINKS, "scheduler", got.append, credits=99)
        await bus.start()
        await until(lambda got=got: len(got) == 1)
        assert not bus.groups["scheduler"].inbox.isolation.active
        if turn < kills:
            await vanish(bus)
            await bus.producer.close(1)
    rig.buses.append(bus)
    got[0].ack()
    assert rig.dead == []


async def test_members_that_come_and_go_in_order_raise_no_suspicion(rig):
    """Closed with a page in hand, again and again: it is delivered as usual, with all others beside it."""
    operator = await rig.operator()
    await operator.publish(PAGES, 1, Page("j", b"", "http://a.test/slow"))
    for _ in range(CRASHES_TO_ISOLATE + 1):
        bus = KafkaBus(msgspec.structs.replace(rig.config, name="p"), SystemClock())
        held: list[Delivery] = []
        bus.subscribe(PAGES, "parser", held.append, credits=99, on_dead=lambda page, error: ())
        await bus.start()
        await until(lambda held=held: len(held) == 1)
        assert not bus.groups["parser"].inbox.isolation.active
        await bus.close()


async def test_a_starved_member_raises_no_suspicion(rig):
    """The group removes it while it holds a page, again and again: it lives, and says so when it joins again."""
    operator = await rig.operator()
    await operator.publish(PAGES, 1, Page("j", b"", "http://a.test/slow"))
    bus = KafkaBus(msgspec.structs.replace(rig.config, name="p"), SystemClock())
    held: list[Delivery] = []
    bus.subscribe(PAGES, "parser", held.append, credits=99, on_dead=lambda page, error: ())
    rig.buses.append(bus)
    await bus.start()
    group = bus.groups["parser"]
    for times in range(1, CRASHES_TO_ISOLATE + 1):
        await until(lambda times=times: len(group.held) == 4 and len(held) >= times)
        starve(group)
        await until(lambda times=times: group.evictions >= times)
    await until(lambda: len(group.held) == 4 and len(held) > CRASHES_TO_ISOLATE)
    assert not group.inbox.isolation.active
    assert bus.faults == []
    times = len(held)
    await operator.publish(PAGES, 1, Page("j", b"", "http://a.test/next"))
    await until(lambda: any(delivery.message.url.endswith("next") for delivery in held[times - 1 :]))


def starve(group: ConsumerGroup) -> None:
    """No CPU for longer than a session: the loop stands still, so no heartbeat is sent."""
    time.sleep(1.5 * group.config.session_s)


async def test_isolation_is_seen_and_other_partitions_go_on(rig):
    """A page that two members had when they ended is tried alone in its partition; readiness says so."""
    operator = await rig.operator()
    await operator.publish(PAGES, 1, Page("j", b"", POISON))
    for turn in range(CRASHES_TO_ISOLATE):
        bus = await rig.parser("p")
        await until(lambda turn=turn: rig.ends == turn + 1)
        await rig.end(bus)
    bus = KafkaBus(msgspec.structs.replace(rig.config, name="p"), SystemClock())
    held: list[Delivery] = []
    bus.subscribe(PAGES, "parser", held.append, credits=99, on_dead=lambda page, error: ())
    rig.buses.append(bus)
    await bus.start()
    await until(lambda: [delivery.message.url for delivery in held] == [POISON])
    ((kind, line),) = bus.faults
    assert kind == "isolation"
    assert "2 members ended in a row" in line
    assert "pages/1: the messages there are delivered one at a time, other partitions go on" in line
    metrics = {metric.name: metric for metric in METRICS}
    assert metrics["isolated_partitions"].read(bus) == {"parser": 1}
    assert metrics["evictions_total"].read(bus) == {"parser": 0}
    await operator.publish(PAGES, 2, Page("j", b"", "http://b.test/"))
    await until(lambda: len(held) == 2)
    held[0].ack()
    await until(lambda: not bus.faults)


@pytest.mark.parametrize("how", ["vanished", "closed"])
async def test_requests_never_come_again_however_their_reader_ended(rig, how):
    """Committed before they were delivered: what a dead member had in hand comes back by its lease alone. What was sent
    while nobody read is no suspect: it is delivered as any other."""
    operator = await rig.operator()
    config = msgspec.structs.replace(rig.config, commit_interval_s=60.0)
    first = KafkaBus(msgspec.structs.replace(config, name="d"), SystemClock())
    got: list[Delivery] = []
    first.subscribe(REQUESTS, "downloader", lambda d: (got.append(d.attempts), d.ack()), credits=99)
    await first.start()
    await operator.publish(REQUESTS, 1, FetchRequest("j", b"", "before"))
    await until(lambda: got == [1])
    if how == "vanished":
        await vanish(first)
        await first.producer.close(1)
    else:
        await first.close()
    await operator.publish(REQUESTS, 1, FetchRequest("j", b"", "meanwhile"))
    second = KafkaBus(msgspec.structs.replace(config, name="d"), SystemClock())
    rig.buses.append(second)
    again: list[tuple[str, int]] = []
    second.subscribe(REQUESTS, "downloader", lambda d: (again.append((d.message.url, d.attempts)), d.ack()), credits=9)
    await second.start()
    await until(lambda: len(second.held("downloader")) == 4)
    await operator.publish(REQUESTS, 1, FetchRequest("j", b"", "after"))
    await until(lambda: bool(again) and again[-1][0] == "after")
    assert again == [("meanwhile", 1), ("after", 1)]
