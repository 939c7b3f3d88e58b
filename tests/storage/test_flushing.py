"""When records become durable."""

from __future__ import annotations

import asyncio

from nephila.kernel import messages as m

from tests.storage.storage_rig import JOB, Rig, key, record, rows, running


async def test_a_record_is_receipted_and_acked_once_it_is_durable(tmp_path):
    """The row is in the database before its receipt and its acknowledgement."""
    async with running(tmp_path) as rig:
        (receipt,) = rig.send(record(1), partition=7)
        assert not receipt.done
        assert rig.storage.buffered == 1
        await rig.storage.flush()
        assert rig.receipts == [(7, JOB, key(1), 1, m.Outcome.STORED)]
        assert receipt.done
        assert rig.storage.buffered == 0
        assert rig.storage.outcomes == {"stored": 1}
        assert [row["url"] for row in rows(tmp_path)] == ["http://h1.test/p/1.html"]
        assert rig.bus.unacked == 0


async def test_a_full_batch_is_flushed_without_waiting(tmp_path):
    """batch_rows records start a flush without a timer."""
    async with running(tmp_path, batch_rows=4) as rig:
        receipts = rig.send(*(record(n) for n in range(4)))
        await receipts[-1]
        assert len(rows(tmp_path)) == 4


async def test_many_bytes_are_flushed_without_waiting(tmp_path):
    """batch_bytes of text start a flush as well."""
    async with running(tmp_path, batch_bytes=1000) as rig:
        (receipt,) = rig.send(record(1, text=b"x" * 1000))
        await receipt
        assert len(rows(tmp_path)) == 1


async def test_a_single_record_waits_for_the_interval_only(tmp_path):
    """The timer starts with the first waiting record."""
    async with running(tmp_path, flush_interval_s=0.25) as rig:
        (receipt,) = rig.send(record(1))
        rig.clock.advance(0.2)
        await asyncio.sleep(0)
        assert rig.storage.buffered == 1
        rig.clock.advance(0.05)
        await receipt
        assert rig.storage.buffered == 0


async def test_receipts_are_gathered_per_job_and_partition(tmp_path):
    """One message per (job, partition) of a flush."""
    async with running(tmp_path) as rig:
        rig.send(record(1), record(2), partition=1)
        rig.send(record(3), partition=2)
        rig.send(record(4, job="other"), partition=2)
        await rig.storage.flush()
        assert [(partition, job) for partition, job, *_ in rig.receipts] == [(1, JOB), (1, JOB), (2, JOB), (2, "other")]


async def test_records_beyond_the_credits_wait_in_the_bus_and_are_all_written(tmp_path):
    """Credits bound the records held; acknowledgements admit the others."""
    async with running(tmp_path, credits=8, batch_rows=8) as rig:
        receipts = rig.send(*(record(n) for n in range(50)))
        assert rig.storage.buffered == 8
        rig.clock.advance(1)
        while not all(receipt.done for receipt in receipts):
            await rig.storage.flush()
        assert len(rows(tmp_path)) == 50


async def test_records_that_come_before_the_start_are_kept(tmp_path):
    """build() subscribes, start() writes."""
    rig = Rig(tmp_path / "new" / "deep")
    rig.send(record(1))
    await rig.storage.start()
    await rig.storage.flush()
    await rig.storage.close()
    assert len(rows(tmp_path / "new" / "deep")) == 1


async def test_drain_makes_durable_what_was_taken(tmp_path):
    """After drain no record is buffered, and close leaves a single file."""
    async with running(tmp_path) as rig:
        rig.send(*(record(n) for n in range(300)))
        await rig.storage.drain(5.0)
        assert rig.storage.buffered == 0
    assert len(rows(tmp_path)) == 300
    assert not (tmp_path / "nephila.db-wal").exists()


async def test_the_log_is_copied_into_the_database_while_running(tmp_path):
    """The write-ahead log stays near wal_bytes for any amount of data."""
    async with running(tmp_path, wal_bytes=200_000, batch_rows=16) as rig:
        for start in range(0, 400, 16):
            rig.send(*(record(n, text=b"x" * 10_000) for n in range(start, start + 16)))
            await rig.storage.flush()
        assert (tmp_path / "nephila.db-wal").stat().st_size < 1_000_000
    assert len(rows(tmp_path)) == 400


async def test_a_record_without_identity_is_a_dead_letter(tmp_path):
    """A record without a key does not reach the database and does not stop the next one."""
    async with running(tmp_path) as rig:
        rig.send(m.Record(url="http://x/", outcome=m.Outcome.STORED), record(1))
        await rig.storage.flush()
        assert len(rows(tmp_path)) == 1
        assert rig.bus.unacked == 0
