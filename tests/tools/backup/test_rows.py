"""Rows on servers: a dump for each, and a restore into as many."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.read_connection import open_each
from nephila.storage.read.export import Layout, export
from nephila.storage.writer import Writer
from nephila_tools.backup import rows
from nephila_tools.check.system import rows_of

from tests.storage.storage_rig import JOB, key, record
from tools.postgres import Server

SERVERS = 3
PAGES = 40


def databases(postgres: Server, prefix: str) -> str:
    """Empty databases, as a `store`."""
    names = [f"{prefix}_{number}" for number in range(SERVERS)]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return " ".join(postgres.dsn(name) for name in names)


def filled(postgres: Server, prefix: str, directory: Path) -> str:
    """Databases with pages of many hosts."""
    store = databases(postgres, prefix)
    config = StorageConfig(directory=directory, formats=("postgres",), store=store, fsync=False, writer="w")
    writer = Writer(config, ManualClock())
    writer.open()
    pages = [record(number, url=f"http://h{number}.test/") for number in range(PAGES)]
    writer.commit(pages, [None] * PAGES, [])
    writer.close()
    return store


def urls(store: str, out: Path) -> list[str]:
    """The URLs of an export."""
    assert export(store, "csv", out, layout=Layout(("url",))) == PAGES
    return sorted(out.read_text().split()[1:])


@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="no pg_dump in PATH")
def test_rows_of_several_servers_are_saved_restored_and_exported(postgres: Server, tmp_path: Path) -> None:
    """Each row once, on its own server."""
    store = filled(postgres, "saved", tmp_path)
    before = urls(store, tmp_path / "before.csv")
    assert before == sorted(f"http://h{number}.test/" for number in range(PAGES))
    names = rows.dump(store, lambda name: tmp_path / name)
    assert names == ["rows-00.dump", "rows-01.dump", "rows-02.dump"]
    again = databases(postgres, "restored")
    dumps = [tmp_path / name for name in names]
    rows.restore(again, dumps)
    assert urls(again, tmp_path / "after.csv") == before
    with pytest.raises(UserError, match="has tables of nephila already"):
        rows.restore(again, dumps)
    with pytest.raises(UserError, match=r"rows of 3 databases, and storage\.store names 1"):
        rows.restore(again.split()[0], dumps)


def test_the_check_asks_the_server_of_a_key(postgres: Server, tmp_path: Path) -> None:
    """A row that one server lost is missing, and no other."""
    store = filled(postgres, "checked", tmp_path)
    keys = [key(number) for number in range(PAGES)]
    with open_each(store) as servers:
        assert rows_of(servers)(JOB, keys) == dict.fromkeys(keys, 1)
    for url in store.split():
        with psycopg.connect(url) as connection:
            connection.execute("DELETE FROM pages WHERE url = 'http://h7.test/'")
    with open_each(store) as servers:
        found: Any = rows_of(servers)(JOB, keys)
    assert found.keys() == set(keys) - {key(7)}


@pytest.mark.parametrize(("name", "is_one"), [("rows.dump", 1), ("rows-07.dump", 1), ("rows.dump.part", 0), ("x", 0)])
def test_names_of_dumps(name: str, is_one: int) -> None:
    """The name decides what a restore does with a file."""
    assert rows.is_dump(name) == is_one
