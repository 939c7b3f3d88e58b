"""Commits whose end is unknown: the database decides, and files never disagree with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from nephila.kernel.runtime.clock import ManualClock
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.writer import Writer

from tests.storage.storage_rig import lines, page, record, rows


def writer(directory: Path) -> Writer:
    """A writer of rows, lines and WARC records, open."""
    found = Writer(StorageConfig(directory=directory, formats=("sqlite", "jsonl", "warc"), fsync=False), ManualClock())
    found.open()
    return found


def failed_fsync() -> sqlite3.Error:
    """What SQLite raises when the bytes of a commit were written and their fsync failed."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    return error


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
def test_files_keep_their_bytes_while_a_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """A failed fsync leaves the commit in the log or not. The next open cuts the files to what the database has."""
    store = writer(tmp_path)
    store.commit([record(1)], [page(1)], [])
    store.after_commit()
    commit = Sqlite.commit

    def unknown(self: Sqlite, lengths: dict[str, int]) -> None:
        if committed:
            commit(self, lengths)
        raise failed_fsync()

    with monkeypatch.context() as patch:
        patch.setattr(Sqlite, "commit", unknown)
        with pytest.raises(Exception, match="disk I/O error"):
            store.commit([record(2)], [page(2)], [])
    with pytest.raises(Exception, match="disk I/O error"):  # nothing more is accepted
        store.commit([record(3)], [page(3)], [])
    assert len(lines(tmp_path)) == 2, "the files were cut before the database had decided"
    store.close()
    again = writer(tmp_path)
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 1 + committed
    again.commit([record(2)], [page(2)], [])
    again.close()
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 2


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
def test_a_batch_whose_commit_was_lost_with_the_database_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The connection is lost within the commit, and once more when it is opened again. Then the same batch comes
    again: its rows, lines and late pages exist once."""
    store = writer(tmp_path)
    commit = Sqlite.commit

    def lost(self: Sqlite, lengths: dict[str, int]) -> None:
        if committed:
            commit(self, lengths)
        raise StoreLost("the database is gone")

    def refused(self: Sqlite) -> None:
        raise StoreLost("the database is still gone")

    batch = ([record(1), record(2)], [page(1), None], [page(7)])
    with monkeypatch.context() as patch:
        patch.setattr(Sqlite, "commit", lost)
        with pytest.raises(StoreLost):
            store.commit(*batch)
        patch.setattr(Sqlite, "open", refused)
        with pytest.raises(StoreLost):
            store.commit(*batch)
    result = store.commit(*batch)
    assert len(result.outcomes) == 2
    store.after_commit()
    store.close()
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 2
    assert warc_pages(tmp_path) == 2, "a page of the batch exists twice, or is lost"


def warc_pages(directory: Path) -> int:
    """Responses in the WARC files."""
    found = 0
    for path in directory.glob("*.warc.gz"):
        with path.open("rb") as stream:
            found += sum(one.record_type == WarcRecordType.response for one in ArchiveIterator(stream))
    return found
