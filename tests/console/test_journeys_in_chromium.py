"""Two ways through the console in Chromium: an operator at night whose rate fell, and a lead with 200 sites."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nephila_control import screen_types, site_types
from nephila_control.http.server import tcp_server

from tests.console.console_rig import console
from tests.console.test_attention import samples
from tests.console.test_console_in_chromium import chromium_page
from tests.console.test_sites_screen import directory

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]


@asynccontextmanager
async def opened(directory, chromium: str, **options: Any) -> AsyncIterator[Any]:
    """A page on the overview, behind the one-time address."""
    async with console(directory) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        try:
            async with chromium_page(chromium, **options) as page:
                await page.goto(f"http://127.0.0.1:{server.port}/console/login?token={rig.access.sessions.invite()}")
                yield page
                assert page.complaints == []
        finally:
            await server.close()


async def test_an_operator_at_night_finds_why_the_rate_fell(tmp_path, chromium, monkeypatch):
    """On a small dark screen: the overview names it, one click shows the pages, another one why."""

    async def get_series(self, request):
        recent = samples(*[(10, 98, 2)] * 60, *[(10, 4, 16)] * 6)
        return screen_types.Series(
            samples=samples(*[(60, 588, 12)] * 20, *[(60, 24, 96)] * 2), step_s=60, recent=recent
        )

    monkeypatch.setattr("nephila_control.operations.Operations.get_series", get_series)
    small = {"width": 375, "height": 700}
    async with opened(tmp_path, chromium, viewport=small, color_scheme="dark") as page:
        need = page.get_by_role("link", name="The rate fell from 10.0 to 2.0 pages/s; 80 % of the fetches fail")
        assert await need.bounding_box() is not None
        await need.click()
        await page.wait_for_url("**/pages?outcome=failed")
        await page.locator("tbody").get_by_role("link", name="http_404").click()
        await page.wait_for_url("**reason=http_404**")
        await page.get_by_role("link", name="http://a.test/8").click()
        await page.wait_for_url("**/page?url=**")
        assert "In scope" in await page.locator("main").inner_text()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 375
        await page.get_by_role("link", name="Hosts", exact=True).click()
        await page.get_by_role("heading", name="Hosts").wait_for()


async def test_a_lead_of_two_hundred_sites_finds_the_broken_lists(tmp_path, chromium, monkeypatch):
    """From the overview to the lists, by name, to a site's job and its cost, and who changed it."""
    sites = [directory("news" if number == 7 else f"site{number:03}", number % 40 == 7, False) for number in range(200)]

    async def list_directories(self, request):
        return site_types.DirectoryList(directories=sites)

    monkeypatch.setattr("nephila_control.operations.Operations.list_directories", list_directories)
    async with opened(tmp_path, chromium) as page:
        assert await page.get_by_role("link", name="cannot be fetched").count() == 5
        await page.get_by_role("link", name="A list of site news cannot be fetched").click()
        await page.wait_for_url("**/sites?only=broken&q=news")
        rows = page.locator("tbody tr")
        assert await rows.count() == 1
        await page.get_by_role("link", name="Sites", exact=True).click()
        await page.get_by_role("link", name="Next →").click()
        await page.wait_for_url("**/sites?skip=100")
        assert await rows.count() == 100
        await page.get_by_role("searchbox", name="Part of the site").fill("NEWS")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/sites?q=NEWS")
        assert await rows.count() == 1
        await rows.first.get_by_role("link", name="news", exact=True).click()
        await page.wait_for_url("**/jobs/news")
        await page.get_by_role("link", name="System", exact=True).click()
        await page.get_by_role("link", name="Who changed what").click()
        await page.get_by_role("heading", name="Who changed what").wait_for()
        await page.go_back()
        await page.wait_for_url("**/system")
