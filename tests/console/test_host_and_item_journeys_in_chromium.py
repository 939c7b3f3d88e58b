"""Ways through the console in Chromium, with counted clicks: a host that has to go slower, items for a spreadsheet."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from nephila_control.http.server import tcp_server
from nephila_control.screen_types import ListHosts

from tests.console.console_rig import ConsoleRig, console
from tests.console.test_console_in_chromium import chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]


class Person:
    """Counts clicks."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.clicks = 0

    async def click(self, role: str, name: str) -> None:
        """Clicks something that leads to a page, and waits for that page."""
        self.clicks += 1
        async with self.page.expect_navigation():
            await self.page.get_by_role(role, name=name, exact=True).first.click()


@asynccontextmanager
async def person(directory: Path, chromium: str, **options: Any) -> AsyncIterator[tuple[Person, ConsoleRig]]:
    """Somebody on the overview."""
    async with console(directory) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        try:
            async with chromium_page(chromium, **options) as page:
                await page.goto(f"http://127.0.0.1:{server.port}/console/login?token={rig.access.sessions.invite()}")
                yield Person(page), rig
                assert page.complaints == []
        finally:
            await server.close()


@pytest.mark.parametrize("width", [1280, 375])
async def test_a_host_is_paused_slowed_and_resumed_in_six_clicks(tmp_path, chromium, width):
    """From the overview; the list says that it is paused, and lets it go on."""
    async with person(tmp_path, chromium, viewport={"width": width, "height": 800}) as (operator, rig):
        page = operator.page

        async def pace() -> tuple[bool, float]:
            (host,) = (await rig.control.list_hosts(ListHosts(name="a.test"))).hosts
            return host.held_s > 0, host.least_delay_s

        await operator.click("link", "Hosts")
        await operator.click("link", "a.test")
        await operator.click("button", "Pause")
        await page.get_by_text("A person has paused it for").wait_for()
        assert await pace() == (True, 0.0)
        await page.get_by_label("At least").fill("20")
        await operator.click("button", "Set")
        assert await pace() == (True, 20.0)
        await operator.click("link", "Hosts")
        await page.get_by_text("a person has paused it").wait_for()
        await operator.click("button", "Resume")
        assert await pace() == (False, 20.0)
        assert operator.clicks <= 6
        assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_items_are_filtered_sorted_and_exported_in_five_clicks(tmp_path, chromium):
    """The file has the items of the filter and no others; the chip of the filter takes it back."""
    async with person(tmp_path, chromium) as (analyst, _):
        with closing(sqlite3.connect(tmp_path / "nephila.db")) as database:
            (key,) = database.execute("SELECT url_key FROM items WHERE job = 'news'").fetchone()
            data = {number: f'{{"name": "n{number}", "price": {number}}}' for number in range(1, 40)}
            rows = [("news", key, "shop", 1, number, text) for number, text in data.items()]
            database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.commit()
        page = analyst.page
        await analyst.click("link", "Items")
        await page.get_by_label("Field", exact=True).fill("price")
        await page.get_by_label("Comparison").select_option("above")
        await page.get_by_label("Value", exact=True).fill("30")
        await analyst.click("button", "Search")
        assert await page.locator("tbody tr").count() == 9
        await analyst.click("link", "price")
        assert (await page.locator("tbody tr").first.inner_text()).rstrip().endswith("31")
        analyst.clicks += 1
        await page.get_by_text("Export", exact=True).click()
        async with page.expect_download() as download:
            analyst.clicks += 1
            await page.get_by_role("link", name="CSV, for a spreadsheet").click()
        await (await download.value).save_as(tmp_path / "items.csv")
        text = (tmp_path / "items.csv").read_text("utf-8-sig")
        exported = list(csv.DictReader(text.splitlines()))
        assert sorted(float(row["price"]) for row in exported) == [float(number) for number in range(31, 40)]
        assert analyst.clicks <= 5
        await page.keyboard.press("Escape")
        await page.get_by_title("Remove this filter").first.click()
        await page.wait_for_url(lambda url: "where" not in url)
        assert await page.locator("tbody tr").count() == 40
