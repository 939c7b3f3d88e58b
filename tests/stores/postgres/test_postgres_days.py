"""Partitions by day on a server: moves of refetched pages, retention, conversion of plain tables, bad settings."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.read.export import export
from nephila.storage.writer import Writer

from tests.storage.storage_rig import JOB, key, record

DAY_S = 86_400
NOW = time.time()


def opened(directory: Path, store: str, **config: Any) -> Writer:
    """An open writer without a service."""
    values: dict[str, Any] = {"partition_by": "day", "store": store, **config}
    found = Writer(StorageConfig(directory=directory, fsync=False, **values))
    found.open()
    return found


def put(writer: Writer, *records: m.Record) -> list[m.Outcome]:
    """One flush."""
    outcomes = writer.commit(records, [None] * len(records), []).outcomes
    writer.after_commit()
    return outcomes


def select(store: str, query: str) -> list[tuple[Any, ...]]:
    """The result of a query."""
    with psycopg.connect(store) as connection:
        return connection.execute(query).fetchall()


def days(store: str, table: str = "pages") -> list[str]:
    """Names of the partitions of a table."""
    query = f"SELECT relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = '{table}'::regclass"
    return sorted(name for (name,) in select(store, query))


def aged(number: int, days_ago: float, fetch_no: int = 1, **fields: Any) -> m.Record:
    """A page of some days ago, with an item."""
    return record(number, fetch_no, fetched_at=NOW - days_ago * DAY_S, items=[b'{"n":1}'], rule="r", **fields)


def test_a_refetched_page_moves_to_the_day_of_its_newest_fetch(tmp_path, store):
    """A copy, a 304 and a failure each move the row; its history stays in the days of the fetches."""
    writer = opened(tmp_path, store)
    put(writer, *(aged(number, 5) for number in (1, 2, 3)))
    lost = {"status": 404, "text": b"", "title": "", "sha256": b"", "meta": ""}
    unchanged = {**lost, "status": 304, "not_modified": True}
    put(writer, aged(1, 3, 2, text=b"other", text_hash=b"12345678"), aged(2, 2, 2, **unchanged))
    put(writer, aged(3, 1, 2, outcome=m.Outcome.FAILED, reason="http_404", **lost))
    writer.close()
    rows = select(store, "SELECT url_key, tableoid::regclass::text, day::text, fetch_no, text FROM pages")
    assert len(rows) == 3
    for url_key, partition, day, fetch_no, text in rows:
        number, ago = next((n, 4 - n) for n in (1, 2, 3) if key(n).hex() == url_key)
        assert day == time.strftime("%Y-%m-%d", time.gmtime(NOW - ago * DAY_S))
        assert partition == f"pages_{day.replace('-', '')}"
        assert fetch_no == 2
        assert text == ("other" if number == 1 else f"text of page {number}\nfetch 1")
    assert select(store, "SELECT count(*), count(DISTINCT day) FROM fetches") == [(6, 4)]
    assert select(store, "SELECT url_key, text FROM previous") == [(key(1).hex(), "text of page 1\nfetch 1")]


def test_retention_drops_whole_days_and_a_dropped_fetch_still_counts_once(tmp_path, store):
    """Pages, history and items of old days go; a redelivered record of a dropped page is a duplicate, and its next
    fetch is compared with the dropped text."""
    writer = opened(tmp_path, store)
    put(writer, *(aged(number, 100) for number in (1, 2, 3)), aged(4, 10))
    put(writer, aged(2, 1, 2))
    writer.close()
    assert len(days(store)) == 3
    writer = opened(tmp_path, store, retention="90d")
    assert len(days(store)) == len(days(store, "fetches")) == 2
    left = {key(2).hex(), key(4).hex()}
    for table in ("pages", "items"):
        assert {one for (one,) in select(store, f"SELECT url_key FROM {table}")} == left
    assert put(writer, aged(1, 100)) == [m.Outcome.STORED]
    assert {one for (one,) in select(store, "SELECT url_key FROM pages")} == left
    put(writer, aged(1, 0, 2, text=b"text of page 1\nfetch 1"), aged(3, 0, 2, text=b"other", text_hash=b"12345678"))
    writer.close()
    result = dict(select(store, "SELECT url_key, change FROM pages WHERE fetch_no = 2"))
    assert (result[key(1).hex()], result[key(3).hex()]) == ("same", "changed")
    assert export(store, "jsonl", tmp_path / "rows.jsonl") == 4


def test_a_removal_that_was_stopped_is_completed_when_a_new_day_begins(tmp_path, store):
    """The partition was detached, its items are still there; no restart is needed."""
    writer = opened(tmp_path, store, retention="30d")
    put(writer, aged(1, 29.5))
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("ALTER TABLE pages DETACH PARTITION " + days(store)[0])
    put(writer, aged(2, 0))
    writer.close()
    assert select(store, "SELECT url_key FROM pages") == [(key(2).hex(),)]
    assert select(store, "SELECT url_key FROM items") == [(key(2).hex(),)]


def test_plain_tables_are_converted_with_all_rows(tmp_path, store):
    """At the first start with partitions; and a later writer without the setting keeps them."""
    writer = opened(tmp_path, store, partition_by="")
    put(writer, *(aged(number, number % 3) for number in range(30)), record(99, outcome=m.Outcome.DENIED, fetched_at=0))
    before = select(store, "SELECT url_key, text, fetched_at FROM pages ORDER BY 1")
    writer.close()
    opened(tmp_path, store).close()
    writer = opened(tmp_path, store, partition_by="")
    assert select(store, "SELECT url_key, text, fetched_at FROM pages ORDER BY 1") == before
    put(writer, aged(1, 0), aged(1, 0, 2), aged(31, 4))
    writer.close()
    assert len(days(store)) == 4
    assert select(store, "SELECT count(*), count(DISTINCT id) FROM fetches") == [(33, 33)]
    assert select(store, f"SELECT count(*) FROM changes WHERE job = '{JOB}'") == [(31,)]


def test_a_replayed_dead_letter_of_another_day_replaces_its_fetch(tmp_path, store):
    """The dead letter has no time: it belongs to the day of its writing."""
    writer = opened(tmp_path, store)
    put(writer, record(1, outcome=m.Outcome.FAILED, reason="dead_letter", fetched_at=0, text=b"", sha256=b""))
    put(writer, aged(1, 3))
    writer.close()
    assert select(store, "SELECT outcome FROM pages") == select(store, "SELECT outcome FROM fetches") == [("stored",)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"retention": "90"}, "storage.retention '90' is no number of days; write 90d"),
        ({"retention": "0d"}, "storage.retention '0d' is no number of days; write 90d"),
        ({"retention": "90d", "partition_by": ""}, "set storage.partition_by to day too"),
        ({"store": ""}, "storage.partition_by needs a PostgreSQL database; set storage.store"),
    ],
)
def test_bad_settings_are_refused_in_one_line(tmp_path, config, message):
    """With the setting and the remedy, before anything is opened."""
    with pytest.raises(UsageError, match=message) as caught:
        opened(tmp_path, **{"store": "postgresql://nowhere.invalid/x", **config})
    assert "\n" not in str(caught.value)
