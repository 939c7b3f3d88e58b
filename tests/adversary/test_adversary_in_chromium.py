"""One Chromium behind the gateway loads every adversary, a third also as sub-requests, and still renders a page."""

from __future__ import annotations

import asyncio

import pytest
from adversary_server import CASES, LIMITS, PAGE
from gateway_client import client_of
from nephila_browser.gateway.chromium_flags import chromium_flags

from tests.contracts.fetcher_server import Server, response

SUB_REQUESTS = response(
    b"<title>start</title><link rel=stylesheet href=/css><script src=/js></script><iframe src=/frame></iframe>"
    b"<script>fetch('/data').then(r => r.text()).catch(() => 0).then(() => document.title = 'done')</script>",
    "Content-Type: text/html",
)
GOOD = response(PAGE, "Content-Type: text/html")


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_one_browser_survives_all(chromium: str) -> None:
    """Each load ends within its time; afterwards the same browser renders a page."""
    from playwright.async_api import Error, async_playwright

    async with async_playwright() as playwright, Server(GOOD) as server, client_of(server, **LIMITS) as client:
        browser = await playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-dev-shm-usage", *chromium_flags(client.address)],
        )

        async def load(wait_for_title: str = "") -> str:
            client.register("http://bad.test/bad", total_s=10.0)
            proxy = f"http://{client.address.host}:{client.address.port}"
            user, password = client.credentials
            context = await browser.new_context(proxy={"server": proxy, "username": user, "password": password})
            try:
                page = await context.new_page()
                await page.goto("http://bad.test/bad", timeout=15_000, wait_until="domcontentloaded")
                if wait_for_title:
                    await page.wait_for_function(f"document.title == '{wait_for_title}'", timeout=15_000)
                return await page.content()
            except Error as error:
                return str(error)
            finally:
                await context.close()
                client.result()

        for number, case in enumerate(CASES):
            server.answers = [case.answer]
            await asyncio.wait_for(load(), 30)
            if number % 3 == 0:
                server.answers = [SUB_REQUESTS, case.answer]
                await asyncio.wait_for(load("done"), 30)
        server.answers = [GOOD]
        assert "a page" in await load()
        await browser.close()
