"""Messages of one loop turn for one partition are one record, and each of them is handled by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import Frame, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import DEAD, SEEDS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.wire import frame_of, headers_of, message_of, seal, unseal

from tests.cluster.kafka.group.test_rebalance import vanish
from tests.contracts.buses import config_for
from tests.waits import until


@pytest.fixture
async def rig(broker):
    """Makes buses on topics of the test's own; ends them."""

    class Rig:
        def __init__(self) -> None:
            self.config = config_for(broker, session_s=1.0)
            self.buses: list[KafkaBus] = []
            self.got: list[str] = []
            self.dead: list[Any] = []

        def bus(self, name: str, unacked: str = "", **settings: Any) -> KafkaBus:
            """A member that acks all URLs but one."""
            bus = KafkaBus(msgspec.structs.replace(self.config, name=name, **settings), SystemClock())

            def on_seed(delivery: Delivery) -> None:
                self.got.append(delivery.message.url)
                if delivery.message.url != unacked:
                    delivery.ack()

            bus.subscribe(SEEDS, "reader", on_seed, credits=99)
            bus.subscribe(DEAD, "undertaker", lambda d: (self.dead.append(d.message), d.ack()), credits=9)
            self.buses.append(bus)
            return bus

        async def raw(self, value: bytes, headers: list[tuple[str, bytes]]) -> None:
            """A record on partition 1."""
            producer = AIOKafkaProducer(bootstrap_servers=self.config.bootstrap)
            await producer.start()
            try:
                await producer.send_and_wait(f"{self.config.prefix}seeds", value, None, 1, headers=headers)
            finally:
                await producer.stop()

    made = Rig()
    await admin.apply(made.config)
    yield made
    await asyncio.gather(*(bus.close() for bus in made.buses))


async def records(bus: KafkaBus) -> int:
    """Records on partition 1."""
    first, last = (await bus.bounds(SEEDS, [1]))[1]
    return last - first


async def test_a_turn_is_a_record_and_a_large_message_has_its_own(rig):
    """In order all the same."""
    bus = rig.bus("a", batch_bytes=500)
    await bus.start()
    texts = ["1", "2", "x" * 900, "y" * 900, "3", "4"]
    receipts = [bus.publish(SEEDS, 1, Seed("j", text)) for text in texts]
    await until(lambda: rig.got == texts)
    assert all(receipt.done for receipt in receipts)
    assert await records(bus) == 4


async def test_one_bad_message_in_the_middle_is_one_dead_letter(rig):
    """Of an earlier number of the format, too. The others are handled once; a restart brings nothing again."""
    bus = rig.bus("a")
    await bus.start()
    good = [frame_of(Seed, Seed("j", url)) for url in "ab"]
    bad = Frame(b"\xff\xfe no message")
    await rig.raw(seal([good[0], bad, good[1]]), [("v", b"1"), headers_of(Seed)[1]])
    await until(lambda: rig.got == ["a", "b"] and len(rig.dead) == 1)
    assert unseal(Seed, rig.dead[0].message, headers_of(Seed)) == [bad]
    rig.buses.remove(bus)
    await bus.close()
    again = rig.bus("a")
    await again.start()
    again.publish(SEEDS, 1, Seed("j", "c"))
    await until(lambda: rig.got == ["a", "b", "c"])
    assert len(rig.dead) == 1


async def test_an_end_between_two_messages_repeats_their_record(rig):
    """What was acked of it comes again with the rest: readers are idempotent. No other record does."""
    bus = rig.bus("a", unacked="3")
    await bus.start()
    await bus.publish(SEEDS, 1, Seed("j", "0"))
    for url in "123":
        bus.publish(SEEDS, 1, Seed("j", url))
    await until(lambda: rig.got == ["0", "1", "2", "3"])
    assert await records(bus) == 2
    await bus.groups["reader"].commit()
    rig.buses.remove(bus)
    await vanish(bus)
    await bus.producer.close(1)
    rig.got.clear()
    await rig.bus("a").start()
    await until(lambda: len(rig.got) >= 3)
    assert rig.got == ["1", "2", "3"]


async def test_a_replayed_letter_is_one_message(rig):
    """A handler that refuses one message of a record: its letter holds that one alone."""
    bus = KafkaBus(msgspec.structs.replace(rig.config, name="b"), SystemClock())
    rig.buses.append(bus)

    def on_seed(delivery: Delivery) -> None:
        if delivery.message.url == "bad":
            raise ValueError("bad")
        rig.got.append(delivery.message.url)
        delivery.ack()

    bus.subscribe(SEEDS, "reader", on_seed, credits=99)
    bus.subscribe(DEAD, "undertaker", lambda d: (rig.dead.append(d.message), d.ack()), credits=9)
    await bus.start()
    for url in ("a", "bad", "b"):
        bus.publish(SEEDS, 1, Seed("j", url))
    await until(lambda: rig.got == ["a", "b"] and len(rig.dead) == 1)
    assert [message_of(Seed, frame).url for frame in unseal(Seed, rig.dead[0].message, headers_of(Seed))] == ["bad"]
