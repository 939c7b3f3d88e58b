"""The bench's Crawlee runner: every page whose URL contains PART, title and links as one JSON line per page.

usage: python run_crawlee.py START_URL PART OUT CONCURRENCY
"""

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import urljoin

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext


async def main() -> None:
    """Crawl with the Parsel crawler and its memory storage."""
    start, part, out, concurrency = sys.argv[1:5]
    most = int(concurrency)
    settings = ConcurrencySettings(min_concurrency=most // 2, max_concurrency=most, desired_concurrency=most)
    crawler = ParselCrawler(concurrency_settings=settings, max_request_retries=0)
    with Path(out).open("w") as lines:  # noqa: ASYNC230 - as the peers write: a line at a time

        @crawler.router.default_handler
        async def handle(context: ParselCrawlingContext) -> None:
            page = context.selector
            links = [urljoin(context.request.url, href) for href in page.css("a::attr(href)").getall()]
            title = page.css("title::text").get(default="").strip()
            row = {
                "url": context.request.url,
                "status": context.http_response.status_code,
                "title": title,
                "links": links,
            }
            lines.write(json.dumps(row) + "\n")
            await context.add_requests([link for link in links if part in link])

        await crawler.run([start])


asyncio.run(main())
