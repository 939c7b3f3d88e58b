"""The ledger in SQLite: what makes a commit durable, what a rollback undoes, look-ups of many keys, replaced items."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.sqlite import PAGE_BYTES, Sqlite
from nephila.storage.ledgers.statements import MultiInsert
from nephila.storage.rows import RowBatch, row_of
from nephila.storage.writer import Writer
from nephila_rules.item_replacement import ItemReplacement

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


def stored(directory: Path) -> None:
    """A database with two pages, one of them with items."""
    writer = Writer(StorageConfig(directory=directory, fsync=False))
    writer.open()
    with_items = record(1, items=[b'{"n":1}'], rule="old", rule_version=1, meta='{"degraded":1,"a":2}')
    writer.commit([with_items, record(2, meta="{")], [None, None], [])
    writer.close()


def items(directory: Path) -> list[tuple[str, str, int, object]]:
    """(url_key, rule, version, item) of all items."""
    found = rows(directory, "items", "url_key, ordinal")
    return [(row["url_key"], row["rule"], row["rule_version"], json.loads(row["data"])) for row in found]


def test_items_are_replaced_together_with_the_rule_of_their_page(tmp_path: Path) -> None:
    """Those of the other page stay; notes of the parser about the old items go, and broken ones are kept."""
    stored(tmp_path)
    with ItemReplacement(tmp_path, write=True) as replacement:
        assert list(replacement.copies(key(1).hex())) == [JOB]
        assert replacement.copies(key(3).hex()) == {}
        replacement.put(JOB, key(1).hex(), "new", 7, ['{"n":2}', '{"n":3}'])
        replacement.put(JOB, key(2).hex(), "new", 7, [])
        assert replacement.of_page(JOB, key(1).hex()) == [{"n": 2}, {"n": 3}]
    assert items(tmp_path) == [(key(1).hex(), "new", 7, {"n": number}) for number in (2, 3)]
    found = {row["url_key"]: (row["rule"], row["rule_version"], row["meta"]) for row in rows(tmp_path)}
    assert found == {key(1).hex(): ("new", 7, '{"a":2}'), key(2).hex(): ("new", 7, "{")}


def test_an_error_within_a_replacement_undoes_it(tmp_path: Path) -> None:
    """The database is closed and unlocked."""
    stored(tmp_path)
    before = items(tmp_path)

    def fail() -> None:
        with ItemReplacement(tmp_path, write=True) as replacement:
            replacement.put(JOB, key(1).hex(), "new", 7, [])
            raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        fail()
    assert items(tmp_path) == before
    with ItemReplacement(tmp_path, write=True):
        pass


@pytest.mark.parametrize("write", [True, False])
def test_a_database_of_another_program_has_no_items_to_replace(tmp_path: Path, write: bool) -> None:
    """One line; nothing is changed, and no database is made where there is none."""
    with pytest.raises(UserError, match="no database at"):
        ItemReplacement(tmp_path, write=write)
    connection = sqlite3.connect(tmp_path / "nephila.db")
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = (tmp_path / "nephila.db").read_bytes()
    with pytest.raises(UserError, match="is a database of another program"), ItemReplacement(tmp_path, write=write):
        pytest.fail("was opened")
    assert (tmp_path / "nephila.db").read_bytes() == before
