"""A person makes a rule in the studio, in Chromium: clicks and edits are counted; by keyboard; without script."""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from nephila_control.http.server import tcp_server
from nephila_control.requests import Empty
from nephila_rules import fixtures

from tests.console.console_rig import ConsoleRig, console
from tests.console.test_console_in_chromium import chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]


class Person:
    """Counts clicks and edits."""

    def __init__(self, page: Any, base: str) -> None:
        self.page = page
        self.base = base
        self.frame = page.frame_locator("iframe.styled")
        self.count = 0

    async def follow(self, name: str) -> None:
        """Click a link of the console, and wait for what it leads to."""
        self.count += 1
        async with self.page.expect_navigation():
            await self.page.get_by_role("link", name=name, exact=True).first.click()

    async def point_at(self, text: str, nth: int = 0) -> None:
        """Click a text of the page in the frame."""
        self.count += 1
        before = self.page.url
        named = self.frame.get_by_text(text, exact=True).or_(self.frame.get_by_alt_text(text, exact=True))
        await named.nth(nth).click()
        await self.page.wait_for_url(lambda url: "pick" not in url and url != before)
        await self.frame.locator("body").wait_for()

    async def fields(self) -> list[str]:
        """Names of the fields."""
        return [str(one) for one in await self.page.locator(".fields b").all_inner_texts()]

    async def column(self, number: int) -> list[str]:
        """Cells of the table."""
        return [str(one) for one in await self.page.locator(f"#table td:nth-child({number + 2})").all_inner_texts()]


@asynccontextmanager
async def studio(directory: Path, chromium: str, **options: Any) -> AsyncIterator[tuple[Person, ConsoleRig]]:
    """A person who has opened the console of a stored crawl."""
    async with console(directory) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium, **options) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            yield Person(page, base), rig
            assert page.foreign == []
        await server.close()


async def test_five_fields_of_a_shop_take_at_most_fifteen_clicks_and_edits(tmp_path, chromium):
    """From the overview to the running system; the tests that are downloaded hold."""
    async with studio(tmp_path, chromium) as (person, rig):
        page = person.page
        await person.follow("Studio")
        await person.follow("http://shop.test/p/1")
        for text in ("Table 1", "$10.50", "Photo", "1.5 of 5", "new"):
            await person.point_at(text)
        await person.follow("another value of tag")
        await person.point_at("oak")
        assert await person.fields() == ["title", "price", "image", "rating", "tag"]
        assert (await person.column(0))[:2] == ["Table 1", "Table 2"]
        assert (await person.column(4))[0] == "new · oak · no 1"
        assert (await person.column(3)).count("empty") == 4
        await person.follow("Save…")
        async with page.expect_download() as download:
            person.count += 1
            await page.get_by_role("link", name="Download with its tests").click()
        zipfile.ZipFile(await (await download.value).path()).extractall(tmp_path / "rules")
        person.count += 1
        async with page.expect_navigation():
            await page.get_by_role("button", name="Apply to the running system").click()
        assert person.count <= 15, person.count
        rules = {one.name: one for one in (await rig.control.list_rules(Empty())).rules}
        found = rules["shop-test-p"].document["spec"]["fields"]
        assert list(found) == ["title", "price", "image", "rating", "tag"]
        assert found["price"]["type"] == "price"
        assert found["tag"]["all"] is True
    results = fixtures.run([tmp_path / "rules"], scripts=False, write=False)
    assert [one.good for one in results] == [True, True, True]


async def test_the_back_button_takes_one_step_back_and_an_empty_cell_is_mended(tmp_path, chromium):
    """Nothing is lost: the address is the state."""
    async with studio(tmp_path, chromium) as (person, _):
        page = person.page
        await page.goto(f"{person.base}studio?url=http://shop.test/p/1")
        await person.point_at("Table 1")
        await person.point_at("1.5 of 5")
        address = page.url
        await page.go_back()
        assert await person.fields() == ["title"]
        await page.go_forward()
        assert page.url == address
        assert await person.fields() == ["title", "rating"]
        async with page.expect_navigation():
            await page.locator("#table td a").first.click()
        assert "/p/5" in await page.locator(".kicker").inner_text()
        assert await page.locator(".modes [aria-current]").inner_text() == "rating is here"


async def test_a_list_page_gives_one_item_per_box(tmp_path, chromium):
    """Two values of one field, then the box; the link to the next page is the pagination."""
    async with studio(tmp_path, chromium) as (person, _):
        page = person.page
        await page.goto(f"{person.base}studio?url=http://shop.test/list/1")
        await person.point_at("Table 10")
        await person.follow("another value of title")
        await person.point_at("Table 11")
        await person.follow("One item per box")
        await person.point_at("$100.50")
        await person.follow("link to the next page")
        await person.point_at("More")
        assert "Items: .card" in await page.locator(".bench").inner_text()
        assert (await person.column(1))[:2] == ["100.5 USD", "110.5 USD"]
        await person.follow("Save…")
        text = await page.locator("pre code").inner_text()
        assert "each: {css: .card}" in text.replace('"', "")
        assert "pagination: {css: .next}" in text.replace('"', "")


async def test_the_studio_works_by_keyboard_without_script_on_a_small_screen(tmp_path, chromium):
    """In Chinese and in the dark; nothing is wider than the screen."""
    small = {"width": 375, "height": 700}
    options = {"viewport": small, "color_scheme": "dark", "java_script_enabled": False, "locale": "zh-CN"}
    async with studio(tmp_path, chromium, **options) as (person, _):
        page = person.page
        await page.goto(f"{person.base}studio?url=http://shop.test/p/1")
        plain = page.frame_locator("iframe.page:not(.styled)")
        target = plain.get_by_role("link", name="Table 1", exact=True)
        await target.focus()
        before = page.url
        await page.keyboard.press("Enter")
        await page.wait_for_url(lambda url: "pick" not in url and url != before)
        assert await person.fields() == ["title"]
        assert await page.locator("html").get_attribute("lang") == "zh"
        box = await page.locator("body").bounding_box()
        assert box["width"] <= 375
        await page.locator("#name").fill("name")
        async with page.expect_navigation():
            await page.locator(".inline button").click()
        assert await person.fields() == ["name"]
