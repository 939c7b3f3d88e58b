"""The built documentation site in a browser, without a network: search, versions, no text outside of the screen."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.console.test_console_in_chromium import chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
ROOT = Path(__file__).parents[2]
PAGES = ("", "walkthrough/", "architecture/", "operations/", "reference/commands/", "metrics/", "zh/")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Requests are not listed."""


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """The URL of a directory with two versions of the site."""
    from tools import site

    place = tmp_path_factory.mktemp("versions")
    words = [sys.executable, "-m", "tools.site", "--into", str(place)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site.publish(place / site.LATEST, place, "0.0.9")
    handler = partial(Quiet, directory=str(place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


async def test_the_search_box_finds_pages_and_asks_no_other_host(versions, chromium):
    """English words, and Chinese ones, which have no spaces."""
    async with chromium_page(chromium, viewport={"width": 1280, "height": 900}) as page:
        foreign: list[str] = []
        page.on("request", lambda request: foreign.append(request.url) if versions not in request.url else None)
        await page.goto(versions)
        await page.wait_for_url("**/latest/")
        for words, target in (("politeness delay", "politeness"), ("机器人 爬虫", "zh/"), ("egress guard", "security")):
            await page.click("input.md-search__input")
            await page.fill("input.md-search__input", words)
            await page.keyboard.press("End")
            link = page.locator(f".md-search-result__link[href*='{target}']").first
            await link.wait_for(state="attached")
            await page.keyboard.press("Escape")
        assert [url for url in foreign if not url.startswith(("data:", "blob:"))] == []


async def test_the_list_of_versions_leads_to_the_other_one(versions, chromium):
    async with chromium_page(chromium, viewport={"width": 1280, "height": 900}) as page:
        await page.goto(f"{versions}latest/walkthrough/")
        names = page.locator(".md-version__link")
        await names.first.wait_for(state="attached")
        assert [(await one.inner_text()).strip() for one in await names.all()] == ["0.1.0", "0.0.9"]
        await names.nth(1).evaluate("(link) => link.click()")
        await page.wait_for_url("**/0.0/**")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
async def test_no_page_is_wider_than_the_screen(versions, chromium, scheme, width):
    """Wide tables and drawings scroll in their own box. No picture is missing."""
    async with chromium_page(chromium, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
        wrong = []
        page.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 400 else None)
        for path in PAGES:
            await page.goto(f"{versions}latest/{path}")
            root = "document.documentElement"
            if await page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"):
                wrong.append(path)
        assert wrong == []
