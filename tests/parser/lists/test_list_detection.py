"""Sitemaps and feeds are recognised by what they are, unpacked within bounds, and passed on as links."""

from __future__ import annotations

import gzip
import json
import random
import struct
import tracemalloc
import zlib
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.native import parse_url
from nephila.parser.config import ParserConfig
from nephila.parser.links.link_list import LinkList, UnresolvedLink, list_messages, resolve, run_to_end
from nephila.parser.lists.detection import MAX_MEMBERS, ListForm, form_of, read

from tests.parser.parser_room import Room

URLSET = b"<urlset><url><loc>http://a.test/1</loc><lastmod>2024-05-02</lastmod></url></urlset>"
RSS = b"<rss><channel><title>F</title><item><title>One</title><link>/1</link></item></channel></rss>"
NOW = 1_790_000_000.0
MAY_2 = 1_714_608_000.0


def sitemap(count: int) -> bytes:
    """A sitemap of so many URLs."""
    return b"<urlset>" + b"".join(b"<url><loc>http://a.test/%d</loc></url>" % n for n in range(count)) + b"</urlset>"


@pytest.mark.parametrize(
    ("content_type", "url", "body", "form"),
    [
        ("application/xml", "", URLSET, ListForm.SITEMAP),
        ("text/html", "", b"\xef\xbb\xbf\n<?xml version='1.0'?>\n<!-- x -->" + URLSET, ListForm.SITEMAP),
        ("text/plain", "", b"<s:sitemapindex>", ListForm.SITEMAP),
        ("image/png", "", URLSET, ListForm.SITEMAP),
        ("text/xml", "", "\ufeff<urlset>".encode("utf-16-le"), ListForm.SITEMAP),
        ("text/xml", "", "<?xml version='1.0'?><rss>".encode("utf-16-le"), ListForm.FEED),
        ("text/xml", "", "<urlset>".encode("utf-16-be"), ListForm.SITEMAP),
        ("application/gzip", "", gzip.compress(URLSET, mtime=0), ListForm.SITEMAP),
        ("application/octet-stream", "", gzip.compress(RSS, mtime=0), ListForm.FEED),
        ("application/x-gzip", "", gzip.compress(b"PK", mtime=0), None),
        ("application/gzip", "", b"\x1f\x8b\x08 torn", None),
        ("application/gzip", "http://a/sitemap.txt.gz", gzip.compress(b"http://a/", mtime=0), ListForm.TEXT_SITEMAP),
        ("text/plain", "http://a/sitemap.txt", b"http://a/", ListForm.TEXT_SITEMAP),
        ("text/plain", "http://a/Sitemap-2.txt?x", b"http://a/", ListForm.TEXT_SITEMAP),
        ("text/plain", "http://a/urllist.txt", b"http://a/", ListForm.TEXT_SITEMAP),
        ("text/plain", "http://a/sitemap/readme.txt", b"http://a/", None),
        ("text/plain", "http://a/list.txt", b"http://a/", None),
        ("text/plain", "http://a/sitemap", b"http://a/", None),
        ("text/html", "http://a/sitemap.txt", b"http://a/", None),
        ("text/plain", "http://a/sitemap.txt", b" <html>", None),
        ("application/rss+xml", "", RSS, ListForm.FEED),
        ("text/html", "", RSS, ListForm.FEED),
        ("text/xml", "", b"<!DOCTYPE rss PUBLIC 'x' 'y'><rss>", ListForm.FEED),
        ("text/xml", "", b"<feed xmlns='http://www.w3.org/2005/Atom'>", ListForm.FEED),
        ("text/xml", "", b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", ListForm.FEED),
        ("text/xml", "", b"<rdf:RDF xmlns:foaf='http://xmlns.com/foaf/0.1/'>", None),
        ("text/xml", "", b"<?xml version='1.0'?><svg>", None),
        ("text/html", "", b"<!-- <rss> --><html>", None),
        ("text/html", "", b"<!doctype html><rss>", None),
        ("text/html", "", b"<feed-list>", None),
        ("text/html", "", b"</rss>", None),
        ("text/html", "", b"<p>&lt;rss>", None),
        ("application/feed+json", "", b"{}", ListForm.JSON_FEED),
        ("application/json", "", b'{"version": "https://jsonfeed.org/version/1"}', ListForm.JSON_FEED),
        ("application/json", "", b'{"version": 1}', None),
        ("text/html", "", b"", None),
        ("", "", b" " * 1_000_000, None),
    ],
)
def test_form(content_type: str, url: str, body: bytes, form: ListForm | None) -> None:
    """The root element decides, the name only where there is none."""
    assert form_of(content_type, url, body) is form


@pytest.mark.parametrize(
    ("declared", "written"),
    [("utf-16", "utf-8"), ("utf-16", "utf-16-le"), ("utf-8", "latin-1"), ("iso-8859-1", "latin-1"), ("", "latin-1")],
)
@pytest.mark.parametrize("packed", [False, True])
def test_feeds_in_another_encoding_than_they_say(declared: str, written: str, packed: bool) -> None:
    """No link is lost, and letters are those of the language."""
    said = f" encoding='{declared}'" if declared else ""
    item = "<item><title>Größe für Köln</title><link>http://a.test/1</link></item>"
    body = f"<?xml version='1.0'{said}?><rss><channel><title>Über Größen</title>{item}</channel></rss>".encode(written)
    body = gzip.compress(body) if packed else body
    form = form_of("text/xml", "", body)
    assert form is ListForm.FEED
    found = run_to_end(read(form, body, "http://a.test/s", "", ParserConfig(), NOW))
    assert [(entry.url, entry.title) for entry in found.entries] == [("http://a.test/1", "Größe für Köln")]


def urls(body: bytes, form: ListForm = ListForm.SITEMAP, charset: str = "", **limits: Any) -> tuple[list[str], str]:
    """URLs of a body, and what was wrong with it."""
    found = run_to_end(read(form, body, "http://a.test/s", charset, ParserConfig(**limits), NOW))
    return [entry.url for entry in found.entries], found.problem


@pytest.mark.parametrize(
    ("text", "encoding", "charset"),
    [
        ("<urlset><url><loc>http://a/é</loc></url>", "utf-8", ""),
        ("<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>http://a/é</loc></url>", "latin-1", ""),
        ("<urlset><url><loc>http://a/é</loc></url>", "latin-1", "iso-8859-1"),
        ("\ufeff<urlset><url><loc>http://a/é</loc></url>", "utf-16-le", ""),
        ("\ufeff<urlset><url><loc>http://a/é</loc></url>", "utf-16-be", "utf-8"),
        ("<?xml version='1.0' encoding='nobody-knows'?><urlset><url><loc>http://a/é</loc></url>", "utf-8", "x"),
    ],
)
def test_encodings(text: str, encoding: str, charset: str) -> None:
    """By mark, header, declaration, else UTF-8; packed or not."""
    body = text.encode(encoding)
    assert urls(body, charset=charset) == (["http://a/é"], "")
    assert urls(gzip.compress(body), charset=charset) == (["http://a/é"], "")


def test_gzip() -> None:
    """Members follow each other, garbage behind them is nobody's concern."""
    body = sitemap(20_000)
    packed = gzip.compress(body)
    expected = [f"http://a.test/{n}" for n in range(20_000)]
    assert urls(packed) == (expected, "")
    assert urls(packed + b"garbage") == (expected, "")
    for cut in (1000, 5000, len(body) - 1):
        assert urls(gzip.compress(body[:cut]) + gzip.compress(body[cut:])) == (expected, "")


def test_broken_gzip_keeps_what_was_read() -> None:
    """Torn and damaged files give what stands before the damage, and say what it was."""
    packed = gzip.compress(sitemap(20_000))
    found, problem = urls(packed[: len(packed) // 2])
    assert (found[0], len(found) > 5000, problem) == ("http://a.test/0", True, "the gzip stream ends early")
    damaged = bytearray(packed)
    damaged[len(packed) // 2 :] = random.Random(1).randbytes(len(packed) - len(packed) // 2)
    found, problem = urls(bytes(damaged))
    assert (found[0], len(found) > 5000) == ("http://a.test/0", True)
    assert problem.startswith("broken gzip stream")


@pytest.mark.timeout(60)
def test_gzip_bombs() -> None:
    """A gigabyte of nothing is unpacked up to the limit, a piece at a time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b"<urlset><url><loc>http://a/</loc></url>")
    packed += b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    tracemalloc.start()
    try:
        assert urls(packed) == (["http://a/"], f"more than {55 << 20:,} bytes")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.timeout(60)
def test_members_without_end() -> None:
    """Half a million empty members are not all opened."""
    assert urls(gzip.compress(b"<urlset>") + gzip.compress(b"") * 500_000) == ([], "")
    assert MAX_MEMBERS < 500_000


def test_the_length_is_limited() -> None:
    """The start of what is too long is kept."""
    found, problem = urls(sitemap(100), max_list_bytes=1_000)
    assert (found, problem) == ([f"http://a.test/{n}" for n in range(len(found))], "more than 1,000 bytes")
    assert len(found) > 10


def test_relative_and_foreign_links() -> None:
    """Relative ones are resolve, each is there once in its canonical form; other schemes and endless ones are none."""
    page = m.Page(job="j", url="http://a.test/x/sitemap.xml", url_key=b"k" * 16, depth=2)
    entries = [
        UnresolvedLink("y", 1.0, "A  title\n" + "é" * 300),
        UnresolvedLink("HTTP://B.test:80/é?utm_source=x#f"),
        UnresolvedLink("http://b.test/%C3%A9", 3.0),
        UnresolvedLink("ftp://a.test/"),
        UnresolvedLink("http://"),
        UnresolvedLink("http://a.test/" + "x" * 9000),
        UnresolvedLink("/é" * 2000),
        UnresolvedLink("z", 0.0, "", "http://u:p@c.test:81/d/"),
    ]
    rows = run_to_end(resolve(page.url, entries))
    (links,) = list_messages(page, LinkList("rss", entries=entries), rows)
    expected = ["http://a.test/x/y", "http://b.test/%C3%A9?utm_source=x", "http://c.test:81/d/z"]
    assert unpacked(links) == expected
    assert links.fingerprints == b"".join(parse_url(url).fingerprint for url in expected)
    spans = struct.unpack("<6I", links.host_spans)
    assert [links.urls[spans[at] : spans[at + 1]] for at in (0, 2, 4)] == [b"a.test", b"b.test", b"c.test:81"]
    assert struct.unpack("<3d", links.lastmods) == (1.0, 0.0, 0.0)
    ends = struct.unpack("<3I", links.anchor_ends)
    assert links.anchors[: ends[0]].decode() == "A title " + "é" * 96
    assert ends == (200, 200, 200)
    assert (links.job, links.parent_key, links.parent_url, links.depth) == ("j", b"k" * 16, page.url, 2)
    assert (links.flags, links.source) == (bytes(3), m.LinkSource.FEED)


@pytest.mark.parametrize(
    ("own", "url", "found"),
    [
        ("http://a.test/s.xml", "http://u:p@a.test/x", "http://a.test/x"),
        ("http://u:p@a.test/s.xml", "http://a.test/x", "http://u:p@a.test/x"),
        ("http://u:p@a.test/s.xml", "http://b.test/x", "http://b.test/x"),
        ("http://a.test/s.xml", "http://a.test/@x", "http://a.test/@x"),
    ],
)
def test_userinfo_in_lists(own: str, url: str, found: str) -> None:
    """What a list names has the userinfo of the list itself, within its origin, and no other."""
    (row,) = run_to_end(resolve(own, [UnresolvedLink(url)]))
    assert row.href.decode() == found


def unpacked(links: m.Outlinks) -> list[str]:
    """The URLs of a message."""
    ends = struct.unpack(f"<{len(links.fingerprints) // 16}I", links.url_ends)
    return [links.urls[start:end].decode() for start, end in zip((0, *ends), ends, strict=False)]


async def test_a_sitemap_becomes_messages_of_a_bounded_size_before_its_record() -> None:
    """Two thousand links at once at most, on the depth of the sitemap itself; then a row without text."""
    room = await Room().start()
    body = sitemap(25_000)
    *links, record = room.whole(gzip.compress(body), url="http://a.test/sitemap.xml.gz", depth=3, content_type="x/y")
    assert isinstance(record, m.Record)
    assert [unpacked(one)[0] for one in links] == [f"http://a.test/{n}" for n in range(0, 25_000, 2_000)]
    assert sum(len(unpacked(one)) for one in links) == 25_000
    assert {(one.depth, one.source, one.lastmods) for one in links} == {(3, m.LinkSource.SITEMAP, b"")}
    assert (record.outcome, record.text, record.content_type) == (m.Outcome.STORED, b"", "x/y")
    assert json.loads(record.meta) == {"list": "sitemap", "links": "25000"}
    assert (record.size_bytes, len(record.sha256)) == (len(gzip.compress(body)), 32)
    assert (room.calls, room.bus.unacked, record.links) == ([], 0, None)


async def test_an_index_marks_its_links_as_sitemaps() -> None:
    """The scheduler may treat them as it treats the index."""
    room = await Room().start()
    links = room.send(b"<sitemapindex><sitemap><loc>http://a.test/s</loc></sitemap></sitemapindex>")[0]
    assert isinstance(links, m.Outlinks)
    assert (links.flags, links.source) == (b"\x0c", m.LinkSource.SITEMAP)


async def test_a_feed_becomes_links_with_titles() -> None:
    """Served as a page, and still a feed."""
    room = await Room().start()
    links, record = room.send(RSS, content_type="text/html")
    assert isinstance(links, m.Outlinks)
    assert isinstance(record, m.Record)
    assert (unpacked(links), links.anchors, links.source) == (["http://a.test/1"], b"One", m.LinkSource.FEED)
    assert (record.title, record.text) == ("F", b"")


async def test_dates_and_what_counts_as_a_change() -> None:
    """Dates go with the links; the hash that a recrawl compares is of both, and of nothing else."""
    room = await Room().start()
    dated = [URLSET, b"<!-- built today -->" + URLSET, URLSET.replace(b"05-02", b"05-03"), URLSET.replace(b"/1", b"/2")]
    hashes = [room.record(body).text_hash for body in dated]
    assert (hashes[0] == hashes[1], len(set(hashes)), {len(one) for one in hashes}) == (True, 3, {8})
    links = room.log[0]
    assert isinstance(links, m.Outlinks)
    assert struct.unpack("<d", links.lastmods) == (MAY_2,)


async def test_an_empty_list_is_a_row() -> None:
    """Nothing to pass on, nothing lost."""
    room = await Room().start()
    (record,) = room.send(b"<urlset></urlset>")
    assert isinstance(record, m.Record)
    assert json.loads(record.meta) == {"list": "sitemap", "links": "0"}


async def test_problems_are_told_in_the_row() -> None:
    """Who wonders where the rest is finds it there."""
    room = await Room(max_list_urls=1).start()
    assert json.loads(room.record(sitemap(3)).meta)["problem"] == "more than 1 URLs"


async def test_kept_links_stand_whole_in_the_record() -> None:
    """--links keeps all of them, however many messages they took."""
    room = await Room().start(m.CrawlJob(uid="j", keep_links=True))
    record = room.record(sitemap(15_000))
    assert record.links is not None
    assert len(unpacked(record.links)) == 15_000


@pytest.mark.parametrize(
    ("tag", "followed"), [("noindex", True), ("noindex, nofollow", False), ("other: nofollow", True)]
)
async def test_nofollow_holds_for_lists_too(tag: str, followed: bool) -> None:
    """X-Robots-Tag means what it means on a page."""
    room = await Room().start()
    out = room.send(URLSET, robots_tag=tag)
    assert (len(out) == 2) is followed
    assert isinstance(out[-1], m.Record)
    assert json.loads(out[-1].meta)["x_robots_tag"] == tag
