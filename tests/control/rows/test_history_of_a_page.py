"""The fetches of one URL and the links to it: found without a walk over all fetches."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from nephila.storage.read import reader
from nephila_control.rows import recent_rows

from tests.storage.storage_rig import JOB, key, record, running


@pytest.fixture
async def source(database_url, tmp_path):
    """Two URLs whose keys differ in what the index does not have, each fetched three times."""
    async with running(tmp_path, store=database_url) as rig:
        for fetch_no in (1, 2, 3):
            for number in (1, 2):
                record_key = key(7)[:8] + bytes([number]) * 8
                rig.send(record(number, url=f"http://a.test/{number}", url_key=record_key, fetch_no=fetch_no))
            await rig.storage.flush()
    return database_url or tmp_path


def test_a_history_has_the_fetches_of_its_url_alone(source):
    """In their order, also beside a key with the same part in the index."""
    for number in (1, 2):
        found = reader.history(source, JOB, key(7)[:8] + bytes([number]) * 8)
        assert [one["fetch_no"] for one in found] == [1, 2, 3]
        assert {one["url_key"] for one in found} == {(key(7)[:8] + bytes([number]) * 8).hex()}
    assert reader.history(source, "other", key(7)[:8] + bytes([1]) * 8) == []


def plan(database, query):
    """How SQLite answers."""
    return " ".join(row[-1] for row in database.execute(f"EXPLAIN QUERY PLAN {query}"))


async def test_the_fetches_of_a_url_are_found_by_the_index(tmp_path):
    """SQLite does not walk the table."""
    async with running(tmp_path) as rig:
        rig.send(record(1))
        await rig.storage.flush()
    part = key(1).hex()[8:16]
    query = f"SELECT * FROM fetches WHERE substr(url_key, 9, 8) = '{part}' AND job = '{JOB}' ORDER BY id"
    with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
        assert "USING INDEX fetches_of" in plan(database, query)


async def test_links_to_a_page_are_found_among_a_bounded_number(tmp_path, monkeypatch):
    """Each with the page it stands on; a walk that ended early says so."""
    async with running(tmp_path) as rig:
        for number in range(4):
            rig.send(record(number, url=f"http://a.test/{number}"))
        await rig.storage.flush()
    rows = [(JOB, key(n).hex(), "http://a.test/0", key(0).hex(), f"from {n}") for n in (1, 2, 3)]
    rows += [("other", key(1).hex(), "http://a.test/0", key(0).hex(), "of another job")]
    with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
        database.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    found = recent_rows.links_to(tmp_path, [JOB], [key(9), key(0)])
    assert [(url, text, outcome) for url, text, outcome in found.links] == [
        (f"http://a.test/{n}", f"from {n}", "stored") for n in (1, 2, 3)
    ]
    assert found.complete
    assert recent_rows.links_to(tmp_path, [JOB], [key(1)]).links == []
    monkeypatch.setattr(recent_rows, "LINKS_LOOKED_AT", 2)
    found = recent_rows.links_to(tmp_path, [JOB], [key(0)])
    assert (len(found.links), found.complete) == (2, False)
