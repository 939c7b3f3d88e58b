"""Pages that the native fetcher has read become the same messages as those that the parser reads itself."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from nephila.downloader.http import native
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.native import NativeFetcher
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.outcome import page_of
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import MainTextName, Parse
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.process.container import Container, Usage
from nephila.kernel.runtime.clock import ManualClock, SystemClock
from nephila.kernel.topics import JOBS, OUTLINKS, PAGES, RECORDS
from nephila.native import parse_url, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.lists.detection import form_of
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import encoding_of
from nephila.parser.service import build

from tests.contracts.fetcher_server import Server, get, response
from tests.fetcher_fixtures import settings
from tests.jobs import crawl_job

URL = "http://site.test/dir/page"
RUSSIAN = "Съешь ещё этих мягких французских булок, да выпей же чаю. " * 40
ARTICLE = b"<p>" + b"</p><p>".join(b"A sentence of some length, number %d, with words. " % n * 5 for n in range(60))
PAGES_READ: dict[str, tuple[bytes, str]] = {
    "plain": (b"<title>t</title><a href=/x>x</a><a href=y rel=nofollow>y</a>" + ARTICLE, "text/html; charset=utf-8"),
    "no charset": ("<title>é</title>ü<a href='?ü=ß'>l</a>".encode(), "text/html"),
    "declared latin": ("<meta charset=iso-8859-1>é<a href='?q=é'>l</a>".encode("latin-1"), "text/html"),
    "header wins": ("<meta charset=utf-8>é".encode("latin-1"), 'text/html;charset="ISO-8859-1"'),
    "escaped charset": (b"<p>x", 'text/html; charset="utf\\-8"'),
    "repeated type": (b"<p>x", "text/plain; charset=utf-8, text/html; charset=koi8-r"),
    "charset twice": ("<p>\u00e9".encode(), "text/html; charset=utf-8; charset=koi8-r"),
    "unknown charset": (b"<p>\xe9", "text/html; charset=nonsense"),
    "undeclared cyrillic": (f"<p>{RUSSIAN}".encode("cp1251"), "text/html"),
    "utf-16 with mark": ("<p>wide<a href=/w>w</a>".encode("utf-16"), "text/html"),
    "utf-16 without mark": ("<p>wide<a href=/w>w</a>".encode("utf-16le"), "text/html"),
    "japanese": ("<p>日本語 <a href=/j>j</a>".encode("iso-2022-jp") + b"x" * 100, "text/html"),
    "base and refresh": (b"<base href=/b/><meta http-equiv=refresh content='1;url=r'><a href=c>c</a>", "text/html"),
    "robots": (b"<meta name=robots content=nofollow><a href=/n>n</a>", "text/html"),
    "xhtml": (b"<?xml version='1.0' encoding='utf-8'?><html><a href='x'/></html>", "application/xhtml+xml"),
    "empty": (b"", "text/html"),
    "a PDF by its bytes": (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "text/html"),
    "a feed": (
        b"<rss version='2.0'><channel><item><link>http://site.test/i</link></item></channel></rss>",
        "text/html",
    ),
    "text": (b"<p>not html", "text/plain"),
    "nothing known": (b"<!doctype html><a href=/z>z</a>", ""),
    "deep": (b"<div>" * 3_000 + b"x", "text/html"),
    "doctype": (b"\xef\xbb\xbf\r\n <!DocType HTML PUBLIC 'x'><title>t</title><a href=/x>x</a>" + ARTICLE, "text/html"),
    "doctype, japanese": ("<!doctype html><p>日本語 <a href=/j>j</a>".encode("iso-2022-jp"), "text/html"),
    "doctype, declared japanese": ("<!doctype html><p>日本語".encode("iso-2022-jp"), "text/html; charset=utf-8"),
    "doctype, undeclared cyrillic": (f"<!doctype html><p>{RUSSIAN}".encode("cp1251"), "text/html"),
    "doctype, wide": ("<!doctype html><p>wide".encode("utf-16le"), "text/html"),
    "doctype of a feed": (
        b"<!doctype rss><rss version='2.0'><channel><item><link>http://site.test/i</link></item></channel></rss>",
        "text/html",
    ),
    "prefix of a feed": (b"<html:rss><item><link>http://site.test/i</link></item></html:rss>", "text/html"),
    "an old page": (b"<html><body><a href=/o>o</a>", "text/html"),
    "few words and scripts": (b"<!doctype html><script src=/app.js></script><div id=app></div>", "text/html"),
    "noise": (b"<a href=" + random.Random(3).randbytes(20_000), "text/html"),
}


async def messages(
    pages: list[m.Page], read_pages: ReadPages | None, jobs: Sequence[m.CrawlJob] = ()
) -> dict[str, list[object]]:
    """What the parser publishes for each of these pages."""
    clock = ManualClock()
    bus, out = LocalBus(clock), dict[str, list[object]]()

    def on_message(delivery: Delivery) -> None:
        out.setdefault(delivery.message.job, []).append(delivery.message)
        delivery.ack()

    for topic in (OUTLINKS, RECORDS):
        bus.subscribe(topic, "test", on_message, credits=999)
    parser = build(ParserConfig(), bus, clock, read_pages=read_pages)
    await parser.start()
    for job in jobs:
        bus.publish(JOBS, 0, job)
    for page in pages:
        bus.publish(PAGES, 0, page)
    await parser.drain(5.0)
    await parser.close()
    return out


@pytest.mark.parametrize(("cores", "processes", "threads"), [(1, 1, 0), (2, 1, 2), (2, 2, 1), (2, 8, 1), (64, 4, 8)])
def test_page_threads_by_cores(monkeypatch, cores: int, processes: int, threads: int) -> None:
    """Each of several processes has one at least; on one core the event loop reads the pages."""
    monkeypatch.setattr(Container, "read", lambda self: Usage(0, 0, 0.0, cores, 0.0))
    assert native._page_threads(settings(), processes) == threads
    assert native._page_threads(settings(page_threads=3), processes) == 3


@pytest.mark.parametrize("threads", [0, 1, 4])
async def test_the_same_messages(threads: int, monkeypatch) -> None:
    """Bit by bit, whatever the page is; most readings are used. Without page threads the event loop makes them."""
    monkeypatch.setattr(native, "_page_threads", lambda config, processes: threads)
    read = ReadPages(ParserConfig())
    fetcher = NativeFetcher(settings(), SystemClock(), None, read)
    pages = []
    for name, (body, kind) in PAGES_READ.items():
        async with Server(response(body, *((f"Content-Type: {kind}",) if kind else ()))) as server:
            target, key = TargetUrl(URL), parse_url(URL).fingerprint
            origin = m.FetchRequest(job=name, url=URL, url_key=key)
            request = HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port), origin=origin)
            found = await get(fetcher, request)
        assert found.body == body
        pages.append(page_of(origin, found, 1.0, 2.0))
    await fetcher.close()
    readings = read.waiting
    assert readings == len(PAGES_READ) - 2  # not of other types
    ahead = await messages(pages, read)
    assert read.waiting == 0
    assert ahead == await messages(pages, None)
    assert ahead.keys() == PAGES_READ.keys()


@pytest.mark.parametrize("was", ["none", "density"], ids=["as requested", "changed since"])
async def test_a_job_without_main_text(was: MainTextName) -> None:
    """A page thread reads none for it; a reading by another state of the job is not used."""
    read, name = ReadPages(ParserConfig()), "doctype"
    fetcher = NativeFetcher(settings(page_threads=1), SystemClock(), None, read)
    job = crawl_job(uid=name, parse=Parse(main_text="none"))
    read.set_main_text(name, was != "none")
    body, kind = PAGES_READ[name]
    target = TargetUrl(URL)
    origin = m.FetchRequest(job=name, url=URL, url_key=parse_url(URL).fingerprint)
    async with Server(response(body, f"Content-Type: {kind}")) as server:
        request = HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port), origin=origin)
        found = await get(fetcher, request)
    await fetcher.close()
    pages = [page_of(origin, found, 1.0, 2.0)]
    reading = read.take(found.body, URL, found.charset)
    assert reading is not None
    assert reading.main_text == (was != "none")
    read.put(reading)
    ahead = await messages(pages, read, [job])
    assert (reading.take() is None) == (was == "none")
    assert ahead == await messages(pages, None, [job])
    assert ahead != await messages(pages, None)


async def test_the_parser_takes_readings_that_come_after_it_was_made() -> None:
    """As in a program: there are none yet when fetcher and parser are made."""
    read, clock = ReadPages(ParserConfig()), ManualClock()
    bus = LocalBus(clock)
    bus.subscribe(RECORDS, "test", lambda delivery: delivery.ack(), credits=9)
    parser = build(ParserConfig(), bus, clock, read_pages=read)
    await parser.start()
    fetcher = NativeFetcher(settings(page_threads=1), SystemClock(), None, read)
    target, origin = TargetUrl(URL), m.FetchRequest(job="j", url=URL, url_key=parse_url(URL).fingerprint)
    async with Server(response(b"<p>x", "Content-Type: text/html")) as server:
        found = await get(
            fetcher, HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port), origin=origin)
        )
    assert read.waiting == 1
    bus.publish(PAGES, 0, page_of(origin, found, 1.0, 2.0))
    assert read.waiting == 0
    await parser.drain(5.0)
    await parser.close()
    await fetcher.close()


async def test_only_what_every_rule_calls_html_is_certain() -> None:
    """A reading of such a page is used without asking further; kind, list and encoding of others are determined."""
    read = ReadPages(ParserConfig())
    fetcher = NativeFetcher(settings(page_threads=1), SystemClock(), None, read)
    certain = []
    for name, (body, kind) in PAGES_READ.items():
        async with Server(response(body, *((f"Content-Type: {kind}",) if kind else ()))) as server:
            target, key = TargetUrl(URL), parse_url(URL).fingerprint
            origin = m.FetchRequest(job=name, url=URL, url_key=key)
            route = direct_route(target, ("127.0.0.1",), server.port)
            found = await get(fetcher, HttpRequest(target, route, origin=origin))
        reading = read.take(found.body, URL, found.charset)
        if reading is None or not reading.certain:
            continue
        certain.append(name)
        assert form_of(found.content_type, URL, body) is None
        assert kind_of(found.content_type, body[:HEAD_BYTES]) == (BodyKind.HTML, "")
        assert encoding_of(body, found.charset, sniff_encoding) == reading.encoding
    await fetcher.close()
    assert certain == ["doctype", "doctype, declared japanese", "an old page", "few words and scripts"]


async def test_requests_without_a_page_are_not_read() -> None:
    """robots.txt, logins and lists of proxies."""
    read = ReadPages(ParserConfig())
    fetcher = NativeFetcher(settings(page_threads=1), SystemClock(), None, read)
    target = TargetUrl(URL)
    for origin in (None, m.FetchRequest(url=URL, kind=m.FetchKind.ROBOTS)):
        async with Server(response(b"<p>x", "Content-Type: text/html")) as server:
            request = HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port), origin=origin)
            assert (await get(fetcher, request)).body == b"<p>x"
    assert read.waiting == 0
    await fetcher.close()


async def test_a_longer_page_is_left_to_the_parser() -> None:
    """Above `max_inline_bytes` a child process reads it."""
    read = ReadPages(ParserConfig(max_inline_bytes=10))
    fetcher = NativeFetcher(settings(page_threads=1), SystemClock(), None, read)
    target, origin = TargetUrl(URL), m.FetchRequest(url=URL)
    for body, count in ((b"<p>345678901", 0), (b"<p>4567890", 1)):
        async with Server(response(body, "Content-Type: text/html")) as server:
            await get(fetcher, HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port), origin=origin))
        assert read.waiting == count
    await fetcher.close()
