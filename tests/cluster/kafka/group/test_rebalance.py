"""Members come, go and die on a real broker: only the ring's partitions move, and nothing is lost or given twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import Receipts, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import RECEIPTS, SEEDS, Topic
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer import consumer_group, start_position

from tests.contracts.buses import config_for
from tests.waits import until

PARTITIONS = 16


class Member:
    """A program of its own as far as the broker can tell; it acks what it gets unless told to hold it."""

    def __init__(
        self, config: KafkaConfig, name: str, log: list[tuple[str, int, int]], topics: tuple[Topic, ...]
    ) -> None:
        self.name = name
        self.bus = KafkaBus(msgspec.structs.replace(config, name=name), SystemClock())
        self.log = log
        self.hold: set[int] = set()
        self.held: list[Delivery] = []
        self.calls: list[tuple[str, frozenset[int]]] = []
        handlers = {SEEDS: self._take, RECEIPTS: lambda delivery: delivery.ack()}
        for topic in topics:
            self.bus.subscribe(topic, "scheduler", handlers[topic], credits=100_000)
        self.bus.watch_partitions("scheduler", self)

    def _take(self, delivery: Delivery) -> None:
        self.log.append((self.name, delivery.partition, int(delivery.message.url)))
        if delivery.partition in self.hold:
            self.held.append(delivery)
        else:
            delivery.ack()

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        self.calls.append(("on_assigned", partitions))

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        self.calls.append(("leaving", partitions))
        for delivery in self.held:
            delivery.ack()

    def on_lost(self, partitions: frozenset[int]) -> None:
        self.calls.append(("lost", partitions))

    @property
    def partitions(self) -> frozenset[int]:
        """What it reads now."""
        return self.bus.held("scheduler")


class Stream:
    """Numbers, rising on each partition, published all the time."""

    def __init__(self, bus: KafkaBus) -> None:
        self.bus = bus
        self.sent: Counter[int] = Counter()
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            for p in range(PARTITIONS):
                self.bus.publish(SEEDS, p, Seed("j", str(self.sent[p])))
                self.sent[p] += 1
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await until(lambda: self.bus.producer.unsent == 0)


@pytest.fixture
async def group(broker):
    """Makes members of one group and ends them."""
    config = config_for(broker, partitions=PARTITIONS)
    await admin.apply(config)
    log: list[tuple[str, int, int]] = []
    members: list[Member] = []

    async def join(name: str, topics: tuple[Topic, ...] = (SEEDS, RECEIPTS), **settings: Any) -> Member:
        member = Member(msgspec.structs.replace(config, **settings), name, log, topics)
        members.append(member)
        await member.bus.start()
        return member

    join.log = log
    yield join
    await asyncio.gather(*(member.bus.close() for member in members))


async def settled(*members: Member) -> None:
    """All partitions are read, each by one of these."""
    await until(lambda: sum(len(m.partitions) for m in members) == PARTITIONS and all(m.partitions for m in members))


def unbroken(log: list[tuple[str, int, int]], sent: Counter[int]) -> None:
    """Each number of each partition came once, in order, from whichever member."""
    seen: dict[int, list[int]] = {}
    for _, p, number in log:
        seen.setdefault(p, []).append(number)
    assert {p: len(numbers) for p, numbers in seen.items()} == dict(sent)
    assert all(numbers == list(range(len(numbers))) for numbers in seen.values())


async def test_a_join_and_a_leave_move_only_the_rings_partitions(group):
    """Three members become four and two while messages flow: kept partitions stay, every message comes once."""
    a, b, c = await group("a"), await group("b"), await group("c")
    await settled(a, b, c)
    stream = Stream(a.bus)
    await until(lambda: len(group.log) > 200)
    before = {m.name: m.partitions for m in (a, b, c)}
    for m in (a, b, c):
        m.calls.clear()
    d = await group("d")
    await settled(a, b, c, d)
    assert all(m.partitions <= before[m.name] for m in (a, b, c))
    assert len(d.partitions) == PARTITIONS // 4
    moved = {m.name: before[m.name] - m.partitions for m in (a, b, c)}
    for m in (a, b, c):
        result = [partitions for call, partitions in m.calls if call == "leaving"]
        assert frozenset().union(*result) == moved[m.name]
    before = {m.name: m.partitions for m in (a, b, d)}
    await c.bus.close()
    await settled(a, b, d)
    assert all(m.partitions >= before[m.name] for m in (a, b, d))
    await stream.stop()
    await until(lambda: len(group.log) >= stream.sent.total())
    unbroken(group.log, stream.sent)


async def test_work_on_kept_partitions_goes_on_and_is_not_repeated(group):
    """What is in hand and unacked when another member joins is delivered once, and acked afterwards."""
    a = await group("a")
    a.hold = set(range(PARTITIONS))
    stream = Stream(a.bus)
    await until(lambda: len(a.held) > 100)
    await stream.stop()
    await until(lambda: len(group.log) == stream.sent.total())
    b = await group("b")
    await settled(a, b)
    for delivery in a.held:
        delivery.ack()
    receipt = a.bus.publish(SEEDS, min(a.partitions), Seed("j", str(stream.sent[min(a.partitions)])))
    stream.sent[min(a.partitions)] += 1
    await until(lambda: receipt.done and len(group.log) == stream.sent.total())
    unbroken(group.log, stream.sent)


async def test_a_dead_members_partitions_go_to_the_others_with_what_was_unacked(group):
    """After the session the others have them and get again what the dead one had not acked; the rest stays."""
    a, b = await group("a"), await group("b")
    await settled(a, b)
    b.hold = set(range(PARTITIONS))
    kept = a.partitions
    for p in range(PARTITIONS):
        b.bus.publish(SEEDS, p, Seed("j", "0"))
    await until(lambda: len(group.log) == PARTITIONS)
    await b.bus.producer.close(1)
    await vanish(b.bus)
    await until(lambda: len(a.partitions) == PARTITIONS)
    await until(lambda: {p for name, p, _ in group.log if name == "a"} == set(range(PARTITIONS)))
    assert Counter(p for name, p, _ in group.log if name == "a" and p in kept) == dict.fromkeys(kept, 1)


def vanish(bus: KafkaBus) -> asyncio.Task[None]:
    """As kill -9: every task ends where it is, no word to the broker. The task ends when the connections are closed:
    one that is open when the loop of its test ends is a ResourceWarning of a later test."""
    consumers = []
    for one in bus.groups.values():
        for task in set(one._tasks):
            task.cancel()
        coordinator = one.consumer._coordinator
        one.consumer, gone = None, one.consumer
        coordinator._heartbeat_task.cancel()
        coordinator._coordination_task.cancel()
        gone._closed = True
        consumers.append(gone)

    async def disconnect() -> None:
        for consumer in consumers:
            await consumer._fetcher.close()
            await consumer._client.close()

    return asyncio.ensure_future(disconnect())


async def test_a_restart_under_the_same_name_moves_nothing(group):
    """The others' partitions stay, and the member is back with its own."""
    a, b = await group("a"), await group("b")
    await settled(a, b)
    before = a.partitions, b.partitions
    await b.bus.close()
    await until(lambda: len(a.partitions) == PARTITIONS)
    again = await group("b")
    await settled(a, again)
    assert len(again.partitions) == len(before[1])


