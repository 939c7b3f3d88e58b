"""URLs of single-page applications: what stands behind `#/` or `#!` names a page of its own, where a job says so.

Everywhere else a fragment is no part of a URL. A job that follows `route` knows its URLs by href and canonical form
*with* the route; `#`, `#/`, `#!` and `#!/` alone, and fragments that begin otherwise, are dropped as ever. Invariants:
URLs without a route have the identity they have in every other job; host key, and so host and
partition, are the same with a route and without; what is asked of a server, and of robots.txt, has no route.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final, NamedTuple

from nephila.kernel.messages import CrawlJob
from nephila.native import UrlParts, parse_any, parse_url

ROUTE: Final = "route"
"""What a job says in `parse.follow`."""
_BEGINS: Final = ("/", "!")


class Routed(NamedTuple):
    """A URL with its route; attributes as those of `UrlParts`."""

    href: str
    host_key: str
    canonical: str
    fingerprint: bytes
    scheme: str
    path_query: str
    """Without the route."""


def keeps_routes(job: CrawlJob) -> bool:
    """Whether routes are part of the URLs of a job."""
    return job.parse is not None and ROUTE in job.parse.follow


def parse_routed(url: str, base: str | None = None) -> UrlParts | Routed:
    """As `parse_url`, but a route is kept. Raises `UrlError`. O(n); a URL without "#" costs nothing more."""
    parts = parse_url(url, base)
    if "#" not in url:
        return parts
    route = parse_any(url, base).partition("#")[2]
    if not is_route(route):
        return parts
    canonical = f"{parts.canonical}#{route}"
    key = parts.fingerprint[:4] + md5(canonical.encode(), usedforsecurity=False).digest()[:12]
    return Routed(f"{parts.href}#{route}", parts.host_key, canonical, key, parts.scheme, parts.path_query)


def is_route(fragment: str) -> bool:
    """Whether a fragment (without "#") names a page."""
    return fragment.startswith(_BEGINS) and fragment not in ("/", "!", "!/")


def parse_for(job: CrawlJob, url: str) -> UrlParts | Routed:
    """An absolute URL as a job knows it. Raises `UrlError`."""
    return parse_routed(url) if keeps_routes(job) else parse_url(url)


def redirected(job: CrawlJob, location: str, source: str) -> UrlParts | Routed:
    """Where a redirect of `source` leads; a route stays where the target has no fragment, as in browsers (Fetch,
    "location URL"). Raises `UrlError`."""
    if not keeps_routes(job) or "#" in location:
        return parse_for(job, location)
    _, mark, route = source.partition("#")
    return parse_routed(location + mark + route)
