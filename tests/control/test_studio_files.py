"""Files of the pages that the studio shows: only those that a page names, of a listed type, once, and bounded."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from nephila.downloader.fetch_page import config_of
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila_control import studio_files
from nephila_control.api import NotFound
from nephila_control.studio_files import StudioFiles
from nephila_rules.studio.styled.pieces import NamedFile, Pieces
from nephila_rules.studio.work import StudioProcess

from tests.console.asked_site import asked_site
from tests.console.styled_shop import PIXEL, SVG

SITE: dict[str, str | bytes] = {
    "/a.css": "@import 'b.css'; p { background: url(p.png) }",
    "/b.css": "@import 'a.css';",
    "/p.png": PIXEL,
    "/v.svg": SVG,
    "/page.png": "<html><script>run()</script>",
    "/sheet": "p {}",
    "/private/p.png": PIXEL,
}


@asynccontextmanager
async def files(**settings):
    """The files of a page over a site, its base URL and the paths that were asked for."""
    allowed = {"dns.allow_private": True} if settings.pop("private", True) else {}
    clock, process = ManualClock(), StudioProcess()
    async with asked_site(lambda path: SITE.get(path, "none"), "User-agent: *\nDisallow: /private") as (base, asked):
        yield StudioFiles(lambda: config_of(allowed), process, clock), base, asked, clock
    await asyncio.to_thread(process.close)


def listed(files: StudioFiles, *named: NamedFile, url: str = "http://a.test/") -> str:
    """The id of a page that names these files, with the numbers 1, 2, …"""
    html = files.listed(url, b"body", Pieces(["<img>"] * (len(named) + 1), list(named)))
    return html.split("../file/")[1].split("/")[0]


async def test_a_style_sheet_names_its_files_by_number_and_a_circle_ends():
    async with files() as (proxy, base, asked, _):
        page = listed(proxy, NamedFile("style", f"{base}/a.css"))
        first = await proxy.file(page, 1)
        assert first.content_type == "text/css; charset=utf-8"
        assert first.body == b'@import url("2"); p { background: url("3") }'
        assert (await proxy.file(page, 2)).body == b'@import url("1");'
        assert (await proxy.file(page, 3)).content_type == "image/png"
        await proxy.file(page, 1)
        assert sorted(path for path in asked if path != "/robots.txt") == ["/a.css", "/b.css", "/p.png"]


async def test_the_same_page_has_the_same_addresses_and_what_no_page_names_has_none():
    async with files() as (proxy, base, asked, clock):
        picture = NamedFile("media", f"{base}/p.png")
        page = listed(proxy, picture)
        assert listed(proxy, picture) == page
        assert listed(proxy, picture, url="http://a.test/other") != page
        for wrong in ((page, 0), (page, 2), (page[:-1], 1), ("", 1)):
            with pytest.raises(NotFound):
                await proxy.file(*wrong)
        clock.advance(studio_files.PAGE_S + 1)
        with pytest.raises(NotFound):
            await proxy.file(page, 1)
        assert asked == []


@pytest.mark.parametrize(
    ("kind", "path", "words"),
    [
        ("media", "/page.png", "no picture or font"),
        ("media", "/a.css", "no picture or font"),
        ("style", "/p.png", "no style sheet, but image/png"),
        ("style", "/sheet", "no style sheet, but text/plain"),
        ("media", "/private/p.png", "denied"),
    ],
)
async def test_what_is_of_another_type_or_forbidden_is_not_answered(kind, path, words):
    """The type of a picture is what its bytes say."""
    async with files() as (proxy, base, _, _clock):
        with pytest.raises(UserError, match=words):
            await proxy.file(listed(proxy, NamedFile(kind, base + path)), 1)


async def test_a_private_address_is_refused():
    async with files(private=False) as (proxy, base, asked, _):
        with pytest.raises(UserError, match="non-public address"):
            await proxy.file(listed(proxy, NamedFile("media", f"{base}/p.png")), 1)
        assert asked == []


async def test_a_failure_is_kept_for_a_minute():
    async with files() as (proxy, base, asked, clock):
        page = listed(proxy, NamedFile("media", f"{base}/page.png"))
        for fetches, passed_s in ((1, 0.0), (1, studio_files.FAILURE_S - 1), (2, 2.0)):
            clock.advance(passed_s)
            with pytest.raises(UserError, match="no picture or font"):
                await proxy.file(page, 1)
            assert asked.count("/page.png") == fetches


async def test_svg_is_written_anew_and_data_urls_are_files_as_well():
    async with files() as (proxy, base, _, _clock):
        vector = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' onload='x()'%3E%3Crect/%3E%3C/svg%3E"
        page = listed(
            proxy,
            NamedFile("media", f"{base}/v.svg"),
            NamedFile("media", vector),
            NamedFile("style", "data:text/css;base64,cHt9"),
            NamedFile("media", "data:text/html,<script>x()</script>"),
            NamedFile("media", "data:image/png;base64,%"),
        )
        for number in (1, 2):
            answer = await proxy.file(page, number)
            assert answer.content_type == "image/svg+xml"
            assert b"<rect" in answer.body
            assert not {b"script", b"onload"} & set(answer.body.replace(b"=", b" ").replace(b"<", b" ").split())
        assert (await proxy.file(page, 3)).body == b"p{}"
        for number in (4, 5):
            with pytest.raises(UserError):
                await proxy.file(page, number)


async def test_one_fetch_serves_all_who_ask_and_a_viewer_that_leaves_does_not_end_it():
    async with files() as (proxy, base, asked, _):
        page = listed(proxy, NamedFile("media", f"{base}/p.png"))
        first = asyncio.ensure_future(proxy.file(page, 1))
        others = [asyncio.ensure_future(proxy.file(page, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        assert {(await other).body for other in others} == {PIXEL}
        assert asked.count("/p.png") == 1


async def test_bytes_of_a_page_of_the_cache_and_the_number_of_pages_are_bounded(monkeypatch):
    monkeypatch.setattr(studio_files, "MAX_PAGE_BYTES", 2 * len(PIXEL))
    monkeypatch.setattr(studio_files, "MAX_CACHE_BYTES", len(PIXEL))
    monkeypatch.setattr(studio_files, "PAGES", 2)
    async with files() as (proxy, base, asked, _):
        named = [NamedFile("media", f"{base}/p.png?{number}") for number in range(4)]
        SITE.update({f"/p.png?{number}": PIXEL for number in range(4)})
        page = listed(proxy, *named)
        for number in (1, 2, 3):
            await proxy.file(page, number)
        with pytest.raises(UserError, match="the rest is not shown"):
            await proxy.file(page, 4)
        assert listed(proxy, *named) == page
        await proxy.file(page, 1)
        assert asked.count("/p.png?0") == 2, "the cache has room for one"
        for number in range(2):
            listed(proxy, *named, url=f"http://a.test/{number}")
        with pytest.raises(NotFound):
            await proxy.file(page, 1)
