"""Rows over several servers: each row on one of them, once, whatever ends between their commits; one merged feed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.outputs import check_outputs, ledger_of
from nephila.storage.read.reader import count
from nephila.storage.source import display_name, shard_of, without_password
from nephila.storage.writer import Writer
from nephila_harvest.change_feed import feed
from nephila_stores.postgres.ledger import Postgres

from tests.storage.storage_rig import key, record
from tools.postgres import Server

SERVERS = 3


@pytest.fixture
def stores(postgres: Server, request: pytest.FixtureRequest) -> list[str]:
    """Empty databases; a test needs no servers of its own for them."""
    names = [f"shard{abs(hash(request.node.name)) % 10**9}_{number}" for number in range(SERVERS)]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return [postgres.dsn(name) for name in names]


def writer(stores: list[str], directory: Path, name: str = "w") -> Writer:
    """An open writer."""
    config = StorageConfig(directory=directory, formats=("postgres",), store=" ".join(stores), fsync=False, writer=name)
    found = Writer(config, ManualClock())
    found.open()
    return found


def keys_of(stores: list[str]) -> list[list[str]]:
    """The keys of each server."""
    found = []
    for store in stores:
        with psycopg.connect(store) as connection:
            found.append([row[0] for row in connection.execute("SELECT url_key FROM pages ORDER BY 1")])
    return found


def test_the_keys_of_a_host_are_on_one_server_and_all_servers_have_some():
    """The first four bytes of a key are of its host."""
    assert {shard_of(f"{'1234abcd'}{end:024x}", 7) for end in range(50)} == {shard_of("1234abcd", 7)}
    found = [shard_of(f"{host:08x}", 3) for host in range(0, 1 << 32, 1 << 24)]
    assert found == sorted(found)
    assert [found.count(number) for number in range(3)] == [86, 85, 85]
    assert shard_of("f" * 32, 3) == 2


def test_rows_are_divided_and_read_back(stores, tmp_path):
    """Each server has the rows of its keys, and a refetch finds them."""
    store = writer(stores, tmp_path)
    result = store.commit([record(number) for number in range(60)], [None] * 60, [])
    assert result.new["stored"] == 60
    again = store.commit([record(number) for number in range(60)], [None] * 60, [])
    assert sum(again.new.values()) == 0
    refetch = store.commit([record(number, fetch_no=2) for number in range(10)], [None] * 10, [])
    assert len(refetch.outcomes) == 10
    store.close()
    found = keys_of(stores)
    assert all(len(of_server) > 5 for of_server in found)
    assert [{shard_of(one, SERVERS) for one in of_server} for of_server in found] == [{0}, {1}, {2}]
    assert sorted(one for of_server in found for one in of_server) == sorted(key(number).hex() for number in range(60))


@pytest.mark.parametrize("committed", [True, False], ids=["after its commit", "before its commit"])
@pytest.mark.parametrize("lost", range(SERVERS))
def test_a_server_that_is_lost_within_a_flush_costs_no_row_and_doubles_none(
    stores, tmp_path, monkeypatch, lost, committed
):
    """The others commit. The batch comes again: rows, history and changes exist once."""
    store = writer(stores, tmp_path)
    commit: Callable[[Postgres, dict[str, int]], None] = Postgres.commit
    records = [record(number) for number in range(40)]

    def fails(self: Postgres, lengths: dict[str, int]) -> None:
        here = self._url == stores[lost]
        if not here or committed:
            commit(self, lengths)
        if here:
            raise StoreLost("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr(Postgres, "commit", fails)
        with pytest.raises(StoreLost):
            store.commit(records, [None] * 40, [])
    counts = [count(one) for one in stores]
    assert all(counts[number] for number in range(SERVERS) if number != lost)
    assert bool(counts[lost]) == committed
    store.commit(records, [None] * 40, [])
    store.close()
    assert sum(map(len, keys_of(stores))) == 40
    for table in ("fetches", "changes"):
        total = 0
        for one in stores:
            with psycopg.connect(one) as connection:
                total += connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # type: ignore[index]
        assert total == 40


def test_two_writers_with_the_same_records_write_each_once(stores, tmp_path):
    """As during a hand-over."""
    first, second = writer(stores, tmp_path / "a", "a"), writer(stores, tmp_path / "b", "b")
    first.commit([record(number) for number in range(30)], [None] * 30, [])
    second.commit([record(number) for number in range(20, 50)], [None] * 30, [])
    first.close()
    second.close()
    assert sum(map(len, keys_of(stores))) == 50


def test_the_feed_is_one_and_misses_nothing_between_pages(stores, tmp_path):
    """Pages of seven while rows are added: each change once, those of a key in their order."""
    store, source = writer(stores, tmp_path), " ".join(stores)
    seen: list[tuple[str, int]] = []
    position = ""
    for fetch_no in (1, 2, 3):
        texts = bytes([fetch_no]) * 16
        found = [record(number, fetch_no=fetch_no, sha256=texts * 2, text_hash=texts) for number in range(20)]
        store.commit(found, [None] * 20, [])
        for _ in range(2):
            page = feed(source, since=position, limit=7)
            position = page.next
            seen += [(row.change.url_key, row.change.fetch_no) for row in page.rows]
    while page := feed(source, since=position, limit=7):
        if not page.rows:
            break
        position = page.next
        seen += [(row.change.url_key, row.change.fetch_no) for row in page.rows]
    store.close()
    assert len(seen) == len(set(seen)) == 60
    for number in range(20):
        assert [fetch_no for one, fetch_no in seen if one == key(number).hex()] == [1, 2, 3]
    assert position == feed(source, since=position).next
    assert len(feed(source, newest=True, limit=5).rows) == 5
    assert len(feed(source, since="2020-01-01").rows) == 60


@pytest.mark.parametrize("since", ["7", "1.2", "1.2.3.4", "0" * 32])
def test_a_position_of_another_number_of_servers_is_refused(stores, since):
    with pytest.raises(UsageError, match="no position of 3 servers"):
        feed(" ".join(stores), since=since)


def test_what_needs_one_database_is_refused(tmp_path):
    """Formats with files, readers of all rows, a server twice."""
    two = "postgresql://u:secret@a/x postgresql://u:hidden@b/x"
    with pytest.raises(UsageError, match="the format jsonl needs one database"):
        check_outputs(StorageConfig(directory=tmp_path, formats=("postgres", "jsonl"), store=two))
    with pytest.raises(UsageError, match="a server twice"):
        ledger_of(StorageConfig(directory=tmp_path, store="postgresql://a/x postgresql://a/x"))
    with pytest.raises(UsageError, match="no URL"):
        ledger_of(StorageConfig(directory=tmp_path, store="postgresql://a/x nephila.db"))
    with pytest.raises(UserError, match="several servers") as found:
        count(two)
    assert "secret" not in str(found.value) + without_password(two) + display_name(two)
    assert "hidden" not in str(found.value) + without_password(two) + display_name(two)
