"""A database that takes long gets fewer rows at once, until it takes them in time; scripted, on a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from nephila.kernel import messages as m
from nephila.storage.batch_size import SLOW_S
from nephila.storage.faults import StoreLost, StoreSlow

from tests.storage.storage_rig import Rig, key, lines, page, record, rows, running


def scripted(rig: Rig, limit_s: float, rate: Callable[[], float]) -> list[int]:
    """Let commits take rows / rate seconds; the database ends those of more than `limit_s`. Returns the rows of all
    attempts, as they come; 0 for one that failed."""
    attempts: list[int] = []
    ledger = rig.storage._writer._ledger
    stage = ledger.stage

    def slow(batch) -> None:
        size = len(batch.rows)
        took_s = size / rate()
        rig.clock.advance(min(took_s, limit_s))
        attempts.append(0 if took_s > limit_s else size)
        if took_s > limit_s:
            raise StoreSlow("the database has ended a transaction that took too long")
        stage(batch)

    ledger.stage = slow
    return attempts


async def settled(rig: Rig, receipts: list) -> None:
    """Advance the clock until all are written; by little, since a flush measures it too."""
    async with asyncio.timeout(60):
        while not all(receipt.done for receipt in receipts):
            rig.clock.advance(0.001)
            await asyncio.to_thread(int)


async def test_a_database_that_ends_long_transactions_gets_all_rows(tmp_path):
    """64 rows are within its limit; each row is written and receipted once, in the order of arrival."""
    async with running(tmp_path, formats=("sqlite", "jsonl"), patience_s=0, batch_rows=256) as rig:
        attempts = scripted(rig, 15.0, lambda: 5.0)
        receipts = rig.send(*(record(n) for n in range(600)))
        await settled(rig, receipts)
        assert max(attempts) <= 75
        assert sum(attempts) == 600
        assert attempts.count(0) < 10
        assert rig.storage.trouble == ""
        assert rig.storage.store.flushed_at > 0
        assert [receipt[2] for receipt in rig.receipts] == [key(n) for n in range(600)]
        assert rig.storage.outcomes == {"stored": 600}
        assert rig.bus.unacked == 0
        await rig.storage.flush()
    assert len(rows(tmp_path)) == 600
    assert len(lines(tmp_path)) == 600


async def test_the_size_grows_again_when_the_database_is_fast(tmp_path):
    """By steps, to all that waits."""
    speed = 4.0
    async with running(tmp_path, patience_s=0, batch_rows=64, credits=512) as rig:
        attempts = scripted(rig, 15.0, lambda: speed)
        await settled(rig, rig.send(*(record(n) for n in range(300))))
        low = rig.storage.batch_size.limit
        speed = 1e6
        sizes = [low]
        for start in range(300, 300 + 20 * 512, 512):
            await settled(rig, rig.send(*(record(n) for n in range(start, start + 512))))
            sizes.append(rig.storage.batch_size.limit)
        assert low <= 60
        assert max(sizes) == max(attempts) == 512


@pytest.mark.parametrize(("took_s", "shrinks"), [(SLOW_S + 1, True), (0.0, False)])
async def test_a_lost_connection_shrinks_a_flush_only_if_it_took_long(tmp_path, took_s, shrinks):
    """A server that drops a session after a while does not say why."""
    async with running(tmp_path, patience_s=0) as rig:
        commit, failures = rig.storage._writer.commit, [1]

        def fails_once(*arguments):
            if failures:
                failures.pop()
                rig.clock.advance(took_s)
                raise StoreLost("the connection is lost")
            return commit(*arguments)

        rig.storage._writer.commit = fails_once
        before = rig.storage.batch_size.limit
        await settled(rig, rig.send(*(record(n) for n in range(100))))
        assert (rig.storage.batch_size.limit < before) is shrinks


@pytest.mark.whole
async def test_answers_without_records_are_written_once_whatever_the_size(tmp_path):
    """They go with the first part of a flush."""
    async with running(tmp_path, formats=("sqlite", "warc"), patience_s=0) as rig:
        rig.storage.batch_size.limit = 1
        answers = rig.send_exchange(*(page(n, status=301) for n in range(3)))
        await settled(rig, answers)
        more = rig.send_exchange(page(9, status=302))
        await settled(rig, [*more, *rig.send(*(record(n) for n in range(3)))])
        assert len(rig.receipts) == 3
    assert len(rows(tmp_path)) == 3
    assert {row["outcome"] for row in rows(tmp_path)} == {m.Outcome.STORED.name.lower()}
