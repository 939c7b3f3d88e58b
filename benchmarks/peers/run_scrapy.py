"""The bench's Scrapy runner: every page whose URL contains PART, title and links as one JSON line per page.

usage: python run_scrapy.py START_URL PART OUT CONCURRENCY
"""

import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess


class Pages(scrapy.Spider):
    """Follows every link into the web; Scrapy's own filter drops those it has seen."""

    name = "pages"

    def __init__(self, start: str, part: str) -> None:
        super().__init__()
        self.first, self.part = start, part

    async def start(self) -> AsyncIterator[Any]:
        """The start URL, filtered like every other (Scrapy's default would fetch it twice)."""
        yield scrapy.Request(self.first)

    def parse(self, response: Any) -> Iterator[Any]:
        """One row, and a request per link."""
        links = [response.urljoin(href) for href in response.css("a::attr(href)").getall()]
        title = response.css("title::text").get(default="").strip()
        yield {"url": response.url, "status": response.status, "title": title, "links": links}
        for link in links:
            if self.part in link:
                yield scrapy.Request(link)


def main() -> None:
    """Crawl with Scrapy by its manual's advice for broad crawls."""
    start, part, out, concurrency = sys.argv[1:5]
    process = CrawlerProcess(
        {
            "LOG_LEVEL": "WARNING",
            "CONCURRENT_REQUESTS": int(concurrency),
            "CONCURRENT_REQUESTS_PER_DOMAIN": int(concurrency),
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
            "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
            "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
            "FEEDS": {out: {"format": "jsonlines", "overwrite": True}},
        }
    )
    process.crawl(Pages, start=start, part=part)
    process.start()


main()
