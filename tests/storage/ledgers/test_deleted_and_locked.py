"""Files that are deleted, replaced or locked while they are open: saved, reported in one line, or waited for."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest
from nephila.kernel.runtime.errors import UserError

from tests.storage.storage_rig import Rig, lines, page, record, rows, running
from tests.waits import until

FORMATS = ("sqlite", "jsonl")
ARCHIVE = "nephila-00000.warc.gz"


async def gone(directory, change, formats=FORMATS) -> tuple[str, int]:
    """The error line of a run after `change`; number of receipts."""
    rig = Rig(directory, formats=formats)
    await rig.storage.start()
    for number in range(20):
        rig.send_page(page(number))
        rig.send(record(number))
    await rig.storage.flush()
    change()
    rig.send(record(20))
    with pytest.raises(UserError) as caught:
        await rig.storage.flush()
    assert rig.fatal == [caught.value]
    await rig.storage.close()
    return str(caught.value), len(rig.receipts)


@pytest.mark.parametrize(
    "name", ["nephila.db", "nephila.db-wal", "pages.jsonl", pytest.param(ARCHIVE, marks=pytest.mark.whole)]
)
async def test_a_file_that_is_deleted_is_saved(tmp_path, name):
    """The next write ends the run; all committed rows are restored, and the next run continues."""
    path = tmp_path / name
    formats = (*FORMATS, "warc") if name == ARCHIVE else FORMATS
    content = []

    def delete():
        content.append(path.read_bytes())
        path.unlink()

    line, receipted = await gone(tmp_path, delete, formats)
    assert line.startswith(f"{path} was deleted while it was written to; ")
    assert line.endswith("run again with --resume")
    assert receipted == 20
    assert name not in ("pages.jsonl", ARCHIVE) or path.read_bytes() == content[0]
    async with running(tmp_path, formats=formats) as rig:
        rig.send(record(20))
        await rig.storage.flush()
    assert len(rows(tmp_path)) == len(lines(tmp_path)) == 21


async def test_all_files_at_once(tmp_path):
    """rm DIR/*: each file is named and saved."""

    def delete():
        for path in tmp_path.iterdir():
            path.unlink()

    line, _ = await gone(tmp_path, delete)
    assert all(f"{tmp_path / name} was deleted" in line for name in ("nephila.db", "pages.jsonl"))
    assert "\n" not in line
    async with running(tmp_path, formats=FORMATS):
        assert len(rows(tmp_path)) == len(lines(tmp_path)) == 20


async def test_a_file_that_is_replaced_is_saved_beside(tmp_path):
    """The new file at the path belongs to another program."""

    def replace():
        (tmp_path / "nephila.db").rename(tmp_path / "moved.db")
        (tmp_path / "nephila.db").write_text("mine")

    line, _ = await gone(tmp_path, replace)
    assert f"all of it was saved as {tmp_path / 'nephila.db.rescued'}" in line
    assert (tmp_path / "nephila.db").read_text() == "mine"
    with contextlib.closing(sqlite3.connect(tmp_path / "nephila.db.rescued")) as saved:
        assert saved.execute("select count(*) from pages").fetchone() == (20,)


async def test_a_file_deleted_after_the_last_row_is_reported_at_the_end(tmp_path):
    """There is no further write: closing reports it."""
    rig = Rig(tmp_path, formats=FORMATS)
    await rig.storage.start()
    rig.send(record(1))
    await rig.storage.flush()
    (tmp_path / "nephila.db").unlink()
    with pytest.raises(UserError, match="was deleted while it was written to; all of it was saved as"):
        await rig.storage.close()
    assert len(rows(tmp_path)) == 1


async def test_a_lock_of_another_program_is_waited_for(tmp_path, monkeypatch):
    """The batch is retried until the lock is released; nothing is receipted before, lost or written twice."""
    monkeypatch.setattr("nephila.storage.ledgers.sqlite._BUSY_S", 0.01)
    async with running(tmp_path, formats=FORMATS) as rig:
        with contextlib.closing(sqlite3.connect(tmp_path / "nephila.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for number in range(5):
                rig.send(record(number))
            writing = asyncio.ensure_future(rig.storage.flush())
            await until(lambda: rig.storage.trouble and rig.clock.next_due is not None)
            assert rig.storage.trouble == f"{tmp_path / 'nephila.db'} is locked by another program"
            assert not rig.receipts
            assert not rig.fatal
            other.execute("COMMIT")

        def is_written() -> bool:
            rig.clock.advance(1.0)
            return writing.done()

        await until(is_written)
        await writing
        assert not rig.storage.trouble
        assert len(rig.receipts) == 5
    assert len(rows(tmp_path)) == len(lines(tmp_path)) == 5


async def test_a_lock_that_stays_ends_the_run(tmp_path, monkeypatch):
    """After `patience_s`, in one line."""
    monkeypatch.setattr("nephila.storage.ledgers.sqlite._BUSY_S", 0.01)
    async with running(tmp_path, patience_s=2.0) as rig:
        with contextlib.closing(sqlite3.connect(tmp_path / "nephila.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            rig.send(record(1))
            writing = asyncio.ensure_future(rig.storage.flush())
            await until(lambda: rig.clock.advance(0.5) or writing.done())
            with pytest.raises(UserError, match=r"is locked by another program; waited . s, run again with --resume"):
                await writing
