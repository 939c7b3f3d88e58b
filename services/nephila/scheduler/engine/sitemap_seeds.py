"""Where a job with `sitemaps` looks for the sitemaps of a seed host: what robots.txt names, else /sitemap.xml. Pure.

A robots.txt may name a sitemap on another host: that is how the protocol proves the right to list another's URLs
(sitemaps.org, "Sitemaps & Cross Submits"). It is fetched for that, but it is no place the user named: whoever admits it
must not anchor the scope there, and what it lists is judged by the scope as always. Feeds are found as links are.
"""

from __future__ import annotations

from typing import Final

from nephila.kernel.messages import CrawlJob
from nephila.kernel.net.robots import Robots
from nephila.native import UrlError, UrlParts, parse_url

MAX_SITEMAPS: Final = 100
"""Taken from one robots.txt; sites with more have an index, and a file of 500 KiB could name 40,000."""
MAX_URL_CHARS: Final = 8192
DEFAULT_PATH: Final = "/sitemap.xml"


def sitemap_seeds(job: CrawlJob, origin: str, robots: Robots | None) -> list[UrlParts]:
    """The sitemaps to fetch for an origin ("https://host"), each once; none when the job does not want any.

    `robots` is the origin's robots.txt, None when it has none that says anything. O(bytes of it).
    """
    if not job.sitemaps:
        return []
    named = _named(robots, origin) if robots is not None else []
    return named or [parse_url(origin + DEFAULT_PATH)]


def _named(robots: Robots, origin: str) -> list[UrlParts]:
    """Absolute ones only, as the protocol asks: against what a relative one would resolve nobody has said. Without
    userinfo, as any link."""
    found: dict[bytes, UrlParts] = {}
    for text in robots.sitemaps:
        if len(found) >= MAX_SITEMAPS:
            break
        if len(text) > MAX_URL_CHARS:
            continue
        try:
            parts = parse_url(text)
            if "@" in text:
                parts = parse_url(text, origin)
        except UrlError:
            continue
        found.setdefault(parts.fingerprint, parts)
    return list(found.values())
