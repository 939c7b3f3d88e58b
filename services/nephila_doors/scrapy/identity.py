"""Two requests of Scrapy are the same if Nephila's identity of URLs says so, as in every crawl.

The page of a URL is its canonical URL; another method, or a body, makes another request of it.
"""

from __future__ import annotations

from hashlib import md5
from typing import Self

from nephila.kernel.runtime.errors import UsageError
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.request import RequestFingerprinter

from nephila_doors.scrapes import url_key


def variant_of(request: Request) -> str:
    """Distinguishes a request from the page of its URL; empty for a plain GET."""
    if request.method == "GET" and not request.body:
        return ""
    return f"{request.method}:{md5(request.body, usedforsecurity=False).hexdigest()}"


def page_url(request: Request) -> str:
    """Removes the fragment, which is never sent."""
    return request.url.partition("#")[0]


class Fingerprinter:
    """REQUEST_FINGERPRINTER_CLASS: returns the key of a URL in every crawl of Nephila. URLs of other schemes get the
    fingerprint of Scrapy."""

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._others = RequestFingerprinter(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Fingerprinter:
        return cls(crawler)

    def fingerprint(self, request: Request) -> bytes:
        """Returns 16 bytes; 20 for a URL that is not http or https."""
        variant = variant_of(request)
        try:
            return bytes.fromhex(url_key(f"{page_url(request)}#!{variant}" if variant else page_url(request)))
        except UsageError:
            return self._others.fingerprint(request)


class DupeFilter(RFPDupeFilter):
    """DUPEFILTER_CLASS for Scrapy's own scheduler. Nephila's scheduler asks its frontier, and needs no filter."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """A REQUEST_FINGERPRINTER_CLASS of the user counts."""
        dupe_filter = super().from_crawler(crawler)
        if not crawler.settings.getpriority("REQUEST_FINGERPRINTER_CLASS"):
            dupe_filter.fingerprinter = Fingerprinter(crawler)
        return dupe_filter
