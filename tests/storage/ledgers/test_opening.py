"""Unusable directories are refused in one line with location and remedy."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.native import KEY_VERSION
from nephila.storage.ledgers.schema import (
    DATABASE,
    SCHEMA_VERSION,
    check_whole,
    connect_readonly,
    examined,
    recount,
)
from nephila.storage.ledgers.sqlite import PAGE_BYTES
from nephila.storage.outputs import SINKS
from nephila.storage.read.export import export

from tests.storage.storage_rig import JOB, Rig, record, rows, running


async def refusal(directory, **config):
    """The error line of start()."""
    rig = Rig(directory, **config)
    with pytest.raises(UserError) as caught:
        await rig.storage.start()
    await rig.storage.close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_file_in_the_place_of_the_directory(tmp_path):
    """The directory cannot be made."""
    (tmp_path / "out").write_text("x")
    assert f"cannot write {tmp_path}/out" in await refusal(tmp_path / "out" / "deep")


async def test_a_database_that_cannot_be_written(tmp_path):
    """A directory at the path of the file: any file that SQLite cannot open."""
    (tmp_path / "nephila.db").mkdir()
    line = await refusal(tmp_path)
    assert "nephila.db" in line
    assert "--out" in line


async def test_a_file_that_is_no_database(tmp_path):
    """The file is not changed."""
    (tmp_path / "nephila.db").write_bytes(b"hello, this is a text file " * 100)
    assert "is not an SQLite database" in await refusal(tmp_path)
    assert (tmp_path / "nephila.db").read_bytes().startswith(b"hello")


async def test_a_damaged_database(tmp_path):
    """A valid header, then garbage."""
    async with running(tmp_path) as rig:
        rig.send(*(record(n) for n in range(100)))
        await rig.storage.flush()
    data = bytearray((tmp_path / "nephila.db").read_bytes())
    data[100:] = b"\x55" * (len(data) - 100)
    (tmp_path / "nephila.db").write_bytes(data)
    assert "is damaged" in await refusal(tmp_path)


@pytest.mark.parametrize("damage", ["text", "schema", "message", "page"])
async def test_an_export_of_a_damaged_database(tmp_path, damage):
    """One line with the remedy, and no rows that look complete."""
    async with running(tmp_path) as rig:
        rig.send(*(record(n) for n in range(100)))
        await rig.storage.flush()
    path = tmp_path / "nephila.db"
    data = path.read_bytes()
    if damage == "text":
        data = data.replace(b"Page 50", b"Page \xff0")
    elif damage == "schema":
        data = data.replace(b"meta TEXT", b"meti TEXT")
    elif damage == "message":
        data = data.replace(b"CREATE TABLE waits", b"CREATE \xffABLE waits")
    else:
        data = data[:-PAGE_BYTES] + bytes(PAGE_BYTES)
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"nephila\.db is damaged \(.*restore it from a backup") as caught:
        export(tmp_path, "jsonl", tmp_path / "x.jsonl")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "x.jsonl").exists()


async def test_a_database_of_another_program(tmp_path):
    """Tables of another program."""
    connection = sqlite3.connect(tmp_path / "nephila.db")
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    assert "database of another program" in await refusal(tmp_path)


@pytest.mark.parametrize("what", ["schema_version", "key_version"])
async def test_a_database_of_another_version(tmp_path, what):
    """The line contains both versions and the remedy."""
    async with running(tmp_path):
        pass
    connection = sqlite3.connect(tmp_path / "nephila.db")
    connection.execute("UPDATE meta SET value = '77' WHERE name = ?", (what,))
    connection.commit()
    connection.close()
    line = await refusal(tmp_path)
    assert f"{what} 77" in line
    assert f"needs {SCHEMA_VERSION if what == 'schema_version' else KEY_VERSION}" in line
    assert "--out" in line


async def test_an_unknown_format(tmp_path):
    """The line lists the known formats."""
    with pytest.raises(UserError, match=r"unknown format 'xml'; known are sqlite, postgres, .*jsonl"):
        Rig(tmp_path, formats=("xml",))


@pytest.mark.whole
async def test_a_directory_left_by_a_kill_opens_as_if_nothing_had_been(tmp_path):
    """A copy taken while the log is full of committed rows has the files that a kill leaves."""
    formats = ("sqlite", *(name for name in SINKS if name not in ("dataset", "opensearch")))  # outside of the directory
    async with running(tmp_path / "a", formats=formats) as rig:
        rig.send(*(record(n) for n in range(10)))
        await rig.storage.flush()
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        assert (tmp_path / "b" / "nephila.db-wal").stat().st_size > 0
    async with running(tmp_path / "b", formats=formats) as rig:
        rig.send(record(9), record(10))
        await rig.storage.flush()
    assert len(rows(tmp_path / "b")) == 11


async def with_rows(tmp_path) -> Path:
    """A directory with 300 rows in the database and in a file."""
    async with running(tmp_path, formats=("sqlite", "jsonl")) as rig:
        for n in range(300):
            rig.send(record(n))
        await rig.storage.flush()
    return tmp_path


def contents(directory: Path) -> dict[str, bytes]:
    """All files; an empty log does not count."""
    return {path.name: data for path in directory.iterdir() if (data := path.read_bytes()) and "-shm" not in path.name}


async def test_fewer_rows_than_urls_that_ended(tmp_path):
    """Refused before any file is truncated or created: the database may be an older copy."""
    before = contents(await with_rows(tmp_path))
    for job, ended in ((JOB, 301), ("another", 1)):
        with pytest.raises(UserError, match=f"rows of job '{job}'") as caught:
            await Rig(tmp_path, formats=("sqlite", "jsonl")).storage.start({job: ended})
        assert f"or remove {tmp_path / 'frontier'}: --resume" in str(caught.value)
    assert contents(tmp_path) == before
    rig = Rig(tmp_path)
    await rig.storage.start({JOB: 300})
    await rig.storage.close()
    with pytest.raises(UserError, match="has 0 rows"):
        await Rig(tmp_path / "new").storage.start({JOB: 1})
    assert not list((tmp_path / "new").iterdir())


async def test_a_start_reads_few_pages_of_a_database(tmp_path):
    """Its cost does not depend on the rows: no page of the middle of a table is read, and no row is counted."""
    await with_rows(tmp_path)
    path = tmp_path / DATABASE
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("update pages set text = text || ? where rowid < 250", ("x" * PAGE_BYTES,))
        db.commit()
        db.execute("pragma wal_checkpoint(truncate)")
    data = bytearray(path.read_bytes())
    for start in range(0, len(data), PAGE_BYTES):
        if data[start + 4 : start + 100] == b"x" * 96:  # the rest of a long text, behind the number of the next page
            data[start : start + PAGE_BYTES] = b"\x55" * PAGE_BYTES
    path.write_bytes(data)
    rig = Rig(tmp_path, formats=("sqlite", "jsonl"))
    await rig.storage.start({JOB: 300})
    await rig.storage.close()
    with pytest.raises(UserError, match=r"nephila\.db is damaged \("):
        check_whole(tmp_path)


@pytest.mark.parametrize("damage", ["shorter", "newest", "log"])
async def test_what_a_bad_disk_leaves_after_a_kill_is_found_at_the_start(tmp_path, damage):
    """A file that lost its end, newest pages that were never written, a log that is damaged or gone."""
    source, target = tmp_path / "a", tmp_path / "b"
    async with running(source) as rig:
        rig.send(*(record(n) for n in range(300)))
        await rig.storage.flush()
        if damage == "log":
            shutil.copytree(source, target)
    if damage == "log":
        log = target / "nephila.db-wal"
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
    else:
        shutil.copytree(source, target)
        path = target / DATABASE
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("pragma wal_checkpoint(truncate)")
        data = path.read_bytes()
        if damage == "shorter":
            data = data[: len(data) // 2]
        else:
            data = data[: len(data) // 2 // PAGE_BYTES * PAGE_BYTES].ljust(len(data), b"\0")
        path.write_bytes(data)
    before = contents(target)
    rig = Rig(target)
    with pytest.raises(UserError, match=r"rows of job|is damaged") as caught:
        await rig.storage.start({JOB: 300})
    assert "\n" not in str(caught.value)
    assert contents(target) == before


async def test_the_counted_rows_are_those_of_the_table(tmp_path):
    """After new rows, rows that are fetched again, two of a key in one flush, and a restart."""
    for first in (0, 5):
        async with running(tmp_path) as rig:
            rig.send(*(record(n) for n in range(first, first + 10)), record(first, fetch_no=2), record(1, job="other"))
            await rig.storage.flush()
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE)) as db:
        there = dict(db.execute("select job, count(*) from pages group by job"))
    assert there == {JOB: 15, "other": 1}
    assert examined(tmp_path / DATABASE, {JOB: 1, "other": 1, "none": 1}) == there
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE)) as db:
        db.execute("delete from pages where rowid < 4")
        db.commit()
    recount(tmp_path / DATABASE)
    assert examined(tmp_path / DATABASE, there)[JOB] < 15


async def test_an_index_that_does_not_fit_its_table(tmp_path):
    """`nephila check` finds it. A start reads no more than it needs."""
    await with_rows(tmp_path)
    path = tmp_path / "nephila.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("select rootpage from sqlite_master where name = 'sqlite_autoindex_pages_1'").fetchone()
    data = bytearray(path.read_bytes())
    data[root * PAGE_BYTES - 20] ^= 1
    path.write_bytes(data)
    before = contents(tmp_path)
    with pytest.raises(UserError, match=r"nephila\.db is damaged \(.*sqlite3's \.recover"):
        check_whole(tmp_path)
    assert contents(tmp_path) == before
    rig = Rig(tmp_path)
    await rig.storage.start()
    await rig.storage.close()


async def test_a_committed_length_that_is_too_small(tmp_path):
    """The length is stored twice: no file is truncated to a damaged number."""
    await with_rows(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "nephila.db")) as db:
        db.execute("update sinks set length = length - 64 where name = 'pages.jsonl'")
        db.commit()
    before = contents(tmp_path)
    assert "the committed length of pages.jsonl is wrong" in await refusal(tmp_path, formats=("sqlite", "jsonl"))
    assert contents(tmp_path) == before


async def test_tails_of_files_are_saved_when_the_frontier_log_is_lost(tmp_path):
    """The frontier's log is lost: the tail of the file may be the only copy of its pages."""
    await with_rows(tmp_path)
    size = (tmp_path / "pages.jsonl").stat().st_size
    with (tmp_path / "pages.jsonl").open("ab") as file:
        file.write(b'{"url": "http://x.test/"}\n')
    rig = Rig(tmp_path, formats=("sqlite", "jsonl"))
    await rig.storage.start(None)
    assert rig.storage.last_fetches == {JOB: 1}
    await rig.storage.close()
    assert (tmp_path / "pages.jsonl").stat().st_size == size
    assert (tmp_path / f"pages.jsonl.cut-{size}").read_bytes() == b'{"url": "http://x.test/"}\n'


async def test_a_user_version_of_the_future(tmp_path):
    """Writing and reading refuse it, and change nothing: this program sets none, so that a later one can."""
    async with running(tmp_path) as rig:
        rig.send(record(1))
        await rig.storage.flush()
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute("PRAGMA user_version = 7")
    assert "has user_version 7, this program needs 0" in await refusal(tmp_path)
    with pytest.raises(UserError, match="user_version 7"):
        connect_readonly(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)
