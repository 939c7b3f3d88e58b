"""Requisites: what a page and a style name, most needed first, within limits; as messages of their own."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.pages.requisites import MAX_LEVEL, MAX_REQUISITES, context_of, note_of
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS
from nephila.native import page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.links.extra_links import tree_of
from nephila.parser.links.requisites import requisites_of_page, requisites_of_style
from nephila.parser.sandbox import Sandbox
from nephila.parser.service import Parser

from tests.jobs import crawl_job


def of_page(html: str) -> list[str]:
    """What a page names."""
    return [entry.url for entry in requisites_of_page(tree_of(html.encode(), "utf-8"))]


def of_style(style: str | bytes, limit: int = MAX_REQUISITES) -> list[str]:
    """What a style names."""
    return [one.url for one in requisites_of_style(style if isinstance(style, bytes) else style.encode(), limit)]


def test_styles_come_first_then_scripts_then_icons_then_pictures() -> None:
    """A limit cuts what the page needs least; each text once."""
    html = """<img src=a.png srcset="b.png 1x, c.png 2x,d.png 3x"><img src=a.png><link rel="SHORTCUT Icon" href=i.ico>
    <picture><source srcset="e.webp, f.webp 2x"></picture><video poster=p.jpg src=no.mp4><source src=no.webm></video>
    <input type=image src=go.png><input type=text src=no.png><p style="background: url('s.png')">
    <script src=x.js></script>
    <link rel=preload href=q.woff2 imagesrcset="r.png 1x"><link rel=stylesheet href=m.css><link rel=canonical href=no>
    <style>@import "n.css"; b { background: url( t.png ) }</style><a href=no.html></a>
    <img src="data:image/png;base64,AA">"""
    expected = "m.css n.css t.png x.js i.ico q.woff2 r.png a.png b.png c.png d.png e.webp f.webp p.jpg go.png s.png"
    assert of_page(html) == expected.split()


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("@import url(a.css) screen; @IMPORT 'b.css'; @import\n\"c.css\";", ["a.css", "b.css", "c.css"]),
        ("a { src: URL( 'x y.woff' ), url(z.woff) }", ["x y.woff", "z.woff"]),
        ("/* url(no) */ a { b: url(yes) } /* @import 'no' ", ["yes"]),
        ("a { b: url(#svg); c: url(data:image/png;base64,AAAA); d: url() }", []),
        (b"\xff\xfe url(x.png) \x00", ["x.png"]),
        ("a { b: url(one) url(one) url(two) url(three) }", ["one", "two", "three"]),
        ("a { b: image-set('one' 1x, \"two\" 2x) 'no' }", ["one", "two"]),
        ("-webkit-image-set(url(a) 1x, url( 'b)' ) 2x, 'c' type('image/x') 3x, d 4x) url(e)", ["a", "b)", "c", "e"]),
        ("a { b: image-set('one' 1x", ["one"]),
    ],
)
def test_a_style(style: str | bytes, expected: list[str]) -> None:
    assert of_style(style) == expected
    assert of_style(style, 1) == expected[:1]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<img srcset='p1 (x,y), p2'><img srcset='z1 1x (a, b), z2 2x'>", ["p2", "z2"]),
        ("<img srcset='a 2, b 1w 2x, c 5h, d .5x, e 10w 5h, f,, g 1x'>", ["d", "e", "f", "g"]),
        ("<img srcset='a,b 1x,c 2x'><link rel=preload imagesrcset='d (, e 1x), f 2x'>", ["f", "a,b", "c"]),
        ("<svg><image href=a xlink:href=no /><image xlink:href=b /><use href='c#i'/><use xlink:href='#no'/></svg>",
         ["a", "b", "c#i"]),
        ("<svg><filter><feImage href=a /></filter><script href=b></script></svg><use href=no></use>", ["a", "b"]),
        ("<embed src=a><object data=b></object><body background=c><table background=d><td background=e>",
         ["c", "a", "b", "d", "e"]),
        ("<div><template shadowrootmode=open><style>@import 'a'</style><img src=b></template></div>", ["a", "b"]),
        ("<img src=c><iframe srcdoc='<link rel=stylesheet href=a><img src=b>'></iframe>", ["c", "a", "b"]),
        ("<template><img src=no></template>", []),
    ],
)  # fmt: skip
def test_a_page(html: str, expected: list[str]) -> None:
    """As a browser: a candidate with a descriptor that is none is not loaded; parts of descriptors are no URLs."""
    assert of_page(html) == expected


HTML = (
    '<base href="http://b.test/d/"><meta name=robots content=nofollow><a href=/x>x</a><img src=1.png><img src=2.png>'
    '<img src="http://a.test/x"><link rel=stylesheet href=s.css>'
)


async def sent(html: str, requisites: int, **page: Any) -> tuple[list[m.Outlinks], m.Record]:
    """Links and record of one page."""
    bus = LocalBus(ManualClock())
    out: list[Any] = []
    for topic in (OUTLINKS, RECORDS):
        bus.subscribe(topic, "reader", lambda delivery: (out.append(delivery.message), delivery.ack()), credits=10)
    parser = Parser(ParserConfig(), bus, bus.clock, page_pass, sniff_encoding, Sandbox())
    await parser.start()
    bus.publish(JOBS, 0, crawl_job(uid="j", parse=Parse(requisites=requisites)))
    values = {"url": "http://a.test/", "url_key": bytes(16), "content_type": "text/html", "depth": 2, **page}
    bus.publish(PAGES, 0, m.Page(job="j", body=html.encode(), **values))
    await parser.close()
    return out[:-1], out[-1]


async def test_requisites_of_a_page_are_a_message_of_their_own_even_where_links_are_not_followed() -> None:
    """At the depth of the page, resolved, of its session, and of no step of a crawl."""
    context = m.Context(session="s", stage="content", platform="p")
    (links,), record = await sent(HTML, 200, context=context)
    assert links.urls == b"http://b.test/d/s.csshttp://b.test/d/1.pnghttp://b.test/d/2.pnghttp://a.test/x"
    assert (links.source, links.depth) == (m.LinkSource.REQUISITE, 2)
    assert links.context == m.Context(session="s", requisite=1)
    assert record.outcome is m.Outcome.STORED
    (links,), _ = await sent(HTML, 2)
    assert links.urls == b"http://b.test/d/s.csshttp://b.test/d/1.png"
    assert (await sent(HTML, 0))[0] == []


async def test_they_come_before_the_links_of_the_page() -> None:
    """So a picture that is linked as well is archived whole."""
    links, _ = await sent("<a href=/1.png><img src=/1.png></a>", 200)
    assert [(one.source, one.urls) for one in links] == [
        (m.LinkSource.REQUISITE, b"http://a.test/1.png"),
        (m.LinkSource.UNSPECIFIED, b"http://a.test/1.png"),
    ]


async def test_a_browser_has_loaded_those_of_a_rendered_page() -> None:
    """They are not fetched twice."""
    assert (await sent(HTML, 200, rendered=True))[0] == []


@pytest.mark.parametrize("level", range(1, MAX_LEVEL + 1))
async def test_styles_are_read_up_to_a_level(level: int) -> None:
    """Relative to the style; the row has the level, by which a later fetch is one of a requisite, too."""
    of = m.Context(requisite=level)
    links, record = await sent("@import 'b.css'", 200, context=of, content_type="text/css", url="http://a.test/s/a.css")
    found = [(one.urls, one.context) for one in links]
    assert found == ([(b"http://a.test/s/b.css", m.Context(requisite=level + 1))] if level < MAX_LEVEL else [])
    assert (record.outcome, record.reason, record.text) == (m.Outcome.DROPPED, "requisite", b"")
    assert context_of(record.meta) == of
    assert context_of(note_of(None)) is context_of('{"requisite":"x"}') is None


async def test_other_requisites_are_not_parsed() -> None:
    """Not even a page: its links are no links of the crawl."""
    assert (await sent('<a href="/x">x</a>', 200, context=m.Context(requisite=1)))[0] == []
