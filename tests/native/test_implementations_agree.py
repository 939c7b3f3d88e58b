"""The core against the fallback, whose tree is lexbor's and whose URLs are Ada's: equal identity of URLs, equal links,
titles and directives on generated soup and mutated pages. On the core also: sound buffers for any bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nephila.native import PassOptions, fallback

from .conftest import check_page, links_of, urls_of

_core = pytest.importorskip("nephila.native._core", reason="the Rust core is not built here: no cargo at install")
URL = "http://a.test/dir/page.html?q=1"

TAGS = [name for name in fallback.TAGS if name] + ["x-y", "verylongunknownname", "a1"]
HREFS = st.one_of(
    st.sampled_from(["/x", "x?b=1&a=2", "../y", "//b.test/z", "http://b.test:80/?utm_a=1&c", "#f", "?q", ""]),
    st.text(alphabet="ab/.:?#&=%2eE@[]\\ \t;'\"^|~-xn", max_size=20),
)
WORDS = st.sampled_from(
    [
        "a",
        "b c",
        " ",
        "\n",
        "\r\n",
        "\0",
        "&amp;",
        "&notin",
        "&#x41",
        "&#0;",
        "&",
        "<",
        "é",
        "日本",
        "\t x ",
        "</",
        "<!",
        "]]>",
    ]
)
RAW = st.sampled_from(
    ["<!--", "-->", "--!>", "<!-->", "<![CDATA[", "<?x>", "<!doctype html>", "</>", "</ x>", "<script>", "</script>",
     "<!--<script>", "</title>", "<br/>", "<svg/>", "<a/href=x>", '<a href="', "<a =x href='y'/>", "<p", "<a b=c>",
     "<math><mi>"]
)  # fmt: skip


@st.composite
def start_tag(draw: st.DrawFn) -> str:
    """A start tag with the attributes the page pass reads, in odd quoting."""
    name = draw(st.sampled_from(TAGS))
    parts = [name.upper() if draw(st.booleans()) else name]
    for key in draw(
        st.lists(st.sampled_from(["href", "src", "rel", "class", "id", "content", "name", "lang", "type"]), max_size=3)
    ):
        value = draw(HREFS | st.sampled_from(["nofollow ugc", "comments", "refresh", "0;url=x", "og:title", "hidden"]))
        quote = draw(st.sampled_from(['"', "'", ""]))
        parts.append(f"{key}={quote}{value}{quote}")
    return f"<{' '.join(parts)}{draw(st.sampled_from(['>', '/>', ' >', '']))}"


SOUP = st.lists(
    st.one_of(start_tag(), st.sampled_from(TAGS).map(lambda name: f"</{name}>"), WORDS, RAW), max_size=40
).map("".join)


FIELDS = ("title", "lang", "base", "canonical", "robots", "description", "meta", "refresh")


def same(body: bytes, encoding: str = "utf-8") -> None:
    """Links, title and directives of both on one page are equal, and their buffers are sound."""
    found = [core.page_pass(body, URL, encoding) for core in (_core, fallback)]
    for page in found:
        check_page(page)
    left, right = ({name: getattr(page, name) for name in FIELDS} for page in found)
    assert left == right
    left, right = ({link.url: (link.fingerprint, link.host) for link in links_of(page)} for page in found)
    assert left == right


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(SOUP)
def test_soup(html: str) -> None:
    """Generated tag soup."""
    same(html.encode())


@settings(max_examples=300, deadline=None, derandomize=True)
@given(SOUP, st.integers(0, 40), st.integers(0, 5))
def test_soup_under_limits(html: str, text: int, links: int) -> None:
    """Generated tag soup with small limits."""
    page = _core.page_pass(html.encode(), URL, "utf-8", PassOptions(max_text_bytes=text, max_links=links))
    check_page(page)
    assert (len(page.text) <= text, page.link_count <= links) == (True, True)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=200) | st.text(alphabet="<>/!-=\"' aps&#;\0", max_size=120).map(str.encode))
def test_bytes(body: bytes) -> None:
    """Arbitrary bytes, valid UTF-8 or not."""
    check_page(_core.page_pass(body, URL, "utf-8"))
    check_page(fallback.page_pass(body, URL, "utf-8"))


def outcome(core: Any, name: str, *args: Any) -> Any:
    """What a URL function returns; "" for a refusal."""
    try:
        found = getattr(core, name)(*args)
    except core.UrlError:
        return ""
    return found if isinstance(found, str) else (found.href, found.host_key, found.canonical, found.fingerprint)


URLS = st.one_of(
    HREFS,
    st.tuples(
        st.sampled_from(["http://", "https://", "//", "http:", "HTTP:\\\\", "ftp://", "x:"]),
        st.sampled_from(["a.test", "A.test:80", "u:p@b.test:8080", "xn--a.test", "1.2", "[::1]", "b.0x7", "é.test",
                         "a..b", "u@xn--", "", "v:w@b.test:8443", "b.test:8443"]),
        st.text(alphabet="ab/.?#&=%2eE^|{}`'\\ \tutm_é", max_size=16),
    ).map("".join),
)  # fmt: skip


@settings(max_examples=2000, deadline=None, derandomize=True)
@given(URLS, st.sampled_from([None, URL, "https://u@b.test:8443/x/", "ftp://f/"]))
def test_urls(url: str, base: str | None) -> None:
    """Generated URLs, absolute and relative, have one identity."""
    assert outcome(_core, "parse_url", url, base) == outcome(fallback, "parse_url", url, base)


@settings(max_examples=2000, deadline=None, derandomize=True)
@given(URLS.map(lambda url: url.replace('"', "").replace("&", "&amp;").replace("\0", "")))
def test_fast_path(url: str) -> None:
    """A link in a page is exactly what parse_url makes of it, so the fast path equals the slow one."""
    page = _core.page_pass(f'<a href="{url}">'.encode(), URL, "utf-8")
    try:
        parts = _core.parse_url(url.replace("&amp;", "&"), URL)
    except _core.UrlError:
        assert page.link_count == 0
        return
    assert urls_of(page) == [parts.href]
    assert page.fingerprints == parts.fingerprint


PARTS = [
    b"<div class='c%d'><p>Some <b>text</b> &eacute; \n more",
    b"<ul><li><a href='/p/%d?b=%d&amp;a=1' rel=nofollow>Link %d</a></li></ul>",
    b'<table><tr><td>x<td><a href="http://h%d.test:8080/">y</a></table>',
    b"<!-- c --><svg><a href=q%d><title>z</title></a></svg>",
    b"<select><option>o</select><template><a href=no></template><pre>\n x\n</pre>",
    b"<script><!--<script></script>--></script><style>p{}</style><iframe src=i></iframe>",
    b"</div></p></span>\xc3\xa9\xe6\x97\xa5",
]


def sample_page(rng: random.Random) -> bytes:
    """A page of ordinary markup, a few kilobytes long."""
    rows = [
        b"<!DOCTYPE html><html lang=en><head><title>T &amp; x</title><base href=/b/><script>if(a<b)</script></head>"
    ]
    for n in range(rng.randrange(20, 60)):
        rows += [rng.choice(PARTS).replace(b"%d", b"%d" % n)]
    return b"".join(rows)


def mutated_pages() -> Iterator[bytes]:
    """Ordinary pages with random mutations of bytes."""
    for number in range(240):
        rng = random.Random(number)
        body = bytearray(sample_page(rng))
        for _ in range(rng.randrange(1, 40)):
            at = rng.randrange(len(body))
            what = rng.randrange(4)
            if what == 0:
                body[at] = rng.randrange(256)
            elif what == 1:
                del body[at : at + rng.randrange(1, 30)]
            elif what == 2:
                body[at:at] = rng.choice(
                    [b"<", b">", b'"', b"'", b"&", b"<!--", b"</", b"\0", b"\xff", b"<svg>", b"<table>"]
                )
            else:
                other = rng.randrange(len(body))
                body[at:at] = body[other : other + rng.randrange(1, 60)]
        yield bytes(body)


def test_mutated_pages() -> None:
    """Both give sound buffers for mutated pages, and one result for nearly all: lexbor differs from the standard where
    an <html> or a <template> is torn."""
    differ = 0
    for body in mutated_pages():
        try:
            same(body)
        except AssertionError:
            differ += 1
            check_page(_core.page_pass(body, URL, "utf-8"))
            check_page(fallback.page_pass(body, URL, "utf-8"))
    assert differ <= 6


@pytest.mark.parametrize(
    "unit",
    [b"<div>", b"<a href=x>", b"<b><p>", b"<table><td>", b"<svg><g>", b"</p>", b"<!--", b"<a b='", b"&", b"&#1", b"<",
     b"<template>", b"<li>", b"<script><!--<script>", b"--!", b"<a ", b"<x ='", b"<title>", b"<p><table>",
     b"</form><form>", b"<select><option>", b"<math><mi><a>", b"<frameset>", b"<![CDATA[", b"&notit;", b"<pre> ",
     b"<font><i></font>"],
)  # fmt: skip
def test_long_repetitions_end(unit: bytes) -> None:
    """A megabyte of one construct is scanned to its end: nothing is quadratic, nothing recurses."""
    check_page(_core.page_pass(unit * (1_000_000 // len(unit)), URL, "utf-8"))
    check_page(fallback.page_pass(unit * (5_000 // len(unit)), URL, "utf-8"))
