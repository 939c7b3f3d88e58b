"""Links of <link>, of forms and in scripts: taken where a job asks for their kind, marked for what they are."""

from __future__ import annotations

import time
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES
from nephila.native import page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.links.extra_links import GUESSED, KINDS, LINK_ELEMENT, MAX_LINKS, extra_links_of, tree_of
from nephila.parser.sandbox import Sandbox
from nephila.parser.service import Parser

from tests.jobs import crawl_job

HTML = """<base href="/d/"><link rel="Canonical x" href="c"><link rel=alternate hreflang=de href="/de">
<link rel=alternate type="application/rss+xml" href="feed.xml" title="News"><link rel="next" href="?p=2">
<link rel=stylesheet href="s.css"><a href="/known">x</a>
<form action="search?old=1#f"><input name=q value="a b"><input type=hidden name=h value=1><input type=password name=p>
<input type=checkbox name=c1><input type=checkbox name=c2 checked><select name=s><option>one<option selected value=2>x
</select><input type=submit name=go value=Go></form><form method=POST action="/buy"></form>
<button onclick="location.href='/clicked?x=1'">Go on</button><div data-href="/data">D</div>
<script>var a = "/api/list", b = 'http:\\/\\/b.test\\/x', c = "/pic.png", d = "no", e = "/", f = "</p>";
go(`/tick`)</script>
<script type="application/json">{"u": "/in-json"}</script><script src="/x.js">"/not"</script>"""


def found(kind: str, html: str = HTML) -> list[tuple[str, str]]:
    """Addresses and titles of a kind."""
    return [
        (entry.url, entry.title)
        for _, entries in extra_links_of(tree_of(html.encode(), "utf-8"), "b", (kind,))
        for entry in entries
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("canonical", [("c", "")]),
        ("alternate", [("/de", "de")]),
        ("feed", [("feed.xml", "News")]),
        ("next", [("?p=2", "")]),
        ("form", [("search?q=a+b&h=1&c2=on&s=2", "")]),
        (
            "script",
            [
                ("/clicked?x=1", "Go on"),
                ("/data", "D"),
                ("/api/list", ""),
                ("http://b.test/x", ""),
                ("/tick", ""),
            ],
        ),
    ],
)
def test_each_kind_finds_its_own(kind: str, expected: list[tuple[str, str]]) -> None:
    """Forms by GET as they stand; of scripts what stands in quotes and is no picture."""
    assert found(kind) == expected


@pytest.mark.parametrize(
    ("form", "query"),
    [
        ("<select name=a><option>x<option selected> y  z </select>", "a=y+z"),
        ("<select name=a><option disabled>x<option value=1>y</select>", "a=1"),
        ("<select name=a multiple><option>x</select><input name=b>", "b="),
        ("<select name=b multiple><option selected>y<option selected>z</select>", "b=y&b=z"),
        ("<textarea name=a>\n1\n2</textarea><input name=b><input type=checkbox name=c checked>", "a=1%0D%0A2&b=&c=on"),
        ("<fieldset disabled><legend><input name=a></legend><input name=b></fieldset><input name=c disabled>", "a="),
        ("<input name=a form=other><input name=b></form><input name=c form=f value=1>", "b=&c=1"),
        ("<input name=a value=ñ中>", "a=%F1%26%2320013%3B"),
        ("</form><form accept-charset='none utf-8'><input name=a value=ñ>", "a=%C3%B1"),
    ],
)  # fmt: skip
def test_a_form_is_sent_as_a_browser_sends_it(form: str, query: str) -> None:
    """In the encoding that the form states, else in that of its page."""
    html = f"<form id=f>{form}"
    (_, entries), *_ = extra_links_of(tree_of(html.encode(), "utf-8"), "http://a.test/", ["form"], "windows-1252")
    assert entries[-1].url == f"?{query}"


async def links(html: str, url: str = "http://a.test/", **parse: Any) -> list[tuple[str, int]]:
    """URL and flags but for the place of all links of a page that go on, in their order."""
    bus = LocalBus(ManualClock())
    out: list[tuple[str, int]] = []

    def take(delivery: Any) -> None:
        one, start = delivery.message, 0
        for number, flag in enumerate(one.flags):
            end = int.from_bytes(one.url_ends[4 * number : 4 * number + 4], "little")
            out.append((one.urls[start:end].decode(), flag & 15))
            start = end
        delivery.ack()

    bus.subscribe(OUTLINKS, "reader", take, credits=10)
    parser = Parser(ParserConfig(), bus, bus.clock, page_pass, sniff_encoding, Sandbox())
    await parser.start()
    bus.publish(JOBS, 0, crawl_job(uid="j", parse=Parse(**parse)))
    page = m.Page(job="j", body=html.encode(), url=url, url_key=bytes(16), content_type="text/html")
    bus.publish(PAGES, 0, page)
    await parser.close()
    return out


