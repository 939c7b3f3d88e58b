"""Directories that cannot be used are refused in one line that names the place and the remedy."""

from __future__ import annotations

import shutil
import sqlite3

import pytest
from nephila.kernel.errors import UserError
from nephila.native import KEY_VERSION
from nephila.storage.backends import BACKENDS
from nephila.storage.schema import SCHEMA_VERSION
from storage_rig import Rig, record, rows, running


async def refusal(directory, **config):
    """The one line that start() refuses with."""
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
    """A directory in the place of the file stands for any place SQLite cannot open."""
    (tmp_path / "nephila.db").mkdir()
    line = await refusal(tmp_path)
    assert "nephila.db" in line
    assert "--out" in line


async def test_a_file_that_is_no_database(tmp_path):
    """It is left as it is."""
    (tmp_path / "nephila.db").write_bytes(b"hello, this is a text file " * 100)
    assert "is not an SQLite database" in await refusal(tmp_path)
    assert (tmp_path / "nephila.db").read_bytes().startswith(b"hello")


async def test_a_damaged_database(tmp_path):
    """A header with rubbish behind it."""
    async with running(tmp_path) as rig:
        rig.send(*(record(n) for n in range(100)))
        await rig.storage.flush()
    data = bytearray((tmp_path / "nephila.db").read_bytes())
    data[100:] = b"\x55" * (len(data) - 100)
    (tmp_path / "nephila.db").write_bytes(data)
    assert "is damaged" in await refusal(tmp_path)


async def test_a_database_of_another_program(tmp_path):
    """Tables, but not ours."""
    connection = sqlite3.connect(tmp_path / "nephila.db")
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    assert "database of another program" in await refusal(tmp_path)


@pytest.mark.parametrize("what", ["schema_version", "key_version"])
async def test_a_database_of_another_version(tmp_path, what):
    """Both versions and the remedy are named."""
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
    """The known ones are named."""
    with pytest.raises(UserError, match="unknown format 'xml'; known are sqlite, postgres, jsonl"):
        Rig(tmp_path, formats=("xml",))


async def test_a_directory_left_by_a_kill_opens_as_if_nothing_had_been(tmp_path):
    """A copy taken while the log is full of committed rows stands for the files a kill leaves."""
    async with running(tmp_path / "a", formats=("sqlite", *BACKENDS)) as rig:
        rig.send(*(record(n) for n in range(10)))
        await rig.storage.flush()
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        assert (tmp_path / "b" / "nephila.db-wal").stat().st_size > 0
    async with running(tmp_path / "b", formats=("sqlite", *BACKENDS)) as rig:
        rig.send(record(9), record(10))
        await rig.storage.flush()
    assert len(rows(tmp_path / "b")) == 11
