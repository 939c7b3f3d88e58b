"""Fetches a robots.txt that the frontier asks for, by the downloader and the middlewares of the spider.

Invariant: every lease of a robots.txt is answered, also when its fetch fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from nephila.kernel.runtime.errors import UserError
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro

from nephila_doors.scrapy import protocol
from nephila_doors.scrapy.connection import Connection

log = logging.getLogger(__name__)
PRIORITY = 1000
"""As Scrapy gives it to robots.txt."""
MAX_BYTES = 500 * 1024
"""RFC 9309, 2.5."""


class RobotsFetcher:
    def __init__(self, crawler: Crawler, connection: Connection, on_change: Callable[[], None]) -> None:
        self._crawler = crawler
        self._connection = connection
        self._on_change = on_change
        self.busy = 0
        """Number of fetches in flight."""

    def fetch(self, lease: protocol.Lease) -> None:
        """Begins a fetch; its end is reported."""
        self.busy += 1
        deferred_from_coro(self._fetch(lease))

    async def _fetch(self, lease: protocol.Lease) -> None:
        started_at = time.time()
        ended = protocol.RobotsFetched(lease.url_key, lease.attempt, started_at=started_at)
        try:
            request = Request(
                lease.url,
                priority=PRIORITY,
                callback=NO_CALLBACK,
                meta={"dont_obey_robotstxt": True, "dont_retry": True},
                dont_filter=True,
            )
            response = await self._crawler.engine.download_async(request)
            ended = protocol.RobotsFetched(
                lease.url_key,
                lease.attempt,
                response.status,
                response.body[:MAX_BYTES],
                (response.headers.get("Retry-After") or b"").decode("latin-1"),
                started_at,
            )
        except Exception as error:  # of any middleware
            log.info("%s cannot be fetched: %s", lease.url, error)
        finally:
            self.busy -= 1
        try:
            self._connection.tell(ended)
        except UserError as error:
            log.error("%s", error)
        self._on_change()
