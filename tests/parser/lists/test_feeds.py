"""Feeds to entries: RSS, RDF, Atom and JSON, as they are and as they are broken."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.parser.links.link_list import LinkList, UnresolvedLink, run_to_end
from nephila.parser.lists.feeds import read_feed, read_json_feed

NOW = 1_790_000_000.0
MAY_2 = 1_714_608_000.0
BASE = "http://a.test/feed/"


def read(text: str | bytes, max_entries: int = 100) -> LinkList:
    """The entries of one body."""
    return run_to_end(read_feed([text.encode() if isinstance(text, str) else text], "utf-8", BASE, max_entries, NOW))


def item(inner: str) -> LinkList:
    """A channel with one item."""
    return read(f'<rss version="2.0"><channel><title>F</title><item>{inner}</item></channel></rss>')


def test_rss() -> None:
    """Links, dates and titles of items; what belongs to the channel or its image is none of them."""
    found = read(
        """<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://my.netscape.com/rss-0.91.dtd">
        <rss version="2.0"><channel><title>The &lt;b&gt;feed&lt;/b&gt;</title><link>http://a.test/</link>
        <image><title>no</title><link>http://no.test/</link><url>http://no.test/i.png</url></image>
        <item><title><![CDATA[One & <i>only</i>]]></title><link>http://a.test/1</link>
          <pubDate>Thu, 02 May 2024 02:00:00 +0200</pubDate><description><a href="http://no.test">x<br></description></item>
        <item><title>Two</title><link><![CDATA[http://a.test/2?a&b]]></link><dc:date>2024-05-02</dc:date></item>
        </channel></rss>"""
    )
    assert (found.form, found.title) == ("rss", "The feed")
    assert [(entry.url, entry.lastmod, entry.title) for entry in found.entries] == [
        ("http://a.test/1", MAY_2, "One & only"),
        ("http://a.test/2?a&b", MAY_2, "Two"),
    ]


def test_rdf() -> None:
    """RSS 1.0: items stand beside the channel; rdf:about is the last resort for a link."""
    found = read(
        """<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="http://a.test/"><title>F</title>
        <link>http://a.test/</link><items><rdf:Seq><rdf:li rdf:resource="http://a.test/1"/></rdf:Seq></items></channel>
        <item rdf:about="http://a.test/x"><link>http://a.test/1</link><dc:date>2024-05-02</dc:date></item>
        <item rdf:about="http://a.test/2"><title>T</title></item></rdf:RDF>"""
    )
    assert (found.form, found.title) == ("rdf", "F")
    assert [(entry.url, entry.lastmod) for entry in found.entries] == [
        ("http://a.test/1", MAY_2),
        ("http://a.test/2", 0),
    ]


def test_atom() -> None:
    """The alternate link of an entry, its latest date; an entry's source is another feed's."""
    found = read(
        """<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title type="text">F</a:title><a:link href="http://a.test/"/>
        <a:entry><a:link rel="self" href="http://a.test/self"/><a:link rel="alternate" href="http://a.test/1?a&amp;b"/>
          <a:link href="http://a.test/second"/><a:published>2024-05-01T00:00:00Z</a:published>
          <a:updated>2024-05-02T00:00:00Z</a:updated><a:source><a:title>no</a:title><a:link href="http://no.test/"/>
          <a:updated>2026-01-01T00:00:00Z</a:updated></a:source><a:title>T</a:title>
          <a:content type="xhtml"><div><a href="http://no.test/"><title>no</title></a></div></a:content></a:entry>
        <a:entry><a:id>tag:a.test,2024:2</a:id><a:title>no link</a:title></a:entry></a:feed>"""
    )
    assert (found.form, found.title) == ("atom", "F")
    assert [entry[:3] for entry in found.entries] == [("http://a.test/1?a&b", MAY_2, "T")]


def test_bases() -> None:
    """xml:base holds where it stands, each relative to the one around it."""
    found = read(
        """<feed xml:base="/blog/"><entry><link href="1"/></entry>
        <entry xml:base="2024/"><link href="2"/><title>x</title></entry>
        <entry><link xml:base="http://b.test/c/" href="3"/></entry>
        <entry xml:base="::"><link href="4"/></entry></feed>"""
    )
    assert [(entry.url, entry.base) for entry in found.entries] == [
        ("1", "http://a.test/blog/"),
        ("2", "http://a.test/blog/2024/"),
        ("3", "http://b.test/c/"),
        ("4", "http://a.test/blog/::"),
    ]


@pytest.mark.parametrize(
    ("inner", "url"),
    [
        ("<guid>http://a.test/g</guid>", "http://a.test/g"),
        ('<guid isPermaLink="false">http://a.test/g</guid>', None),
        ("<guid>urn:uuid:1</guid>", None),
        ("<guid>http://a.test/g</guid><link>http://a.test/l</link>", "http://a.test/l"),
        ("<link/><guid>http://a.test/g</guid>", "http://a.test/g"),
        ("<atom:link rel='self' href='http://no/'/><link>http://a.test/l</link>", "http://a.test/l"),
        ("<link>?a=1&b=2</link>", "?a=1&b=2"),
        ("<enclosure url='http://no/1.mp3'/><comments>http://no/</comments><source url='http://no/'>x</source>", None),
        ("<media:group><link>http://no/</link></media:group>", None),
        ("<link>http://a.test/<b>l</b></link>", None),
    ],
)
def test_the_link_of_an_item(inner: str, url: str | None) -> None:
    """Its <link>, else a guid that says it is an address."""
    assert [entry.url for entry in item(inner).entries] == ([url] if url else [])


def test_a_torn_feed_keeps_what_was_whole() -> None:
    """The last item counts when it ended."""
    text = "<rss><channel><item><link>http://a/1</link></item><item><link>http://a/2</link></item></channel></rss>"
    for end in range(len(text)):
        assert len(read(text[:end]).entries) == (end >= text.index("</item>") + 7) + (end >= text.rindex("</item>") + 7)


def test_items_without_end() -> None:
    """An item that begins ends the one before."""
    assert (
        len(read("<rss><channel><item><link>http://a/1</link><item><link>http://a/2</link><item></channel>").entries)
        == 2
    )


def test_more_entries_than_the_limit() -> None:
    """The first ones are kept, which in a feed are the newest, and it is told."""
    found = read("<rss><channel>" + "<item><link>http://a/</link></item>" * 9, max_entries=4)
    assert (len(found.entries), found.problem) == (4, "more than 4 entries")


@given(st.lists(st.integers(0, 300), max_size=6))
def test_pieces_may_be_cut_anywhere(cuts: list[int]) -> None:
    """The stream says what the whole says."""
    body = (
        "<rss><channel><title>é</title><item><title>a <![CDATA[b <c> &]]> d</title><!-- <link>http://no/</link> -->"
        "<link> http://a/?b&amp;<![CDATA[c]]> </link><pubDate>2024-05-02</pubDate></item></channel></rss>"
    ).encode()
    ends = [*sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    found = run_to_end(read_feed(pieces, "utf-8", BASE, 10, NOW))
    assert (found.title, found.entries) == ("é", [UnresolvedLink("http://a/?b&c", MAY_2, "a b  & d", BASE)])


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "body",
    [
        b"<rss><channel>" + b"<a>" * 100_000 + b"</a>" * 100_000,
        b"<feed>" + b"<entry xml:base='x/'>" * 50_000,
        b"<feed><entry>" + b"<link href='http://a/'>" * 100_000,
        b"<rss><channel><item><title>" + b"x<!---->" * 200_000,
        b"<rss><channel><title>" + b"&amp;" * 500_000,
        b"<rss><channel><item>" + b"</x>" * 500_000,
    ],
)
def test_hostile_feeds(body: bytes) -> None:
    """Depth, bases upon bases, fields without end: read to the end within little memory."""
    tracemalloc.start()
    try:
        found = read(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.entries) <= 1
    assert peak < 2 * len(body) + (4 << 20)


def test_json_feed() -> None:
    """Items with their URL, their latest date and title."""
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "F",
        "items": [
            {"url": "http://a.test/1", "title": "T", "date_published": "2024-05-01", "date_modified": "2024-05-02"},
            {"external_url": "http://b.test/2"},
            {"id": "http://a.test/3"},
            "x",
            {"url": 5},
        ],
    }
    found = read_json_feed(json.dumps(feed).encode(), 10, NOW)
    assert (found.form, found.title) == ("json", "F")
    assert found.entries == [UnresolvedLink("http://a.test/1", MAY_2, "T"), UnresolvedLink("http://b.test/2")]
    assert read_json_feed(json.dumps(feed).encode(), 1, NOW).problem == "more than 1 entries"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"items": {}}', b'{"items": 1}', b"[" * 100_000, b"\xff", b'{"title": 1}']
)
def test_no_json_feed(body: bytes) -> None:
    """Whatever it is, it has no entries."""
    assert read_json_feed(body, 10, NOW).entries == []


def test_entries_that_lead_nowhere_are_told() -> None:
    """How many there are; the others are taken."""
    found = read(
        "<rss><channel><title>T</title>" + "<item><title>x<link>http://a.test/1</item>" * 3 + "</channel></rss>"
    )
    assert (found.entries, found.problem) == ([], "3 entries name no address")
    assert item("<link>http://a.test/1</link>").problem == ""
