"""Receipts on the broker against rows: what is lost is named, and written again from its record."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import CrawlJob, Outcome, Receipt, Receipts, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, RECEIPTS, RECORDS
from nephila_tools.check.system import check_log

from tests.fake_kafka import PARTITIONS, FakeKafka, FakeKafkaBus


def key(number: int) -> bytes:
    """A URL of the partition `number` % PARTITIONS."""
    return bytes([64 * (number % PARTITIONS) + number]) * 16


@pytest.fixture
def bus() -> FakeKafkaBus:
    """Three pages of a job, the second fetched twice; one of a job that was deleted."""
    bus = FakeKafkaBus(FakeKafka(), ManualClock(), "check")
    for uid, deleted in (("a", False), ("b", False), ("b", True)):
        bus.publish(JOBS, 0, CrawlJob(uid, uid, deleted=deleted))
    for uid, number, fetch_no in (("a", 1, 1), ("a", 2, 1), ("a", 2, 2), ("a", 3, 1), ("b", 4, 1)):
        url = f"http://a.test/{number}"
        bus.publish(RECORDS, number % PARTITIONS, Record(uid, key(number), url, fetch_no, 1, Outcome.STORED))
        receipt = Receipt(key(number), fetch_no, Outcome.STORED)
        bus.publish(RECEIPTS, number % PARTITIONS, Receipts(uid, [receipt]))
    return bus


def rows(stored: dict[bytes, int]):
    return lambda uid, keys: {one: stored[one] for one in keys if one in stored}


async def test_nothing_is_lost_while_each_receipt_has_its_row(bus) -> None:
    (found,) = await check_log(bus, rows({key(1): 1, key(2): 2, key(3): 7}), repair=True)
    assert (found.job, found.ended, found.lost, found.sound) == ("a", 3, 0, True)
    assert len(bus.broker.all(RECORDS, 1)) == 1


@pytest.mark.parametrize("repair", [False, True])
async def test_a_missing_and_an_old_row_are_lost(bus, repair) -> None:
    (found,) = await check_log(bus, rows({key(2): 1, key(3): 1}), repair=repair)
    assert (found.lost, found.urls, found.repaired) == (2, ["http://a.test/1", "http://a.test/2"], 2 * repair)
    assert found.sound is repair
    again = [bus.broker.all(RECORDS, p)[-1].fetch_no for p in (1, 2)]
    assert again == [1, 2]
    assert [len(bus.broker.all(RECORDS, p)) for p in (1, 2, 3)] == [1 + repair, 2 + repair, 1]


async def test_a_lost_row_without_a_record_stays_lost(bus) -> None:
    """The broker has deleted it: the command must not say that all is well."""
    bus.broker.first[RECORDS.name, 1] = 1
    (found,) = await check_log(bus, rows({key(2): 2, key(3): 1}), repair=True)
    assert (found.lost, found.repaired, found.sound) == (1, 0, False)


@pytest.mark.parametrize("repair", [False, True])
async def test_a_receipt_that_was_forwarded_after_growth_counts_once(repair: bool) -> None:
    """It is on the partition before the split and on that of its URL; the record is where the parser had its page."""
    broker = FakeKafka()
    bus = FakeKafkaBus(broker, ManualClock(), "check")
    bus.publish(JOBS, 0, CrawlJob("a", "a"))
    moved, stayed = bytes([0x20]) * 16, bytes([0x01]) * 16
    for one in (moved, stayed):
        bus.publish(RECORDS, 0, Record("a", one, f"http://a.test/{one[0]}", 1, 1, Outcome.STORED))
        bus.publish(RECEIPTS, 0, Receipts("a", [Receipt(one, 1, Outcome.STORED)]))
    broker.grow(2 * PARTITIONS)
    bus.see_layout()
    assert [bus.layout.of(one) for one in (moved, stayed)] == [PARTITIONS, 0]
    bus.publish(RECEIPTS, PARTITIONS, Receipts("a", [Receipt(moved, 1, Outcome.STORED)]))
    (found,) = await check_log(bus, rows({}), repair=repair)
    assert (found.ended, found.lost, sorted(found.urls)) == (2, 2, ["http://a.test/1", "http://a.test/32"])
    assert found.repaired == 2 * repair
    assert len(bus.broker.all(RECORDS, PARTITIONS)) == repair


class _NotingBus(FakeKafkaBus):
    """Notes which partitions are read together."""

    def __init__(self, broker: FakeKafka) -> None:
        super().__init__(broker, ManualClock(), "check")
        self.calls: list[tuple[str, set[int]]] = []

    async def read(self, topic, ranges):
        self.calls.append((topic.name, set(ranges)))
        async for part in super().read(topic, ranges):
            yield part


@pytest.mark.parametrize(("lanes", "sets"), [(2, 2), (16, 16), (64, 16)])
async def test_a_lane_is_read_once_for_all_its_partitions(lanes, sets) -> None:
    """Also where there are fewer lanes than a check has sets of partitions, or more."""
    broker = FakeKafka(64, lanes=lanes)
    bus = _NotingBus(broker)
    bus.publish(JOBS, 0, CrawlJob("a", "a"))
    keys = [bytes([number]) * 16 for number in range(256)]
    for one in keys:
        partition = bus.layout.of(one)
        bus.publish(RECORDS, partition, Record("a", one, f"http://a.test/{one[0]}", 1, 1, Outcome.STORED))
        bus.publish(RECEIPTS, partition, Receipts("a", [Receipt(one, 1, Outcome.STORED)]))
    assert {bus.layout.of(one) for one in keys} == set(range(64))
    lost = {one for one in keys if one[0] % 3 == 0}
    (found,) = await check_log(bus, rows(dict.fromkeys(set(keys) - lost, 1)), repair=True)
    assert (found.ended, found.lost, found.repaired) == (256, len(lost), len(lost))
    for topic in (RECEIPTS, RECORDS):
        read = [{partition % lanes for partition in together} for name, together in bus.calls if name == topic.name]
        assert len(read) == sets
        assert sorted(lane for together in read for lane in together) == list(range(lanes))
    again = [record for p in range(64) for record in broker.all(RECORDS, p)[4:]]
    assert {record.url_key for record in again} == lost
