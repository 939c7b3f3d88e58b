"""Every screen with 260 hostile texts in every field, in Chromium: no script runs, no other server is asked."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_console.application import SCREENS, routes
from nephila_console.logins import Access
from nephila_control.access.authority import Authority
from nephila_control.http.application import application
from nephila_control.http.server import tcp_server

from tests.console.console_rig import Browser
from tests.console.hostile_control import HostileControl
from tests.console.hostile_texts import CLASSES, texts
from tests.console.test_console_in_chromium import chromium_page
from tests.console.test_screens import PATHS

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
FURTHER = ("/pages?q=fox&skip=7", "/pages?notice=<script>canary()</script>", "/page?url=javascript:canary()",
           "/search?q=<script>canary()</script>", "/nothing/<script>canary()</script>",
           "/login?token=<script>canary()</script>")  # fmt: skip
BYTES = 5_000_000


@asynccontextmanager
async def canary_server():
    """A server that nothing may ask: its port, and the requests that came."""
    hits = []

    async def take(reader, writer):
        hits.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], hits


@asynccontextmanager
async def served(control):
    """The console over this API: its address and one that opens it."""
    allowed = Access(Authority(control, ()), (), ManualClock())
    server = tcp_server(application(control, authority=allowed.authority, beside=routes(allowed)), "127.0.0.1", 0, "-")
    await server.open()
    base = f"http://127.0.0.1:{server.port}/console"
    try:
        yield base, f"{base}/login?token={allowed.sessions.invite()}"
    finally:
        await server.close()


def test_there_are_more_than_200_texts_and_each_is_there_once():
    """Of all classes."""
    assert len(set(texts("x"))) == sum(map(len, CLASSES.values())) > 200


async def test_nothing_of_a_stranger_runs_or_is_loaded(chromium):
    """Any field of any answer of the API may be hostile, and what stands in the address as well."""
    async with (
        canary_server() as (port, hits),
        chromium_page(chromium) as page,
        served(HostileControl(texts(f"127.0.0.1:{port}"))) as (base, opens),
    ):
        await page.add_init_script("window.ran = 0; window.canary = () => { window.ran += 1 }")
        dialogs, shown = [], 0
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        await page.goto(opens)
        for path in (*PATHS, *FURTHER):
            await page.goto(base + path)
            await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            assert await page.evaluate("window.ran") == 0, path
            foreign = await page.evaluate(
                "[...document.querySelectorAll('main :is(script, style, link, iframe:not([sandbox]), object, embed,"
                ' img:not([src^="/console/page/screenshot"]), video, audio, base, meta, image, use, foreignObject,'
                ' template, form:not([action^="/console"])),'
                ' main a[href]:not([href^="/console"]):not([href^="http"])\')].map((one) => one.outerHTML)'
            )
            assert foreign == [], path
            shown += (await page.inner_text("body")).count("canary()")
        assert (hits, dialogs, page.foreign) == ([], [], [])
        assert shown > 1000, "the texts were shown"


async def test_a_title_of_5_megabytes_makes_no_large_page():
    """Neither in a list of 50 nor on its own screen."""
    control = HostileControl(["<b>x"] * 50, title="<img src=x>" * (BYTES // 11))
    allowed = Access(Authority(control, ()), (), ManualClock())
    browser = Browser(application(control, authority=allowed.authority, beside=routes(allowed)))
    await browser.get(f"/console/login?token={allowed.sessions.invite()}")
    sizes = {path: len((await browser.get(f"/console{path}")).text) for path in PATHS}
    assert {path: size for path, size in sizes.items() if size > 300_000} == {}


def test_each_screen_is_among_these():
    """A new screen is hostile from its first day."""
    assert len(PATHS) >= len([path for method, path, _ in SCREENS if method == "GET"]) - 5
