"""The one URL parser of the system, as the downloader uses it: text in, WHATWG serialisation out."""

from __future__ import annotations

from url import URL, URLError


class UrlError(ValueError):
    """Not a URL."""


def href_of(url: str, base: str = "") -> str:
    """The href of `url`, resolved against `base` if there is one; `UrlError` when it is none."""
    try:
        return str(URL.parse(base).join(url) if base else URL.parse(url))
    except (URLError, ValueError) as error:
        raise UrlError(f"not a URL: {type(error).__name__}") from None
