"""A replayed dead letter replaces its row; no other record changes a durable fetch."""

from __future__ import annotations

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.topics import DEAD, RECORDS
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer

from tests.storage.storage_rig import key, record, rows, running


@pytest.fixture
def writer(database_url, tmp_path):
    """An open writer on either ledger."""
    made = Writer(StorageConfig(directory=tmp_path, store=database_url, fsync=False))
    made.open()
    yield made
    made.close()


def is_dead_letter(number: int, fetch_no: int = 1) -> m.Record:
    """The row of a page that could not be parsed."""
    return record(number, fetch_no, outcome=m.Outcome.FAILED, reason="dead_letter", sha256=b"", text=b"", size_bytes=0)


def commit(writer: Writer, *records: m.Record) -> list[m.Outcome]:
    """One flush; returns the outcome of each URL."""
    return writer.commit(records, [None] * len(records), []).outcomes


def stored(writer: Writer, number: int):
    """The rows of the table."""
    return writer._ledger.durable({"job-1": [key(number).hex()]})["job-1", key(number).hex()]


def test_a_replayed_dead_letter_replaces_its_row(writer):
    """Only the same fetch; after that it is a stored row like any other."""
    assert commit(writer, is_dead_letter(1), record(2)) == [m.Outcome.FAILED, m.Outcome.STORED]
    result = writer.commit([record(1)], [None], [])
    assert result.outcomes == [m.Outcome.STORED]
    assert (result.new["stored"], result.new["failed"]) == (1, -1)
    assert stored(writer, 1).outcome is m.Outcome.STORED
    assert stored(writer, 1).copy
    assert commit(writer, is_dead_letter(1), is_dead_letter(2)) == [m.Outcome.STORED, m.Outcome.STORED]


def test_a_dead_letter_that_comes_again_is_kept_once(writer):
    """Delivered twice, or replayed and dead again."""
    commit(writer, is_dead_letter(1))
    result = writer.commit([is_dead_letter(1)], [None], [])
    assert result.outcomes == [m.Outcome.FAILED]
    assert not result.new


def test_an_earlier_fetch_does_not_take_a_later_dead_letters_row(writer):
    """It is replayed as what it was."""
    commit(writer, is_dead_letter(1, fetch_no=3))
    assert commit(writer, record(1, 2)) == [m.Outcome.FAILED]
    assert stored(writer, 1).fetch_no == 3


def test_dead_letter_and_replay_in_one_flush(writer):
    """The later counts."""
    assert commit(writer, is_dead_letter(1), record(1)) == [m.Outcome.FAILED, m.Outcome.STORED]
    assert stored(writer, 1).outcome is m.Outcome.STORED
    assert commit(writer, record(1)) == [m.Outcome.STORED]


async def test_a_record_that_ends_storage_itself_ends_its_url(tmp_path):
    """The bus delivers it no more: a row failed(dead_letter) with a receipt on the URL's partition, and a letter."""
    async with running(tmp_path, partitions=16) as rig:
        letters = []
        rig.bus.subscribe(DEAD, "test", lambda delivery: (letters.append(delivery.message), delivery.ack()), credits=9)
        reader = rig.bus._groups[RECORDS][0]
        rig.bus.unacked += 2
        dealt_with = [Receipt(), Receipt()]
        reader.dead_letter(3, record(1), dealt_with[0], RuntimeError("died"), 4)
        reader.dead_letter(3, m.Record(url="http://a.test/"), dealt_with[1], RuntimeError("died"), 4)
        assert not dealt_with[0].done
        await rig.storage.flush()
        assert all(receipt.done for receipt in dealt_with)
        assert rig.receipts == [(key(1)[0] >> 4, "job-1", key(1), 1, m.Outcome.FAILED)]
        assert [letter.attempts for letter in letters] == [4, 4]
    ((outcome, reason),) = [(row["outcome"], row["reason"]) for row in rows(tmp_path)]
    assert (outcome, reason) == ("failed", "dead_letter")
