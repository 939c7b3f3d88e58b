"""The topic `changes` over Kafka: published behind the commit, repeated with the same ids after a crash."""

from __future__ import annotations

from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import CHANGES, RECORDS
from nephila.native import partition_of
from nephila.storage.config import StorageConfig
from nephila.storage.service import build

from tests.storage.storage_rig import key, record, rows


async def publish(directory, *records):
    """A storage that makes these records durable; returns (partition, change), and whether each record was acked
    before and after the subscriber acked its changes."""
    clock = ManualClock()
    bus = LocalBus(clock)
    got = []
    one = build(StorageConfig(directory=directory, fsync=False), bus, clock, publish_changes=True)
    bus.subscribe(CHANGES, "subscriber", got.append, credits=100)
    await one.start()
    receipts = [bus.publish(RECORDS, 0, item) for item in records]
    await one.flush()
    before = [receipt.done for receipt in receipts]
    found = [(delivery.partition, delivery.message) for delivery in got]
    for delivery in got:
        delivery.ack()
    after = [receipt.done for receipt in receipts]
    await one.close()
    return found, before, after


async def test_a_record_is_acked_after_its_change_was_taken(tmp_path):
    """On the partition of the URL, with the id of the table."""
    found, before, after = await publish(tmp_path, record(1), record(2))
    assert [(change.url_key, change.change) for _, change in found] == [(key(1), "new"), (key(2), "new")]
    assert [partition for partition, _ in found] == [partition_of(key(1), 64), partition_of(key(2), 64)]
    assert [change.id for _, change in found] == [row["id"] for row in rows(tmp_path, "changes", "seq")]
    assert (before, after) == ([False, False], [True, True])


async def test_a_record_delivered_again_repeats_its_change_with_the_same_id(tmp_path):
    """The program ended between the commit and the topic; the table has the change once."""
    first, _, _ = await publish(tmp_path, record(1), record(1, 2, text=b"other", text_hash=b"12345678"))
    again, _, after = await publish(tmp_path, record(1, 2), record(2))
    assert [change.change for _, change in first] == ["new", "changed"]
    assert [(change.id, change.diff) for _, change in again[:1]] == [(first[1][1].id, first[1][1].diff)]
    assert [change.url_key for _, change in again] == [key(1), key(2)]
    assert after == [True, True]
    assert len(rows(tmp_path, "changes", "seq")) == 3
