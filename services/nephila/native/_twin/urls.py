"""URLs: WHATWG parsing by url-py (the same Rust crate as the core's) and the canonical profile KEY_VERSION 1."""

from __future__ import annotations

from hashlib import md5
from typing import Final

import url as whatwg

_REASONS: Final[dict[type[Exception], str]] = {
    whatwg.EmptyHost: "empty host",
    whatwg.IdnaError: "invalid international domain name",
    whatwg.InvalidPort: "invalid port",
    whatwg.InvalidIPv4Address: "invalid IPv4 address",
    whatwg.InvalidIPv6Address: "invalid IPv6 address",
    whatwg.InvalidDomainCharacter: "invalid character in the host",
    whatwg.RelativeURLWithoutBase: "relative URL without a base",
    whatwg.RelativeURLWithCannotBeABaseBase: "relative URL with a base that has no hierarchy",
    whatwg.SetHostOnCannotBeABaseURL: "no host can be set on this URL",
}
_TRACKING: Final = frozenset(
    b"gclid gclsrc dclid gbraid wbraid fbclid msclkid yclid twclid ttclid igshid mc_cid mc_eid _hsenc _hsmi mkt_tok "
    b"vero_id li_fat_id _gl _ga".split()
)


class UrlError(ValueError):
    """Not an absolute http(s) URL; the text says why."""


class UnsupportedScheme(UrlError):
    """A good URL, but not one that is fetched over HTTP."""


def _parse(text: str, base: whatwg.URL | None) -> whatwg.URL:
    try:
        return base.join(text) if base is not None else whatwg.URL.parse(text)
    except UnicodeEncodeError:
        raise UrlError("not valid Unicode") from None
    except whatwg.URLError as error:
        raise UrlError(_REASONS.get(type(error), "URL too long")) from None


def _parse_base(base: str | None) -> whatwg.URL | None:
    if base is None:
        return None
    try:
        return _parse(base, None)
    except UrlError as error:
        reason = str(error)
        raise UrlError(reason if reason == "not valid Unicode" else f"base: {reason}") from None


def parse_http(text: str, base: whatwg.URL | None) -> whatwg.URL:
    """Parse an absolute http(s) URL, or a relative one against `base`, and drop its fragment."""
    parsed = _parse(text, base)
    if parsed.scheme not in ("http", "https"):
        raise UnsupportedScheme(f"unsupported scheme '{parsed.scheme}'")
    return parsed.with_fragment(None) if parsed.fragment is not None else parsed


def host_span(href: str) -> tuple[int, int]:
    """Where the host key stands in an http(s) href (ASCII): after userinfo, up to the path."""
    start = href.index("//") + 2
    end = href.index("/", start)
    at = href.rfind("@", start, end)
    return (at + 1 if at >= 0 else start), end


def canonical_of(href: str) -> str:
    """The href in the canonical profile: tracking and empty pieces dropped, the rest sorted by name. O(n log n)."""
    path, mark, query = href.partition("?")
    if not mark:
        return href
    rows = []
    for piece in query.encode().split(b"&"):
        name = piece.partition(b"=")[0]
        lower = name.lower()
        if piece and lower not in _TRACKING and not lower.startswith(b"utm_"):
            rows.append((name, piece))
    rows.sort(key=lambda row: row[0])
    return f"{path}?{b'&'.join(piece for _, piece in rows).decode()}" if rows else path


def fingerprint_of(host_key: str, canonical: str) -> bytes:
    """MD5(host key)[0:4] + MD5(canonical)[0:12]."""
    return (
        md5(host_key.encode(), usedforsecurity=False).digest()[:4]
        + md5(canonical.encode(), usedforsecurity=False).digest()[:12]
    )


class UrlParts:
    """A parsed http(s) URL: what is fetched (`href`) and what it is known by (`canonical`, `fingerprint`)."""

    __slots__ = ("canonical", "host_key", "href", "path_query", "scheme")

    def __init__(self, parsed: whatwg.URL) -> None:
        self.href = str(parsed)
        start, end = host_span(self.href)
        self.host_key = self.href[start:end]
        self.path_query = self.href[end:]
        self.scheme: str = parsed.scheme
        self.canonical = canonical_of(self.href)

    @property
    def fingerprint(self) -> bytes:
        """MD5(host key)[0:4] + MD5(canonical)[0:12]."""
        return fingerprint_of(self.host_key, self.canonical)

    def __repr__(self) -> str:
        return f"UrlParts({self.href!r})"


def parse_url(url: str, base: str | None = None) -> UrlParts:
    """Parse an absolute http(s) URL, or a relative one against `base`; UrlError for anything else. O(n)."""
    return UrlParts(parse_http(url, _parse_base(base)))


def parse_any(url: str, base: str | None = None) -> str:
    """The WHATWG href of a URL of any scheme, fragment kept; UrlError if it does not parse. O(n)."""
    return str(_parse(url, _parse_base(base)))
