"""Rivals of bench_browser.py, each a small program that renders pages 0 to N - 1 of a site and writes JSON lines.

    python browser_rivals.py playwright|crawlee|crawl4ai START_URL PAGES CONCURRENCY OUT

Each waits until the network is idle, as nephila does, and writes URL, title, text and links. It needs no other file, so
it runs in the environment of the rival.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]


async def run_playwright(urls: list[str], concurrency: int, out: Any) -> None:
    """The plain library: one browser, a context per page."""
    from playwright.async_api import async_playwright

    waiting = iter(urls)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)

        async def worker() -> None:
            for url in waiting:
                context = await browser.new_context()
                page = await context.new_page()
                await page.goto(url, wait_until="networkidle")
                _write(out, url, await page.title(), await page.inner_text("body"), await _links(page))
                await context.close()

        await asyncio.gather(*(worker() for _ in range(concurrency)))
        await browser.close()


async def run_crawlee(urls: list[str], concurrency: int, out: Any) -> None:
    """Crawlee's PlaywrightCrawler."""
    from crawlee import ConcurrencySettings
    from crawlee.crawlers import PlaywrightCrawler

    crawler = PlaywrightCrawler(
        headless=True,
        browser_launch_options={"executable_path": CHROMIUM, "args": ARGUMENTS},
        concurrency_settings=ConcurrencySettings(
            min_concurrency=concurrency, max_concurrency=concurrency, desired_concurrency=concurrency
        ),
    )

    @crawler.router.default_handler
    async def handle(context: Any) -> None:
        page = context.page
        await page.wait_for_load_state("networkidle")
        _write(out, context.request.url, await page.title(), await page.inner_text("body"), await _links(page))

    await crawler.run(urls)


async def run_crawl4ai(urls: list[str], concurrency: int, out: Any) -> None:
    """Crawl4AI. It has no setting for the executable, so the default of Playwright's `launch` is changed."""
    from playwright.async_api import BrowserType

    launch = BrowserType.launch

    async def launch_installed(self: Any, **options: Any) -> Any:
        options.pop("channel", None)
        return await launch(self, **{**options, "executable_path": CHROMIUM})

    BrowserType.launch = launch_installed  # type: ignore[method-assign]
    from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig
    from crawl4ai.async_dispatcher import SemaphoreDispatcher

    browser = BrowserConfig(headless=True, browser_type="chromium", extra_args=ARGUMENTS, verbose=False)
    config = CrawlerRunConfig(wait_until="networkidle", cache_mode=CacheMode.BYPASS, verbose=False)
    async with AsyncWebCrawler(config=browser) as crawler:
        dispatcher = SemaphoreDispatcher(semaphore_count=concurrency)
        for found in await crawler.arun_many(urls, config=config, dispatcher=dispatcher):
            links = [link["href"] for kind in found.links.values() for link in kind]
            _write(out, found.url, (found.metadata or {}).get("title", ""), found.html or "", links)


async def _links(page: Any) -> list[str]:
    links: list[str] = await page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")
    return links


def _write(out: Any, url: str, title: str, text: str, links: list[str]) -> None:
    out.write(json.dumps({"url": url, "title": title, "text": text, "links": links}) + "\n")
    out.flush()


RIVALS = {"playwright": run_playwright, "crawlee": run_crawlee, "crawl4ai": run_crawl4ai}


def main() -> None:
    """Run one rival."""
    name, start, pages, concurrency, path = sys.argv[1:]
    urls = [f"{start}{number}" for number in range(int(pages))]
    with open(path, "w", encoding="utf-8") as out:
        asyncio.run(RIVALS[name](urls, int(concurrency), out))


if __name__ == "__main__":
    main()
