"""URLs of single-page applications: for jobs that follow `route`, a fragment beginning with `#/` or `#!` identifies a
page.

In other jobs a fragment is no part of a URL. With routes, href and canonical form contain the route; `#`, `#/`, `#!`,
`#!/` alone and other fragments are dropped as usual. Invariants: URLs without a route have the same identity in every
job; host key, and so host and partition, do not depend on the route; HTTP requests and robots.txt rules
use the URL without the route.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final, NamedTuple

from nephila.native import UrlParts, parse_any, parse_url

ROUTE: Final = "route"
"""The value of `parse.follow` that enables routes."""
FORM: Final = "!post:"
"""Begin of a route that is a form, application/x-www-form-urlencoded. It is sent if the URL's context allows it."""
_BEGINS: Final = ("/", "!")


class Routed(NamedTuple):
    """A URL with its route; it has the attributes of `UrlParts`."""

    href: str
    host_key: str
    canonical: str
    fingerprint: bytes
    scheme: str
    path_query: str
    """Path and query without the route."""


def parse_routed(url: str, base: str | None = None) -> UrlParts | Routed:
    """As `parse_url`, but keeps the route. Raises `UrlError`. O(n); a URL without "#" costs nothing more."""
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
    """Whether a fragment (without "#") is a route."""
    return fragment.startswith(_BEGINS) and fragment not in ("/", "!", "!/")


def parse_for(routes: bool, url: str) -> UrlParts | Routed:
    """An absolute URL with the identity that a job with or without routes gives it. Raises `UrlError`."""
    return parse_routed(url) if routes else parse_url(url)


def redirected(routes: bool, location: str, source: str) -> UrlParts | Routed:
    """The target of a redirect of `source`. If the target has no fragment, the route of `source` stays, as in browsers
    (Fetch, "location URL"). Raises `UrlError`."""
    if not routes or "#" in location:
        return parse_for(routes, location)
    _, mark, route = source.partition("#")
    return parse_routed(location + mark + route)


def form_of(url: str) -> str | None:
    """The form that is the route of a URL; None if there is none."""
    route = url.partition("#")[2]
    return route.removeprefix(FORM) if route.startswith(FORM) else None
