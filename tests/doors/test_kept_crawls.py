"""What is kept of Firecrawl's crawls, in a file and in a database on a server."""

from __future__ import annotations

from contextlib import closing

import pytest
from nephila_doors.firecrawl.kept_crawls import TABLES, KeptCrawl, KeptCrawls
from nephila_harvest.webhooks.database import Database


@pytest.fixture
def kept(database_url, tmp_path):
    """Empty."""
    source = database_url or tmp_path
    with closing(KeptCrawls(Database(source, TABLES))) as found:
        yield found


def test_a_crawl_belongs_to_one_program_until_its_lease_ends(kept):
    first, second = KeptCrawl("a", "", "{}", "00"), KeptCrawl("b", '{"x": 1}', "{}", "00")
    kept.add(first, "one", 10)
    kept.add(second, "one", 10)
    kept.add(KeptCrawl("c", '{"y": 1}'), "one", 10)
    assert kept.take("two", 10, 30, 5) == []
    assert kept.renew("one", 20) == {"a", "b"}
    assert kept.take("two", 15, 30, 5) == []
    assert kept.take("two", 21, 30, 1) == [first]
    assert kept.renew("one", 40) == {"b"}
    assert kept.take("three", 31, 50, 5) == [first]
    kept.release("one")
    assert kept.take("two", 41, 60, 5) == [second]
    assert [kept.fields(name) for name in "abcd"] == ["", '{"x": 1}', '{"y": 1}', ""]


def test_what_was_delivered_is_known_until_the_crawl_is_settled(kept):
    kept.add(KeptCrawl("a", "s", "{}", "00"), "one", 10)
    for event in ("started", "k1", "k1", "k2"):
        kept.mark("a", event)
    kept.mark("b", "started")
    assert kept.delivered("a") == {"started", "k1", "k2"}
    kept.settle("a")
    assert kept.delivered("a") == set()
    assert kept.take("two", 99, 100, 5) == []
    assert kept.fields("a") == "s"
    kept.delete("a")
    assert kept.fields("a") == ""
    assert kept.delivered("b") == {"started"}
