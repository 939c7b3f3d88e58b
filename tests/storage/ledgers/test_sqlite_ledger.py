"""The ledger in SQLite: what makes a commit durable, what a rollback undoes, look-ups of many keys."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from nephila.kernel import messages as m
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.sqlite import PAGE_BYTES, Sqlite
from nephila.storage.ledgers.statements import MultiInsert
from nephila.storage.rows import RowBatch, row_of

from tests.storage.storage_rig import JOB, key, record, rows


def opened(directory: Path, *, fsync: bool = False) -> Sqlite:
    """An open ledger."""
    found = Sqlite(StorageConfig(directory=directory, fsync=fsync))
    found.open()
    return found


def batch_of(*records: m.Record) -> RowBatch:
    """The rows of first fetches."""
    batch = RowBatch(rows=[row_of(one, change="new") for one in records])
    batch.attempt_and_old_hash = {(row[2], row[14]): (1, "") for row in batch.rows}
    return batch


@pytest.mark.parametrize(("fsync", "synchronous"), [(True, 2), (False, 0)])
def test_a_commit_is_synced_unless_the_setting_forbids_it(tmp_path: Path, fsync: bool, synchronous: int) -> None:
    """A write-ahead log that this program alone copies, with a sync for each commit."""
    ledger = opened(tmp_path, fsync=fsync)
    found = {
        name: ledger.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "journal_mode", "wal_autocheckpoint", "page_size")
    }
    ledger.close()
    assert found == {
        "synchronous": synchronous, "journal_mode": "wal", "wal_autocheckpoint": 0, "page_size": PAGE_BYTES,
    }  # fmt: skip


def test_an_older_file_keeps_its_page_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added to it as before."""
    monkeypatch.setattr("nephila.storage.ledgers.sqlite.PAGE_BYTES", 8192)
    old = opened(tmp_path)
    old.stage(batch_of(record(1)))
    old.commit({})
    old.close()
    monkeypatch.undo()
    ledger = opened(tmp_path)
    ledger.stage(batch_of(record(2)))
    ledger.commit({})
    assert ledger.connection.execute("PRAGMA page_size").fetchone() == (8192,)
    ledger.close()
    assert len(rows(tmp_path)) == 2


def test_what_is_not_committed_is_undone(tmp_path: Path) -> None:
    """A rollback without a transaction, and of a closed ledger, does nothing."""
    ledger = opened(tmp_path)
    ledger.rollback()
    ledger.stage(batch_of(record(1)))
    ledger.commit({})
    ledger.stage(batch_of(record(2)))
    assert ledger.connection.in_transaction
    ledger.rollback()
    assert not ledger.connection.in_transaction
    ledger.close()
    ledger.rollback()
    assert [row["url_key"] for row in rows(tmp_path)] == [key(1).hex()]


def test_many_keys_are_looked_up(tmp_path: Path) -> None:
    """More than one query takes; keys that are not there, and those of another job, are left out."""
    ledger = opened(tmp_path)
    ledger.stage(batch_of(*(record(number) for number in range(0, 1100, 2)), record(1, job="job-2")))
    ledger.commit({})
    wanted = {JOB: [key(number).hex() for number in range(1100)], "job-2": [key(1).hex(), key(2).hex()]}
    found = ledger.durable(wanted)
    assert set(found) == {(JOB, key(number).hex()) for number in range(0, 1100, 2)} | {("job-2", key(1).hex())}
    texts = ledger.copies([(JOB, key(2).hex()), (JOB, key(3).hex())])
    assert texts == {(JOB, key(2).hex()): ("Page 2", b"text of page 2\nfetch 1")}
    ledger.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 127, 128, 129, 300])
@pytest.mark.parametrize("row_bytes", [0, 1 << 20, 64 << 20])
def test_any_number_of_rows_is_inserted_in_order(count: int, row_bytes: int) -> None:
    """Few statements for small rows, one for each row that is large."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    statements: list[str] = []
    connection.set_trace_callback(lambda text: statements.append(text) if text.startswith("INSERT") else None)
    given = [(number, str(number)) for number in range(count)]
    MultiInsert("INSERT INTO t", "(?, ?)").run(connection, given, row_bytes)
    assert connection.execute("SELECT a, b FROM t ORDER BY rowid").fetchall() == given
    most = {0: 128, 1 << 20: 16, 64 << 20: 1}[row_bytes]
    assert len(statements) == count // most + (count % most).bit_count()
    connection.close()


def test_a_wide_row_has_no_more_values_than_a_statement_takes() -> None:
    """SQLite refuses a statement with 32,767 values."""
    width = 300
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(f'c{number}' for number in range(width))})")
    row = tuple(range(width))
    MultiInsert("INSERT INTO t", f"({', '.join('?' * width)})").run(connection, [row] * 200)
    assert connection.execute("SELECT * FROM t").fetchall() == [row] * 200
    connection.close()
