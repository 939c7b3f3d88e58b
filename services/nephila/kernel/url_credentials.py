"""User and password in a URL: where they may not be shown, they are removed. Pure.

http://user:secret@host/ is fetched with its credentials, and so are the relative links of its page. Rows, archives and
indexes have the URL without them; run.json has `KEPT` in their place.
"""

from __future__ import annotations

from collections.abc import Iterable

KEPT = "..."
"""What run.json has in the place of credentials. A resumed crawl finds the URL itself in its frontier."""


def credentials_of(url: str) -> str:
    """The part before the @ of an absolute URL; empty without one. O(authority) for a URL without @."""
    if "@" not in url:
        return ""
    start = url.find("://") + 3
    if start < 3:
        return ""
    end = min((at for at in (url.find(char, start) for char in "/?#\\") if at >= 0), default=len(url))
    return url[start:end].rpartition("@")[0]


def without_credentials(url: str) -> str:
    credentials = credentials_of(url)
    return url.replace(f"//{credentials}@", "//", 1) if credentials else url


def with_credentials(url: str, credentials: str) -> str:
    """The URL with these credentials instead of its own."""
    return url.replace("://", f"://{credentials}@", 1)


def restored(urls: Iterable[str], originals: Iterable[str]) -> list[str]:
    """The URLs, each `redacted` one as it is in `originals`, where it is there."""
    originals_by_url = {redacted(url): url for url in originals}
    return [originals_by_url.get(url, url) if is_redacted(url) else url for url in urls]


def redacted(url: str) -> str:
    """The URL with `KEPT` for its credentials."""
    credentials = credentials_of(url)
    return url.replace(f"//{credentials}@", f"//{KEPT}@", 1) if credentials else url


def is_redacted(url: str) -> bool:
    """Whether `redacted` has removed credentials."""
    return credentials_of(url) == KEPT
