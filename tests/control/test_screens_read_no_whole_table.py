"""What a screen asks reads no whole table of rows or fetches: as SQLite plans it."""

from __future__ import annotations

import pytest
from nephila.native import parse_url
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.read import reader
from nephila_control.rows import recent_rows
from nephila_harvest.audit.pool import pool
from nephila_stores.search.search import make_index, search

from tests.storage.storage_rig import record, running

URL = "http://a.test/3"
KEY = parse_url(URL).fingerprint


def drawn(source, kind):
    """A part of the rows."""
    with open_for_reading(source) as rows:
        assert pool(rows, kind, "", "seed", 3) is not None


ASKED = {
    "list": lambda place: recent_rows.rows(place),
    "search in URLs": lambda place: recent_rows.rows(place, search="a"),
    "page": lambda place: recent_rows.stored_row(place, "j1", [KEY]),
    "page of any job": lambda place: recent_rows.stored_row(place, "", [KEY]),
    "row": lambda place: reader.row(place, None, KEY),
    "stored row": lambda place: reader.stored_row(place, KEY),
    "history": lambda place: reader.history(place, "j1", KEY),
    "sample of pages": lambda place: drawn(place, "pages"),
    "sample of items": lambda place: drawn(place, "items"),
    "search": lambda place: search(place, "fox"),
}


@pytest.mark.parametrize("name", ASKED)
async def test_no_query_scans_rows_or_fetches(tmp_path, monkeypatch, name):
    """Neither with statistics nor without."""
    async with running(tmp_path) as rig:
        for number in range(9):
            url = f"http://a.test/{number}"
            values = {"url": url, "url_key": parse_url(url).fingerprint, "job": f"j{number % 2}", "text": b"fox"}
            rig.send(record(number, **values))
        await rig.storage.flush()
    list(make_index(tmp_path))
    plans = []
    execute = ReadConnection.execute

    def explained(self, query, values):
        plans.extend(row[3] for row in execute(self, f"EXPLAIN QUERY PLAN {query}", values))
        return execute(self, query, values)

    monkeypatch.setattr(ReadConnection, "execute", explained)
    ASKED[name](tmp_path)
    assert plans
    assert [plan for plan in plans if plan.startswith(("SCAN fetches", "SCAN pages", "SCAN p", "SCAN f "))] == []


async def test_a_url_is_found_in_any_of_many_jobs(tmp_path):
    """That of the job that fetched it last."""
    async with running(tmp_path) as rig:
        for number in range(7):
            rig.send(record(number, url=URL, url_key=KEY, job=f"j{number}", fetched_at=1_800_000_000 - number % 4))
        await rig.storage.flush()
    assert {reader.row(tmp_path, None, KEY)["job"], reader.row(tmp_path, "j2", KEY)["job"]} <= {"j0", "j4", "j2"}
    assert recent_rows.stored_row(tmp_path, "", [KEY]).row["job"] in ("j0", "j4")
    assert recent_rows.stored_row(tmp_path, "", [b"\0" * 16]) is None
