"""The styled page of the studio in Chromium: hostile pages run nothing and ask nobody; a shop looks like a shop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from nephila_console.screens.studio_state import draft_of, state_of
from nephila_control.http.server import tcp_server
from nephila_rules.studio.draft import Draft

from tests.console import shop
from tests.console.console_rig import console
from tests.console.hostile_pages import SPELLINGS, pages
from tests.console.styled_shop import styled_shop
from tests.console.test_console_in_chromium import chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
COUNT = "window.ran = 0; window.canary = () => { window.ran += 1 }"

PARTS = 6
"""Runs over which the hostile pages are spread: each page takes half a second."""


@asynccontextmanager
async def counting_server(body: bytes = b"", kind: str = "text/html"):
    """Its host and port, and the heads of the requests that came."""
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n" % kind.encode())
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


def frame_path(rig, url: str) -> str:
    state = state_of(Draft(url))
    return f"studio/{state}~{rig.access.seal.mark(state)}/frame"


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_hostile_page_runs_a_script_or_asks_another_host(tmp_path, chromium, part):
    """Each of 300 alone, as the frame itself: there is no policy of a page around it."""
    async with counting_server() as (host, heads), console(tmp_path) as rig:
        assert len(pages(host)) >= 300
        bodies = pages(host)[part::PARTS]
        urls = [f"http://hostile.test/{number}" for number in range(len(bodies))]
        shop.write(tmp_path, {url: f"<!doctype html>{body}" for url, body in zip(urls, bodies, strict=True)})
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium) as page:
            await page.add_init_script(COUNT)
            asked: list[str] = []
            page.on("request", lambda one: asked.append(one.url))
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            for url, body in zip(urls, bodies, strict=True):
                asked.clear()
                await page.goto(base + frame_path(rig, url))
                ran, title = await page.evaluate("[window.ran, document.title]")
                assert (ran, title) == (0, "The page"), body
                assert [one for one in asked if not one.startswith((base, "data:"))] == [], body
                acting = (
                    "script, iframe, frame, object, embed, base, meta[http-equiv], template, math, [ping], [formaction]"
                )
                assert await page.locator(acting).count() == 1, body
        await server.close()
        assert heads == []


async def test_a_hostile_style_sheet_is_rewritten_and_its_files_are_asked_for_by_the_proxy_alone(tmp_path, chromium):
    """Without cookie and referrer; a picture that is none is not answered."""
    async with counting_server() as (host, heads):
        rules = [f".x{at} {{ background-image: {one} }}" for at, one in enumerate(SPELLINGS)]
        sheet = "\n".join([f"@import '//{host}/i.css';", *rules]).replace("HOST", host)
        async with (
            counting_server(sheet.encode("utf-8"), "text/css") as (sheets, _),
            console(tmp_path, allow_private=True) as rig,
        ):
            boxes = "".join(f"<p class=x{at}>x</p>" for at in range(len(rules)))
            page_text = f"<!doctype html><link rel=stylesheet href='http://{sheets}/a.css'><h1>Page</h1>{boxes}"
            shop.write(tmp_path, {"http://hostile.test/css": page_text})
            server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
            await server.open()
            base = f"http://127.0.0.1:{server.port}/console/"
            async with chromium_page(chromium) as page:
                await page.add_init_script(COUNT)
                asked: list[str] = []
                page.on("request", lambda one: asked.append(one.url))
                await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
                await page.goto(base + frame_path(rig, "http://hostile.test/css"), wait_until="networkidle")
                assert await page.evaluate("window.ran") == 0
                assert [one for one in asked if not one.startswith((base, "data:"))] == []
                assert any("/file/" in one for one in asked)
            await server.close()
        assert heads
        for head in heads:
            assert "nephila" in head.lower()
            assert "cookie:" not in head.lower()
            assert "referer:" not in head.lower()


async def test_a_page_has_its_styles_and_pictures_and_a_click_on_a_box_is_a_field(tmp_path, chromium):
    """The box of an element, not only its text; after the click the page has its place and its mark."""
    async with styled_shop(tmp_path) as (_, asked), console(tmp_path, allow_private=True) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            await page.goto(f"{base}studio?url={shop.HOST}/s/3")
            frame = page.frame_locator("iframe.styled")
            style = "(one) => [getComputedStyle(one).backgroundColor, getComputedStyle(one).fontFamily]"
            assert await frame.locator("body").evaluate(style) == ["rgb(250, 246, 238)", "Georgia, serif"]
            await page.wait_for_load_state("networkidle")
            assert await frame.locator("img").evaluate("(one) => one.naturalWidth") == 160
            before = page.url
            await frame.locator(".price").click(position={"x": 5, "y": 5})
            await page.wait_for_url(lambda url: url != before and "pick" not in url)
            assert draft_of(page.url.rpartition("/")[2]).fields[0].name == "price"
            assert await frame.locator(".price").get_attribute("data-nephila-field") == "0"
            assert (page.complaints, page.foreign) == ([], [])
        await server.close()
        assert {"/css/shop.css", "/css/colours.css", "/img/table.svg", "/img/paper.png"} <= set(asked)


async def test_the_plain_page_is_one_click_away_and_there_without_script(tmp_path, chromium):
    """And offered where no style sheet can be had."""
    async with styled_shop(tmp_path), console(tmp_path) as rig:  # private addresses are closed
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            await page.goto(f"{base}studio?url={shop.HOST}/s/3")
            await page.locator("[data-unstyled]").wait_for()
            await page.get_by_role("link", name="Show its texts alone").first.click()
            frame = page.frame_locator("iframe.page")
            await frame.get_by_role("link", name="Table 3", exact=True).click()
            await page.wait_for_url(lambda url: "pick" not in url)
            await page.locator(".fields b").wait_for()
            assert draft_of(page.url.rpartition("/")[2]).plain
        async with chromium_page(chromium, java_script_enabled=False) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            await page.goto(f"{base}studio?url={shop.HOST}/s/3")
            assert not await page.locator("iframe.styled").is_visible()
            link = page.frame_locator("iframe.page:not(.styled)").get_by_role("link", name="Table 3", exact=True)
            await link.click()
            await page.wait_for_url(lambda url: "pick" not in url)
            assert await page.locator(".fields b").all_inner_texts() == ["name"]
        await server.close()
