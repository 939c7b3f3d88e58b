"""Logs that are read again, over a real broker: bounds, ranges, what was deleted, what cannot be read."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from nephila.kernel.messages import FetchRequest, FrontierClaim, FrontierCommit, FrontierRecord
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.kernel.topics import FRONTIER, REQUESTS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus

from tests.contracts.buses import config_for
from tests.queue_rows import queue_row
from tests.waits import until


@pytest.fixture
async def bus(broker):
    """A member without groups."""
    config = config_for(broker)
    await admin.apply(config)
    bus = KafkaBus(msgspec.structs.replace(config, name="owner"), SystemClock())
    await bus.start()
    yield bus
    await bus.close()


def commit(sequence: int, size: int = 10) -> FrontierRecord:
    """A commit of a URL so long."""
    url = queue_row("j", bytes(16), "http://a.test/" + "x" * size, "a.test")
    return FrontierRecord(None, FrontierCommit(1, 0, sequence, [url]))


async def read(bus: KafkaBus, ranges: dict[int, tuple[int, int]]) -> dict[int, list[tuple[int, int]]]:
    """Partition → (offset, sequence) of its commits."""
    found: dict[int, list[tuple[int, int]]] = {}
    async for partition, records in bus.read(FRONTIER, ranges):
        found.setdefault(partition, []).extend((at, one.commit.sequence) for at, one in records if one.commit)
    return found


async def test_a_range_is_read_in_order_and_no_more(bus):
    """Offsets are those that were said when each was taken; several messages of one record share theirs."""
    await bus.publish(FRONTIER, 1, FrontierRecord(FrontierClaim("owner", 1.0, 2.0)))
    assert bus.last_offset(FRONTIER, 1) == 0
    assert bus.last_offset(FRONTIER, 2) == -1
    offsets = []
    for sequence in range(1, 6):
        await bus.publish(FRONTIER, 1, commit(sequence, 200_000))
        offsets.append(bus.last_offset(FRONTIER, 1))
    together = [bus.publish(FRONTIER, 1, commit(sequence)) for sequence in (6, 7)]
    for receipt in together:
        await receipt
    assert offsets == [1, 2, 3, 4, 5]
    assert await bus.bounds(FRONTIER, [1, 2]) == {1: (0, 7), 2: (0, 0)}
    assert await read(bus, {1: (0, 7), 2: (0, 0)}) == {1: [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (6, 7)]}
    assert await read(bus, {1: (2, 4)}) == {1: [(2, 2), (3, 3)]}
    await bus.delete_before(FRONTIER, {1: 3})
    assert await bus.bounds(FRONTIER, [1]) == {1: (3, 7)}
    assert await read(bus, {1: (3, 5)}) == {1: [(3, 3), (4, 4)]}
    with pytest.raises(TemporaryError, match=r"frontier/1: the beginning of the log was deleted while it was read"):
        await read(bus, {1: (1, 7)})


async def test_bytes_that_are_no_commit_are_refused(bus):
    """A frontier with a hole loses URLs: the line names the state."""
    producer = AIOKafkaProducer(bootstrap_servers=bus.config.bootstrap)
    await producer.start()
    try:
        await producer.send_and_wait(f"{bus.config.prefix}{FRONTIER.name}", b"\xff\xff", partition=1)
    finally:
        await producer.stop()
    with pytest.raises(UserError, match=r"frontier/1 at 0 cannot be read: no Envelope"):
        await read(bus, {1: (0, 1)})


async def test_a_broker_that_is_away_is_temporary(bus):
    """Whoever asks tries again."""
    bus._log_reader._config = msgspec.structs.replace(bus.config, bootstrap="127.0.0.1:1")
    with pytest.raises(TemporaryError):
        await bus.bounds(FRONTIER, [1])
    with pytest.raises(TemporaryError):
        await bus.delete_before(FRONTIER, {1: 0})


async def test_what_another_group_has_read_whole(broker):
    """Of partitions with requests that nobody has taken it is not said, nor as long as the group was never there."""
    config = config_for(broker)
    await admin.apply(config)
    owner = KafkaBus(msgspec.structs.replace(config, name="owner"), SystemClock())
    await owner.start()
    await owner.publish(REQUESTS, 1, FetchRequest("j", b"", "a"))
    with contextlib.suppress(TemporaryError):  # a broker that has had no group at all cannot say
        assert await owner.read_up_to("downloader", REQUESTS, {1: 1}) == frozenset()
    reader = KafkaBus(msgspec.structs.replace(config, name="reader"), SystemClock())
    taken: list[str] = []
    reader.subscribe(REQUESTS, "downloader", lambda d: (taken.append(d.message.url), d.ack()), credits=9)
    await reader.start()
    await until(lambda: taken == ["a"])
    assert await owner.read_up_to("downloader", REQUESTS, {1: 1}) == {1}
    await reader.close()
    await owner.publish(REQUESTS, 1, FetchRequest("j", b"", "b"))
    assert await owner.read_up_to("downloader", REQUESTS, {1: 2}) == frozenset()
    await owner.close()
