"""RSS, Atom and JSON Feed of changes, read by a third-party parser."""

from __future__ import annotations

import html
import json

import feedparser
import pytest
from nephila_control import system_types
from nephila_control.http.change_feeds import FORMATS

LINK = "http://crawler.test/api/v1/changes/feed/rss"


def change(number: int, **fields) -> system_types.Change:
    """A change."""
    values = {
        "seq": number,
        "id": f"{number:032x}",
        "at": f"2026-11-22T10:00:0{number}.000Z",
        "job": "news",
        "url": f"https://news.test/{number}?a=1&b=<2>",
        "url_key": "k",
        "fetch_no": 1,
        "change": "changed",
        "title": f"Page {number} & <more>",
        "fetched_at": "2026-11-22T09:59:00.000Z",
        "old_hash": "",
        "text_hash": "",
        "diff": "-old\n+new",
    }
    return system_types.Change(**{**values, **fields})


@pytest.mark.parametrize("name", ["rss", "atom"])
def test_a_feed_reader_reads_every_entry(name):
    """Newest first, with id, link, time, title and diff."""
    write, _ = FORMATS[name]
    found = feedparser.parse(write([change(1), change(2)], LINK))
    assert not found.bozo, found.get("bozo_exception")
    assert found.version == {"rss": "rss20", "atom": "atom10"}[name]
    assert found.feed.title == "Changes found by Nephila"
    newest, oldest = found.entries
    assert newest.id.endswith(f"{2:032x}")
    assert oldest.id.endswith(f"{1:032x}")
    assert newest.link == "https://news.test/2?a=1&b=<2>"
    assert newest.title.startswith("changed: Page 2 &")
    assert (newest.published_parsed if name == "rss" else newest.updated_parsed)[:6] == (2026, 11, 22, 10, 0, 2)
    assert "+new" in newest.summary
    assert newest.tags[0].term == "changed"


def test_a_json_feed_has_every_entry():
    """The required fields of version 1.1, and the position."""
    write, kind = FORMATS["jsonfeed"]
    feed = json.loads(write([change(1), change(2, title="", diff="", change="gone")], LINK))
    assert kind == "application/feed+json"
    assert (feed["version"], feed["feed_url"]) == ("https://jsonfeed.org/version/1.1", LINK)
    assert [item["id"] for item in feed["items"]] == [f"{2:032x}", f"{1:032x}"]
    assert feed["items"][0]["title"] == "gone: https://news.test/2?a=1&b=<2>"
    assert feed["items"][0]["_nephila"]["seq"] == 2
    assert all(item["content_text"] for item in feed["items"])


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_text_makes_no_invalid_feed(name):
    """Control characters, lone surrogates and markup of a page."""
    write, _ = FORMATS[name]
    body = write([change(1, title="\x01\ud800</title><script>", diff="+\x0b]]>\ufffe")], LINK)
    if name == "jsonfeed":
        assert json.loads(body)["items"][0]["content_text"].startswith("+")
        return
    found = feedparser.parse(body)
    assert not found.bozo, found.get("bozo_exception")
    assert len(found.entries) == 1


@pytest.mark.parametrize("name", ["rss", "atom"])
def test_a_feed_without_entries_is_valid(name):
    """Before the first change."""
    found = feedparser.parse(FORMATS[name][0]([], LINK))
    assert not found.bozo
    assert found.entries == []


@pytest.mark.parametrize("name", FORMATS)
def test_markup_of_a_page_stays_text(name):
    """A reader that shows the description as HTML shows the characters of the page."""
    write, _ = FORMATS[name]
    body = write([change(1, title="t", diff="+<img src=x onerror=alert(1)>")], LINK)
    if name == "jsonfeed":
        assert "content_html" not in json.loads(body)["items"][0]
        return
    description = feedparser.parse(body, sanitize_html=False).entries[0].summary_detail
    shown = description.value if description.type == "text/html" else html.escape(description.value)
    assert "<img" not in shown
    assert "&lt;img" in shown


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"])
def test_a_link_has_the_scheme_of_a_page(name, url):
    """Any other scheme makes no link."""
    write, _ = FORMATS[name]
    assert url.encode() not in write([change(1, url=url)], LINK)
