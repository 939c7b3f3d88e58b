"""Sitemaps to entries: what the protocol says, what sites make of it, and what hostile ones send."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.parser.links.link_list import SITEMAP, SITEMAP_INDEX, TEXT_SITEMAP, LinkList, UnresolvedLink, run_to_end
from nephila.parser.lists import sitemaps
from nephila.parser.lists.sitemaps import MAX_FIELD_BYTES, read_sitemap, read_text_sitemap

NOW = 1_790_000_000.0
MAY_2 = 1_714_608_000.0
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def read(text: str | bytes, max_urls: int = 100, codec: str = "utf-8") -> LinkList:
    """The entries of one body."""
    return run_to_end(read_sitemap([text.encode() if isinstance(text, str) else text], codec, max_urls, NOW))


def urls(text: str | bytes, max_urls: int = 100) -> list[str]:
    """The URLs alone."""
    return [entry.url for entry in read(text, max_urls).entries]


def test_a_sitemap() -> None:
    """URLs with their dates, in order."""
    found = read(
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <urlset {NS}>
          <url><loc> https://a.test/?x=1&amp;y=2 </loc><lastmod>2024-05-02</lastmod><priority>0.5</priority></url>
          <url><loc><![CDATA[https://a.test/b?c&d]]></loc></url>
        </urlset>"""
    )
    assert (found.form, found.problem) == (SITEMAP, "")
    assert found.entries == [UnresolvedLink("https://a.test/?x=1&y=2", MAY_2), UnresolvedLink("https://a.test/b?c&d")]


def test_an_index() -> None:
    """It says that what it lists are sitemaps."""
    found = read(f"<sitemapindex {NS}><sitemap><loc>https://a.test/s.xml.gz</loc></sitemap></sitemapindex>")
    assert (found.form, found.entries) == (SITEMAP_INDEX, [UnresolvedLink("https://a.test/s.xml.gz")])


@pytest.mark.parametrize(
    "text",
    [
        "<urlset><url><loc>http://a/</loc></url></urlset>",
        '<urlset xmlns="http://wrong/"><url><loc>http://a/</loc></url></urlset>',
        '<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>http://a/</s:loc></s:url></s:urlset>',
        "\ufeff\n\n<?xml version='1.0'?><!-- by X --><?xml-stylesheet href='a.xsl'?><urlset><url><loc>http://a/</loc></url>",
        "<urlset><url><loc>http://a/<!-- x --></loc></url></urlset>",
        "<urlset><url><loc>http://a/</url></urlset>",
        "<urlset><loc>http://a/</loc></urlset>",
        "<urlset><url><loc>http://a/</loc>",
        "<urlset><url><loc/></url><url><loc></loc></url><url><loc>http://a/</loc><loc>http://b/</loc></url></urlset>",
    ],
)
def test_one_url_however_it_is_dressed(text: str) -> None:
    """Namespaces that are missing, wrong or prefixed, junk around and between, ends that are missing."""
    assert urls(text) == ["http://a/"]


def test_extensions_say_more_of_a_page() -> None:
    """The URLs of images and videos are no pages; a date of news is the page's; alternates come last."""
    found = read(
        f"""<urlset {NS} xmlns:image="i" xmlns:video="v" xmlns:news="n" xmlns:xhtml="x">
        <url><loc>http://a/1</loc>
          <image:image><image:loc>http://cdn/1.jpg</image:loc><image:title>A &amp; B</image:title></image:image>
          <video:video><video:content_loc>http://cdn/1.mp4</video:content_loc><video:url>http://no/</video:url></video:video>
          <news:news><news:publication_date>2024-05-02</news:publication_date><news:title>T</news:title></news:news>
          <xhtml:link rel="alternate" hreflang="de" href="http://a/de/1?x&amp;y"/>
          <xhtml:link rel='alternate' hreflang='fr' href='http://a/2'/>
          <xhtml:link rel="stylesheet" href="http://a/alternate.css"/>
        </url>
        <url><loc>http://a/2</loc><lastmod>2024-05-02</lastmod>
          <news:news><news:publication_date>2020-01-01</news:publication_date></news:news></url>
        </urlset>"""
    )
    assert found.entries == [
        UnresolvedLink("http://a/1", MAY_2, "A & B"),
        UnresolvedLink("http://a/2", MAY_2),
        UnresolvedLink("http://a/de/1?x&y"),
        UnresolvedLink("http://a/2"),
    ]
    assert (found.images, found.videos) == (["http://cdn/1.jpg"], ["http://cdn/1.mp4"])


def test_a_torn_sitemap_keeps_what_was_whole() -> None:
    """Half a URL is none, whatever it looks like."""
    text = "<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/22</loc></url></urlset>"
    for end in range(len(text)):
        whole = ["http://a/1"] * (end >= text.index("</url>")) + ["http://a/22"] * (end >= text.rindex("</url>"))
        assert urls(text[:end]) == whole


