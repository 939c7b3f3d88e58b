"""Commits whose end is unknown: the database decides, and files never disagree with it."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.sinks.jsonl import Jsonl
from nephila.storage.writer import Writer

from tests.storage.storage_rig import lines, page, record, rows


def writer(directory: Path, *formats: str) -> Writer:
    """An open writer of rows and lines, and of other formats."""
    config = StorageConfig(directory=directory, formats=("sqlite", "jsonl", *formats), fsync=False)
    opened = Writer(config, ManualClock())
    opened.open()
    return opened


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


@pytest.mark.whole
@pytest.mark.parametrize("end", ["committed", "not committed", "not begun"])
def test_a_batch_that_was_lost_with_the_database_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The connection is lost within a batch, and once more when it is opened again. Then the same batch comes again:
    its rows, lines, late pages and exchanges exist once, and those of the batch before it too."""
    store = writer(tmp_path, "warc")
    store.commit([record(3)], [page(3)], [page(4)])
    store.after_commit()
    commit = Sqlite.commit

    def lost(self: Sqlite, lengths: dict[str, int]) -> None:
        if end == "committed":
            commit(self, lengths)
        raise StoreLost("the database is gone")

    def refused(self: Sqlite, *args: object) -> None:
        raise StoreLost("the database is still gone")

    batch = ([record(1), record(2)], [page(1), None], [page(7)], [page(8, status=404)])
    with monkeypatch.context() as patch:
        if end == "not begun":
            patch.setattr(Sqlite, "stage", refused)
        else:
            patch.setattr(Sqlite, "commit", lost)
        with pytest.raises(StoreLost):
            store.commit(*batch)
        patch.setattr(Sqlite, "open", refused)
        with pytest.raises(StoreLost):
            store.commit(*batch)
    result = store.commit(*batch)
    assert len(result.outcomes) == 2
    store.after_commit()
    with monkeypatch.context() as patch:  # the database is back: it is not opened again for each batch
        patch.setattr(Sqlite, "open", refused)
        store.commit([record(5)], [page(5)], [])
    store.close()
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 4
    assert warc_pages(tmp_path) == 6, "a page of a batch exists twice, or is lost"


@pytest.mark.whole
@pytest.mark.parametrize("end", ["committed", "not committed"])
def test_pages_without_records_that_were_lost_with_the_database_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """No row says whether the batch was committed; the lengths of the files do."""
    store = writer(tmp_path, "warc")
    commit = Sqlite.commit

    def lost(self: Sqlite, lengths: dict[str, int]) -> None:
        if end == "committed":
            commit(self, lengths)
        raise StoreLost("the database is gone")

    for late, exchanges in (([page(1)], []), ([], [page(2, status=404)])):
        with monkeypatch.context() as patch:
            patch.setattr(Sqlite, "commit", lost)
            with pytest.raises(StoreLost):
                store.commit([], [], late, exchanges)
        store.commit([], [], late, exchanges)
        store.after_commit()
    store.close()
    assert warc_pages(tmp_path) == 2


def test_a_database_that_is_locked_after_a_commit_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint waits; the rows are durable, and further batches are accepted."""
    store = writer(tmp_path)
    store.commit([record(1)], [page(1)], [])

    def locked(self: Sqlite) -> None:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Sqlite, "after_commit", locked)
        with pytest.raises(StoreLost, match="locked by another program"):
            store.after_commit()
    store.after_commit()
    store.commit([record(2)], [page(2)], [])
    store.close()
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 2


def test_an_error_after_a_commit_ends_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be rotated: one line, no further batch, and closing does not repeat the error."""
    store = writer(tmp_path)
    store.commit([record(1)], [page(1)], [])

    def full(self: Jsonl) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "pages.jsonl"))

    with monkeypatch.context() as patch:
        patch.setattr(Jsonl, "after_commit", full)
        with pytest.raises(UserError, match=r"disk full writing .*pages\.jsonl") as caught:
            store.after_commit()
    assert not isinstance(caught.value, StoreLost)
    with pytest.raises(UserError, match="disk full"):
        store.commit([record(2)], [page(2)], [])
    (tmp_path / "pages.jsonl").unlink()
    store.close()
    assert len(rows(tmp_path)) == 1


def test_the_first_error_of_closing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted file, then a disk without room: the deleted file is the news, and every output is closed."""
    store = writer(tmp_path)
    store.commit([record(1)], [page(1)], [])
    (tmp_path / "pages.jsonl").unlink()
    close = Sqlite.close

    def full(self: Sqlite) -> None:
        close(self)
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "nephila.db"))

    monkeypatch.setattr(Sqlite, "close", full)
    with pytest.raises(UserError, match=r"pages\.jsonl"):
        store.close()
    assert not open_files(tmp_path)


def test_a_writer_that_cannot_open_leaves_nothing_open(tmp_path: Path) -> None:
    """The database is closed again: its log is gone, and another program may write to it."""
    (tmp_path / "pages.jsonl").write_text("mine")
    store = Writer(StorageConfig(directory=tmp_path, formats=("sqlite", "jsonl"), fsync=False))
    with pytest.raises(UserError, match=r"pages\.jsonl is there, but not of this crawl"):
        store.open()
    assert not (tmp_path / "nephila.db-wal").exists()
    assert (tmp_path / "pages.jsonl").read_text() == "mine"
    assert not open_files(tmp_path)


def open_files(directory: Path) -> list[str]:
    """Files below a directory that this process has open."""
    found = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return [name for name in found if name.startswith(f"{directory}/")]


@pytest.mark.parametrize(
    ("formats", "raw", "exchanges"),
    [
        (("sqlite", "jsonl"), False, False),
        pytest.param(("sqlite", "jsonl", "raw"), True, False, marks=pytest.mark.whole),
        pytest.param(("sqlite", "warc"), True, True, marks=pytest.mark.whole),
    ],
)
def test_only_what_a_sink_stores_is_wanted(
    tmp_path: Path, formats: tuple[str, ...], raw: bool, exchanges: bool
) -> None:
    """Pages and other answers are sent to a storage that has files for them alone."""
    store = Writer(StorageConfig(directory=tmp_path, formats=formats))
    assert (store.raw, store.exchanges) == (raw, exchanges)


def test_flushes_and_transactions_are_counted(tmp_path: Path) -> None:
    """A flush that finds all its records durable has no transaction."""
    store = writer(tmp_path)
    for _ in range(2):
        store.commit([record(1)], [page(1)], [])
        store.after_commit()
    store.close()
    assert (store.flush_s.count, store.database_s.count) == (2, 1)


def warc_pages(directory: Path) -> int:
    """Responses in the WARC files."""
    found = 0
    for path in directory.glob("*.warc.gz"):
        with path.open("rb") as stream:
            found += sum(one.record_type == WarcRecordType.response for one in ArchiveIterator(stream))
    return found
