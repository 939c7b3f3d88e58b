"""The popover at a clicked element of the studio: what else the click could mean, one click away."""

from __future__ import annotations

import pytest
from nephila_console.screens.studio_state import draft_of
from nephila_control.http.server import tcp_server

from tests.console import shop
from tests.console.console_rig import console
from tests.console.styled_shop import styled_shop
from tests.console.test_console_in_chromium import chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]


async def test_a_click_is_given_another_meaning_beside_it(tmp_path, chromium):
    async with styled_shop(tmp_path), console(tmp_path, allow_private=True) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium, locale="en-US") as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            await page.goto(f"{base}studio?url={shop.HOST}/s/3")
            popover, price = page.locator("[data-popover]"), page.frame_locator("iframe.styled").locator(".price")

            async def follow(action) -> None:
                before = page.url
                await action.click()
                await page.wait_for_url(lambda url: url != before and "pick" not in url)

            def draft():
                return draft_of(page.url.rpartition("/")[2].partition("?")[0])

            assert not await popover.is_visible()
            await follow(price)
            await popover.wait_for()
            assert await popover.locator("a:visible").all_inner_texts() == ["a new field", "link to the next page"]
            near, clicked = await popover.bounding_box(), await price.bounding_box()
            assert abs(near["y"] - clicked["y"]) < 200
            await follow(page.frame_locator("iframe.styled").locator("h1"))
            await popover.wait_for()
            assert draft().fields[0].name == "price"
            await follow(popover.get_by_text("another value of price"))
            assert [(field.name, len(field.picks)) for field in draft().fields] == [("price", 2)]
            await page.keyboard.press("Escape")
            assert not await popover.is_visible()
            await page.reload()
            assert not await popover.is_visible()
            assert (page.complaints, page.foreign) == ([], [])
        await server.close()
