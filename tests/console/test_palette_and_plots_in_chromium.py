"""The palette of Ctrl-K, and the value under the pointer of a plot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nephila_control.http.server import tcp_server

from tests.console.console_rig import console
from tests.console.test_console_in_chromium import HOSTILE, chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]


@asynccontextmanager
async def _open(tmp_path: Any, chromium: str, text: str = "Hello") -> AsyncIterator[Any]:
    async with console(tmp_path, text) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium, locale="en-US") as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            yield page
            assert page.complaints == []
            assert page.foreign == []
        await server.close()


async def test_a_screen_is_reached_by_a_few_letters(tmp_path, chromium):
    async with _open(tmp_path, chromium) as page:
        await page.keyboard.press("Control+k")
        await page.keyboard.type("hst")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/hosts")


async def test_other_words_are_searched_for(tmp_path, chromium):
    async with _open(tmp_path, chromium) as page:
        await page.keyboard.press("Control+k")
        await page.keyboard.type("zzz qqq")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/**q=zzz**")


async def test_hostile_words_in_the_palette_are_text(tmp_path, chromium):
    async with _open(tmp_path, chromium, HOSTILE) as page:
        await page.keyboard.press("Control+k")
        await page.locator("#palette input").fill("<img src=x onerror=\"document.title='canary'\">")
        assert await page.locator("#palette img").count() == 0
        assert await page.title() != "canary"
        await page.keyboard.press("Escape")
        assert not await page.locator("#palette").is_visible()


async def test_a_plot_shows_the_value_under_the_pointer(tmp_path, chromium):
    async with _open(tmp_path, chromium) as page:
        plot = page.locator("figure[data-plot] svg.wide").first
        await plot.scroll_into_view_if_needed()
        box = await plot.bounding_box()
        await page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
        words = await page.locator("figure[data-plot] output").first.inner_text()
        assert "·" in words
        await page.mouse.move(0, 0)
        assert await page.locator(".cross").count() == 0


async def test_a_key_after_g_opens_a_screen_and_is_no_key_of_the_page(tmp_path, chromium):
    """R judges a row of a sample; after g it goes to the rules. In a field the letters are text."""
    async with _open(tmp_path, chromium) as page:
        await page.goto(page.url.partition("/console")[0] + "/console/audit/first")
        await page.keyboard.press("g")
        await page.keyboard.press("r")
        await page.wait_for_url("**/console/rules")
        await page.keyboard.press("/")
        await page.keyboard.type("gj")
        assert await page.locator(".rail .search input").input_value() == "gj"
        await page.keyboard.press("Escape")
        await page.keyboard.press("?")
        shown = page.locator("#palette li", has_text="Jobs").first
        assert await shown.locator("kbd").inner_text() == "g j"
