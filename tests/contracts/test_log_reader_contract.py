"""The contract of a `LogReader`, over a real broker and over the Kafka in memory."""

from __future__ import annotations

import pytest
from nephila.kernel.bus.contract import Delivery, newest
from nephila.kernel.messages import FetchRequest, FrontierCommit, FrontierRecord, Seed, Setting
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import FRONTIER, REQUESTS, SEEDS, SETTINGS

from tests.contracts.buses import FakeKafkaRig, KafkaRig
from tests.queue_rows import queue_row


@pytest.fixture(params=["fake-kafka", "kafka"])
async def rig(request):
    """A bus over a log."""
    made = KafkaRig(request.getfixturevalue("broker"), name="owner") if request.param == "kafka" else FakeKafkaRig()
    yield made
    await made.close()


def commit(sequence: int) -> FrontierRecord:
    """A commit of one URL."""
    return FrontierRecord(None, FrontierCommit(1, 0, sequence, [queue_row("j", bytes(16), "http://a.test/", "a.test")]))


async def publish(rig, topic, message) -> int:
    """Publish on partition 1; returns the offset."""
    receipt = rig.bus.publish(topic, 1, message)
    await rig.until(lambda: receipt.done)
    return rig.bus.last_offset(topic, 1)


async def read(rig, start: int, end: int) -> list[tuple[int, int]]:
    """(offset, sequence) of the commits in a range of partition 1."""
    found: list[tuple[int, int]] = []
    async for partition, records in rig.bus.read(FRONTIER, {1: (start, end), 2: (0, 0)}):
        assert partition == 1
        found += [(at, one.commit.sequence) for at, one in records]
    return found


async def test_a_range_is_read_in_order_and_no_more(rig):
    """Offsets count from the first record; a deleted beginning cannot be read."""
    await rig.start()
    assert rig.bus.member == "owner"
    assert rig.bus.last_offset(FRONTIER, 1) == -1
    assert [await publish(rig, FRONTIER, commit(sequence)) for sequence in range(1, 6)] == [0, 1, 2, 3, 4]
    assert await rig.bus.bounds(FRONTIER, [1, 2]) == {1: (0, 5), 2: (0, 0)}
    assert await read(rig, 0, 5) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert await read(rig, 1, 3) == [(1, 2), (2, 3)]
    await rig.bus.delete_before(FRONTIER, {1: 2})
    assert await rig.bus.bounds(FRONTIER, [1]) == {1: (2, 5)}
    assert await read(rig, 2, 4) == [(2, 3), (3, 4)]
    with pytest.raises(TemporaryError, match=r"frontier/1: the beginning of the log was deleted while it was read"):
        await read(rig, 0, 5)


async def test_a_compacted_topic_is_read_whole(rig):
    """The broker has removed the first records, which later ones replace: the newest of each key are left."""
    await rig.start()
    assert await newest(rig.bus, SETTINGS) == {}
    for name, value in (("a", b"1"), ("a", b"2"), ("b", b"1"), ("a", b"3"), ("c", b"1")):
        receipt = rig.bus.publish(SETTINGS, 0, Setting(name, value))
        await rig.until(lambda receipt=receipt: receipt.done)
    before = await newest(rig.bus, SETTINGS)
    await rig.compact(SETTINGS, Setting("c", b"1"))
    assert {name: setting.value for name, setting in before.items()} == {"a": b"3", "b": b"1", "c": b"1"}
    assert await newest(rig.bus, SETTINGS) == before
    (bounds,) = (await rig.bus.bounds(SETTINGS, [0])).values()
    offsets = [offset async for _, records in rig.bus.read(SETTINGS, {0: bounds}) for offset, _ in records]
    assert offsets == sorted(offsets)
    assert offsets[0] > 0


async def test_a_group_has_read_a_log_once_it_has_acked(rig):
    """Delivered and not acked is not read; records published after the question count for the next one."""
    taken: list[Delivery] = []
    rig.bus.subscribe(SEEDS, "scheduler", taken.append, credits=9)
    await rig.start()
    await publish(rig, SEEDS, Seed("j", "a"))
    await rig.until(lambda: len(taken) == 1)
    ends = await rig.bus.end_offsets((SEEDS,))
    assert not await rig.bus.has_read_to("scheduler", ends)
    assert await rig.bus.read_up_to("scheduler", SEEDS, {1: 1}) == frozenset()
    assert (await rig.bus.committed("scheduler", SEEDS, [1, 2])).get(1, 0) == 0
    taken[0].ack()
    await read_to(rig, "scheduler", ends)
    assert await rig.bus.read_up_to("scheduler", SEEDS, {1: 1}) == {1}
    assert (await rig.bus.committed("scheduler", SEEDS, [1, 2]))[1] == 1
    await publish(rig, SEEDS, Seed("j", "b"))
    assert await rig.bus.has_read_to("scheduler", ends)
    assert await rig.bus.read_up_to("scheduler", SEEDS, {1: 2}) == frozenset()


async def test_a_leased_topic_is_read_once_delivered(rig):
    """A lease brings the message again, not its offset."""
    taken: list[Delivery] = []
    rig.bus.subscribe(REQUESTS, "downloader", taken.append, credits=9)
    await rig.start()
    await publish(rig, REQUESTS, FetchRequest("j", b"", "a"))
    await rig.until(lambda: len(taken) == 1)
    await read_to(rig, "downloader", await rig.bus.end_offsets((REQUESTS,)))
    assert not taken[0].acked


async def read_to(rig, group, ends) -> None:
    """Wait for the commit of the group; over a broker it comes within an interval."""
    for _ in range(1000):
        if await rig.bus.has_read_to(group, ends):
            return
        await rig.settle()
    raise AssertionError("the group did not commit")