async def test_a_member_that_reads_other_topics_after_its_crash_gets_its_partitions(group):
    """The broker would answer with the assignment of before, which names a topic that is not subscribed any more."""
    before = await group("a")
    await settled(before)
    await vanish(before.bus)
    after = await group("a", topics=(SEEDS,))
    await settled(after)
    assert after.bus.unsettled == ""


async def test_two_members_with_one_name(group):
    """One of them, mostly the older, is told in one line that its name is taken, and ends; the other has everything."""
    result: list[tuple[Member, str]] = []

    async def begin() -> Member:
        member = await group("a")
        member.bus.on_fatal = lambda error: result.append((member, str(error)))
        return member

    a = await begin()
    await until(lambda: len(a.partitions) == PARTITIONS)
    b = await begin()
    await until(lambda: bool(result))
    loser, line = result[0]
    assert "has the name 'a'" in line
    await until(lambda: any(call == "lost" for call, _ in loser.calls))
    await loser.bus.close()
    winner = b if loser is a else a
    await until(lambda: len(winner.partitions) == PARTITIONS)


async def test_who_cannot_work_gives_its_partitions_up_and_gets_its_share_again(group):
    """In order, as at a join; a member is unsettled until what it was promised is open."""
    a, b = await group("a"), await group("b")
    assert "group scheduler" in b.bus.unsettled
    await settled(a, b)
    await until(lambda: not (a.bus.unsettled or b.bus.unsettled))
    b.bus.set_able(False)
    await until(lambda: len(a.partitions) == PARTITIONS)
    assert "leaving" in [call for call, _ in b.calls]
    assert "lost" not in [call for call, _ in b.calls]
    b.bus.set_able(True)
    await settled(a, b)


async def test_what_leaves_before_it_is_open_is_not_taken_over(group, monkeypatch):
    """The service was told that it leaves when it had nothing of it: told afterwards that it is here, it would claim
    what is another's."""
    slow = asyncio.Event()

    async def start_positions(consumer, *arguments):
        found = await start_position.start_positions(consumer, *arguments)
        if consumer._client._client_id == "nephila-a":
            await slow.wait()
        return found

    monkeypatch.setattr(consumer_group, "start_positions", start_positions)
    a = await group("a")
    b = await group("b")
    await until(lambda: len(b.partitions) == PARTITIONS // 2)
    assert a.partitions == frozenset()
    slow.set()
    await until(lambda: len(a.partitions) == PARTITIONS // 2)
    gained = frozenset().union(*(partitions for call, partitions in a.calls if call == "on_assigned"))
    assert not gained & b.partitions


async def test_receipts_follow_the_same_partitions(group):
    """All topics of a group go to the member that has the partition number."""
    a, b = await group("a"), await group("b")
    await settled(a, b)
    for member in (a, b):
        topics = {tp.topic for tp in member.bus.groups["scheduler"].inbox.partition_states}
        assert len(topics) == 2
        for topic in topics:
            mine = {tp.partition for tp in member.bus.groups["scheduler"].inbox.partition_states if tp.topic == topic}
            assert mine == member.partitions
    await a.bus.publish(RECEIPTS, 0, Receipts("j"))
