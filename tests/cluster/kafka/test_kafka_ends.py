"""How far a whole group has read, and what goes only after something else: over a real broker."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import Outlinks, Record, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import PermanentError, TemporaryError
from nephila.kernel.topics import OUTLINKS, RECORDS, SEEDS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus

from tests.contracts.buses import config_for
from tests.waits import until

GROUP = "scheduler"


class Member:
    """A bus that reads seeds and links, and acks when the test lets it."""

    def __init__(self, config, name: str) -> None:
        self.bus = KafkaBus(msgspec.structs.replace(config, name=name), SystemClock())
        self.held: list[Delivery] = []
        for topic in (SEEDS, OUTLINKS):
            self.bus.subscribe(topic, GROUP, self.held.append, credits=1000)

    def ack(self) -> None:
        """Everything that was delivered."""
        for delivery in self.held:
            delivery.ack()


@pytest.fixture
async def members(broker):
    """Two that share four partitions."""
    config = config_for(broker)
    await admin.apply(config)
    found = [Member(config, f"m-{n}") for n in range(2)]
    for member in found:
        await member.bus.start()
    await until(lambda: [len(member.bus.held(GROUP)) for member in found] == [2, 2])
    yield found
    for member in found:
        await member.bus.close()


async def has_committed_to(bus: KafkaBus, ends: object) -> bool:
    """What is committed becomes known after a while."""
    await until(lambda: bus.has_read_to(GROUP, ends))
    return True


async def test_ends_are_passed_when_all_members_have_committed(members):
    """Of partitions that are another member's, too; what comes later is not asked for."""
    one, other = members
    assert await one.bus.end_offsets((SEEDS, OUTLINKS)) == {}
    assert await one.bus.has_read_to(GROUP, {})
    for partition in range(4):
        await one.bus.publish(SEEDS, partition, Seed("j", "http://a.test/"))
    await one.bus.publish(OUTLINKS, 2, Outlinks("j"))
    ends = await one.bus.end_offsets((SEEDS, OUTLINKS))
    assert sorted(ends.values()) == [1] * 5
    await until(lambda: len(one.held) + len(other.held) == 5)
    one.ack()
    assert not await one.bus.has_read_to(GROUP, ends)
    other.ack()
    assert await has_committed_to(one.bus, ends)
    assert await has_committed_to(other.bus, ends)
    await one.bus.publish(SEEDS, 0, Seed("j", "http://b.test/"))
    assert await one.bus.has_read_to(GROUP, ends)
    assert not await one.bus.has_read_to(GROUP, await one.bus.end_offsets((SEEDS, OUTLINKS)))


async def test_without_a_consumer_it_is_not_known(members):
    """It is being begun anew: an answer for later."""
    (group,) = members[0].bus.groups.values()
    consumer, group.consumer = group.consumer, None
    with pytest.raises(TemporaryError):
        await members[0].bus.has_read_to(GROUP, {})
    group.consumer = consumer


async def test_what_is_to_come_after_something_waits_for_it(members):
    """Its receipt, too; and whether it can travel at all is said at once."""
    bus = members[0].bus
    links = [bus.publish(OUTLINKS, partition, Outlinks("j")) for partition in (0, 1)]
    record = bus.publish_after(links, RECORDS, 3, Record("j"))
    assert not any(queue.waiting for queue in bus.producer._queues.values() if queue.topic is RECORDS)
    with pytest.raises(PermanentError):
        bus.publish_after(links, RECORDS, 3, Record("j", title="\ud800"))
    await record
    assert all(link.done for link in links)
    await bus.publish_after(links, RECORDS, 3, Record("j"))
    assert bus.producer.unsent == 0
