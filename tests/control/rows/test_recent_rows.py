"""Rows for screens: pages of rows with filters, one row with all that belongs to it."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import Outcome
from nephila_control.rows import recent_rows

from tests.storage.storage_rig import JOB, key, record, running

COUNT = 25


@pytest.fixture
async def source(database_url, tmp_path):
    """Rows in a directory and on a server: 25 of one job, every fifth failed, and one of another job."""
    async with running(tmp_path, store=database_url) as rig:
        for number in range(COUNT):
            ended = {"outcome": Outcome.FAILED, "reason": "http_404"} if number % 5 == 0 else {"title": f"Nr {number}"}
            rig.send(record(number, url=f"http://a.test/{number}", **ended))
        rig.send(record(100, url="http://b.test/50%_x", job="other", title="Über 50%"))
        await rig.storage.flush()
    return database_url or tmp_path


def urls(found):
    """The URLs of some rows."""
    return [row["url"] for row in found.rows]


def walk(source, **filters):
    """All pages of a list, in their order."""
    found = recent_rows.rows(source, limit=4, **filters)
    shown = urls(found)
    while found.next:
        found = recent_rows.rows(source, limit=4, before=found.next, **filters)
        shown += urls(found)
    return shown


def test_the_pages_of_a_list_have_every_row_once_and_the_newest_first(source):
    """However many there are on a page."""
    expected = {f"http://a.test/{number}" for number in range(COUNT)}
    shown = walk(source, jobs=[JOB])
    assert len(shown) == COUNT
    assert set(shown) == expected
    # A flush writes its failed rows behind the stored ones; each group is in the order of time.
    assert shown[:5] == [f"http://a.test/{number}" for number in (20, 15, 10, 5, 0)]
    assert sorted(walk(source)) == sorted([*expected, "http://b.test/50%_x"])


def test_filters_are_combined(source):
    """Job, outcome, reason, and part of URL or title."""
    assert walk(source, outcome="failed", jobs=[JOB]) == [f"http://a.test/{n}" for n in (20, 15, 10, 5, 0)]
    assert walk(source, reason="http_404", search="/1") == ["http://a.test/15", "http://a.test/10"]
    assert walk(source, search="nr 7") == ["http://a.test/7"]
    assert walk(source, jobs=["nobody"]) == []


def test_a_search_means_its_characters(source):
    """None of them is a pattern."""
    assert walk(source, search="50%_") == ["http://b.test/50%_x"]
    assert walk(source, search="5_%") == []
    assert walk(source, search="Über") == ["http://b.test/50%_x"]


def test_a_list_looks_at_a_bounded_number_of_fetches(source, monkeypatch):
    """A page may then be short, and the next one goes on behind it."""
    monkeypatch.setattr(recent_rows, "LOOKED_AT", 3)
    monkeypatch.setattr(recent_rows, "SEARCHED", 3)
    first = recent_rows.rows(source, search="/7")
    assert first.rows == []
    assert first.next
    assert walk(source, outcome="failed", jobs=[JOB]) == [f"http://a.test/{n}" for n in (20, 15, 10, 5, 0)]


def test_one_row_has_its_text_and_is_found_by_its_second_key(source):
    """A URL with a route has two keys."""
    found = recent_rows.stored_row(source, JOB, [key(999), key(7)])
    assert found is not None
    assert (found.row["url"], found.row["title"]) == ("http://a.test/7", "Nr 7")
    assert found.text_chars == len(found.row["text"])
    assert found.previous is None
    assert recent_rows.stored_row(source, "other", [key(7)]) is None


def test_a_directory_without_rows_has_none(tmp_path):
    """An error says so; an empty database on a server has no rows."""
    with pytest.raises(Exception, match="no database"):
        recent_rows.rows(tmp_path)
