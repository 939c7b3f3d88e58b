"""The grid of sites with a keyboard, and a file of a table."""

from __future__ import annotations

import pytest
from nephila_control import site_types
from nephila_control.http.server import tcp_server

from tests.console.console_rig import console
from tests.console.test_console_in_chromium import NARROW_NAMES, SMALL_TEXT, chromium_page
from tests.console.test_sites_are_edited import ASIA, document

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
TABLE = "site,directory,url\nfresh,,\nfresh,x,http://fresh.test/x/\n"


async def test_cells_are_changed_by_keys_and_counted_and_a_file_becomes_a_table(tmp_path, chromium):
    async with console(tmp_path) as rig:
        other = {"name": "world", "url": "http://news.test/world/"}
        await rig.control.apply_sites(site_types.ApplySites(sites=[document(directories=[ASIA, other])]))
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium, locale="en-US") as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            await page.goto(f"{base}sites?edit=1")
            await page.get_by_label("Frequency: news.asia").fill("2h")
            await page.keyboard.press("ArrowDown")
            await page.keyboard.type("3h")
            assert await page.get_by_label("Frequency: news.world").input_value() == "3h"
            assert await page.locator("form[data-grid] output").inner_text() == "2 cells changed"
            await page.get_by_role("button", name="Preview the changes").click()
            await page.get_by_role("heading", name="2 changes, not applied yet").wait_for()
            await page.get_by_role("button", name="Apply").click()
            await page.get_by_text("The change is saved.").wait_for()
            assert await page.locator("table.sites code").all_inner_texts() == ["2h", "3h"]
            await page.goto(f"{base}sites/table")
            await page.locator("#file").set_input_files(
                {"name": "sites.csv", "mimeType": "text/csv", "buffer": TABLE.encode()}
            )
            await page.get_by_role("button", name="Preview the changes").click()
            await page.get_by_role("heading", name="2 changes, not applied yet").wait_for()
            await page.set_viewport_size({"width": 375, "height": 700})
            for path in ("sites", "sites?edit=1", "sites/table", "rules", "rules?name=shop", "system?range=7d"):
                await page.goto(base + path)
                assert await page.evaluate("document.documentElement.scrollWidth") <= 375, path
                assert await page.evaluate(SMALL_TEXT) == [], path
                assert await page.evaluate(NARROW_NAMES) == [], path
            assert (page.complaints, page.foreign) == ([], [])
        await server.close()