def test_extra_links_have_their_query_in_the_encoding_of_the_page() -> None:
    """The path is in UTF-8; so is the query of a page in UTF-8."""
    tree = tree_of("<link rel=canonical href='/ñ?ñ'>".encode(), "utf-8")
    for encoding, url in (("windows-1252", "/ñ?%F1"), ("utf-8", "/ñ?ñ"), ("utf-16le", "/ñ?ñ")):
        (_, (entry,)), *_ = extra_links_of(tree, "http://a.test/", ["canonical"], encoding)
        assert entry.url == url


async def test_only_kinds_that_are_asked_for_go_on() -> None:
    """Behind those of the page pass, against the page's base, each URL once."""
    assert await links(HTML) == [("http://a.test/known", 0)]
    assert await links(HTML, follow=("canonical", "script", "next")) == [
        ("http://a.test/known", 0),
        ("http://a.test/d/c", LINK_ELEMENT),
        ("http://a.test/d/?p=2", LINK_ELEMENT),
        ("http://a.test/clicked?x=1", GUESSED),
        ("http://a.test/data", GUESSED),
        ("http://a.test/api/list", GUESSED),
        ("http://b.test/x", GUESSED),
        ("http://a.test/tick", GUESSED),
    ]
    assert await links('<link rel=canonical href="/x"><a href="/x">x</a>', follow=("canonical",)) == [
        ("http://a.test/x", 0)
    ]


APP = """<a href="/x">x</a><a href="#/">Home</a><a href="#/cart?a=1">Cart</a><a href="#top">Top</a>
<a href="/shop#!/item/7" rel="ugc">Seven</a><map><area href="/shop#!/item/8" alt="Eight"></map><a href="#!">none</a>
<a href=" #/café x ">Café</a>"""


async def test_routes_are_pages_of_their_own_where_a_job_says_so() -> None:
    """Behind #/ and #! and nowhere else; a link that says nofollow keeps its flag."""
    plain = [("http://a.test/x", 0), ("http://a.test/app", 0), ("http://a.test/shop", 0)]
    assert await links(APP, "http://a.test/app#/start") == plain
    found = await links(APP, "http://a.test/app#/start", follow=["route"])
    assert found[3:] == [
        ("http://a.test/app#/cart?a=1", 0),
        ("http://a.test/shop#!/item/8", 0),
        ("http://a.test/app#/caf%C3%A9%20x", 0),
        ("http://a.test/shop#!/item/7", 1),
    ]


async def test_nofollow_links_are_left_where_a_job_says_so() -> None:
    """Of every kind; one that is said without it elsewhere on the page goes on."""
    html = """<a rel=nofollow href="/1">1</a><a href="/2">22</a><a rel="x ugc" href="/3">3</a><a href="/4">4</a>
    <a rel=sponsored href="/5">5</a><a rel=nofollow href="/2">2</a><a rel=nofollow href="/#/r">r</a>"""
    assert len(await links(html, follow=["route"])) == 7
    assert await links(html, follow=["route"], nofollow="skip") == [("http://a.test/2", 0), ("http://a.test/4", 0)]
    assert await links('<a rel=nofollow href="/1">1</a>', nofollow="skip") == []


async def test_nofollow_of_the_page_holds_for_all() -> None:
    """A page that forbids it has no links, of whatever kind."""
    assert await links('<meta name=robots content=nofollow><link rel=next href="/2">', follow=("next",)) == []


@pytest.mark.parametrize(
    "html",
    [
        "<link rel=next href=/x>" * 20_000,
        "<form><input name=a>" * 20_000,
        "<form>" + "<input name=a value=b>" * 20_000,
        "<script>" + "'/ab'," * 100_000 + "</script>",
        "<script>" + "\"'`" * 100_000 + "</script>",
        "<p onclick=\"'/ab'\">" * 20_000,
        "<script>'" + "/a" * 300_000 + "</script>",
        "".join(f"<div onclick='go(\"/ab{n}\")'>" for n in range(300)) + "word " * 400_000,
        "".join(f"<a href=#/{n}><object>" for n in range(300)) + "word " * 400_000,
    ],
    ids=["links", "forms", "fields", "addresses", "quotes", "clicks", "long", "nested", "routes"],
)
def test_hostile_pages_are_bounded(html: str) -> None:
    """In number and in time."""
    before = time.process_time()
    for _, entries in extra_links_of(tree_of(html.encode(), "utf-8"), "http://a.test/", tuple(KINDS)):
        assert len(entries) <= len(KINDS) * MAX_LINKS
    assert time.process_time() - before < 5.0
