"""Sitemaps of a seed host, for a job with `sitemaps`: those in its robots.txt, else /sitemap.xml. Pure.

A robots.txt may name a sitemap on another host; that is how the protocol proves the right to list another host's URLs
(sitemaps.org, "Sitemaps & Cross Submits"). Such a sitemap is fetched, but it adds no anchor to the scope, and the scope
judges what it lists. Feeds are found as links are.
"""

from __future__ import annotations

from typing import Final

from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.net.robots import Robots
from nephila.native import UrlError, UrlParts, parse_url

MAX_SITEMAPS: Final = 100
"""Taken from one robots.txt. Larger sites have an index; a file of 500 KiB could name 40,000."""
MAX_URL_CHARS: Final = 8192
DEFAULT_PATH: Final = "/sitemap.xml"


def sitemap_seeds(job: JobSpec, origin: str, robots: Robots | None) -> list[UrlParts]:
    """The sitemaps to fetch for an origin ("https://host"), each once; none when the job wants none.

    `robots` is the origin's robots.txt, None when it has no rules. O(its bytes).
    """
    if not job.sitemaps:
        return []
    named = _named(robots, origin) if robots is not None else []
    return named or [parse_url(origin + DEFAULT_PATH)]


def _named(robots: Robots, origin: str) -> list[UrlParts]:
    """Absolute URLs only, as the protocol demands: it does not define a base for relative ones. Without userinfo."""
    sitemaps: dict[bytes, UrlParts] = {}
    for text in robots.sitemaps:
        if len(sitemaps) >= MAX_SITEMAPS:
            break
        if len(text) > MAX_URL_CHARS:
            continue
        try:
            parts = parse_url(text)
            if "@" in text:
                parts = parse_url(text, origin)
        except UrlError:
            continue
        sitemaps.setdefault(parts.fingerprint, parts)
    return list(sitemaps.values())