@given(st.lists(st.integers(0, 400), max_size=6))
def test_pieces_may_be_cut_anywhere(cuts: list[int]) -> None:
    """The stream says what the whole says."""
    body = (
        f"<?xml version='1.0'?><!DOCTYPE u [<!ENTITY a 'b'>]><urlset {NS}><!-- <url><loc>http://no/</loc></url> -->"
        "<url><loc><![CDATA[http://a/?b]]>&amp;c</loc><lastmod>2024-05-02</lastmod></url><x:link rel='alternate' href='http://b/'/>"
        "<url><loc>http://a/é</loc></url></urlset>"
    ).encode()
    ends = [*sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert run_to_end(read_sitemap(pieces, "utf-8", 10, NOW)).entries == read(body).entries
    assert [entry.url for entry in read(body).entries] == ["http://a/?b&c", "http://a/é", "http://b/"]


def test_more_urls_than_the_limit() -> None:
    """The first ones are kept, and it is told; alternates never take a listed URL's place."""
    listed = "".join(
        f"<url><loc>http://a/{n}</loc><l:link rel='alternate' href='http://b/{n}'/></url>" for n in range(9)
    )
    found = read(f"<urlset>{listed}</urlset>", max_urls=4)
    assert [entry.url for entry in found.entries] == [f"http://a/{n}" for n in range(4)]
    assert found.problem == "more than 4 URLs"
    found = read(f"<urlset>{listed}</urlset>", max_urls=12)
    assert ([entry.url for entry in found.entries][9:], found.problem) == ([f"http://b/{n}" for n in range(3)], "")


def test_entities_are_not_expanded() -> None:
    """Billion laughs: declared entities mean nothing here."""
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    text = f'<!DOCTYPE x [<!ENTITY l0 "lol">{lol}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    assert urls(f"{text}<urlset><url><loc>http://a/&l9;&f;</loc></url></urlset>") == ["http://a/&l9;&f;"]


@pytest.mark.parametrize("inside", ["<b/>", "<b>x</b>", "<image:loc>x</image:loc>"])
def test_a_field_with_elements_inside_is_none(inside: str) -> None:
    """What stands around a tag is no URL."""
    assert urls(f"<urlset><url><loc>http://a/{inside}b</loc></url><url><loc>http://c/</loc></url></urlset>") == [
        "http://c/"
    ]


def endless(start: bytes, unit: bytes, pieces: int) -> Iterator[bytes]:
    """A body nobody holds as a whole, in pieces of 256 KB."""
    yield start
    for _ in range(pieces):
        yield unit * ((1 << 18) // len(unit))


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("start", "unit"),
    [
        (b"<urlset><url><loc>http://a/", b"x"),
        (b"<urlset><url><loc>http://a/", b"<!-- -->y"),
        (b"<urlset><url><loc>", b"<![CDATA[x]]>"),
        (b"<urlset><url><loc>", b"<![CDATA[x"),
        (b"<urlset>", b"<url>"),
        (b"<urlset>", b"<a>"),
        (b"<urlset>", b"<x:link rel='alternate' href='http://a/'/>"),
        (b"<urlset ", b"a='b' "),
        (b"<urlset><url><lastmod>", b"2024"),
        (b"<urlset>", b"\xff\x00\xfe<"),
    ],
)
def test_memory_is_bounded(start: bytes, unit: bytes) -> None:
    """Three megabytes of one thing that never ends: a few pieces' worth of memory, and no error."""
    tracemalloc.start()
    try:
        found = run_to_end(read_sitemap(endless(start, unit, 12), "utf-8", 1000, NOW))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.entries) <= 1
    assert peak < 2 << 20


def test_more_tags_than_any_sitemap_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is bounded by their number: what came before is kept, and it is told."""
    monkeypatch.setattr(sitemaps, "MAX_TOKENS", 10)
    found = read("<urlset><url><loc>http://a/</loc></url>" + "<a>" * 5)
    assert ([entry.url for entry in found.entries], found.problem) == (["http://a/"], "")
    found = read("<urlset><url><loc>http://a/</loc></url>" + "<a>" * 6)
    assert ([entry.url for entry in found.entries], found.problem) == (["http://a/"], "more than 2,000,000 tags")


def test_names_by_the_million() -> None:
    """Every element another name: none of them is remembered for ever."""
    body = b"<urlset>" + b"".join(b"<n%d>" % n for n in range(200_000)) + b"<url><loc>http://a/</loc></url>"
    tracemalloc.start()
    try:
        assert urls(body) == ["http://a/"]
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_fields_of_a_megabyte() -> None:
    """A URL that long is none; the next is read."""
    long = f"<url><loc>http://a/{'x' * 1_000_000}</loc></url>"
    assert urls(f"<urlset>{long}<url><loc>http://b/</loc></url></urlset>") == ["http://b/"]
    assert MAX_FIELD_BYTES < 1_000_000


def test_invalid_utf_8() -> None:
    """A broken byte is a broken character of its URL."""
    assert urls(b"<urlset><url><loc>http://a/\xff\xc3\xa9</loc></url>") == ["http://a/\ufffdé"]


def test_text_sitemaps() -> None:
    """One URL a line, other lines are none."""
    body = (
        b"\xef\xbb\xbfhttp://a/1\r\nHTTPS://a/2  \n\n# http://a/3\nftp://a/\nhttp://a/\xc3\xa9\r"
        + b"http://b/"
        + b"x" * 20_000
    )
    for cut in (0, 5, 12, 30, 60, 10_000):
        found = run_to_end(read_text_sitemap([body[:cut], body[cut:], b"\nhttp://a/4"], "utf-8", 10))
        assert (found.form, [entry.url for entry in found.entries]) == (
            TEXT_SITEMAP,
            ["http://a/1", "HTTPS://a/2", "http://a/é", "http://a/4"],
        )
    assert run_to_end(read_text_sitemap([body], "utf-8", 2)).problem == "more than 2 URLs"
