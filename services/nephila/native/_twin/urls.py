"""URLs: WHATWG parsing by url-py (the same Rust crate as the core's) and the canonical profile KEY_VERSION 1."""

from __future__ import annotations

import re
from hashlib import md5
from string import ascii_lowercase
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
TRIM: Final = "".join(map(chr, range(0x21)))
_NEWLINES: Final = re.compile(r"[\t\n\r]")
_AUTHORITY: Final = re.compile(r"(?:[A-Za-z0-9+.-]*:)?[/\\]*([^/\\?#]+)")
_SPECIAL: Final = frozenset(("http", "https", "ws", "wss", "ftp"))
_TRACKING: Final = frozenset(
    b"gclid gclsrc dclid gbraid wbraid fbclid msclkid yclid twclid ttclid igshid mc_cid mc_eid _hsenc _hsmi mkt_tok "
    b"vero_id li_fat_id _gl _ga".split()
)


class UrlError(ValueError):
    """Not an absolute http(s) URL; the text says why."""


class UnsupportedScheme(UrlError):
    """A good URL, but not one that is fetched over HTTP."""


def _crate(text: str, base: whatwg.URL | None) -> whatwg.URL:
    try:
        return base.join(text) if base is not None else whatwg.URL.parse(text)
    except UnicodeEncodeError:
        raise UrlError("not valid Unicode") from None


def _href(parsed: whatwg.URL, fragment: bool) -> str:
    """The href with "^" in the path percent-encoded, as the standard has it by now."""
    text = str(parsed)
    body, mark, tail = text.partition("#")
    if "^" in body and not parsed.cannot_be_a_base:
        body, question, query = body.partition("?")
        start = body.find("//") + 2 if "//" in body[: len(parsed.scheme) + 3] else len(parsed.scheme) + 1
        slash = body.find("/", start) if start else -1
        if slash >= 0:
            body = body[:slash] + body[slash:].replace("^", "%5E")
        body += question + query
    return body + mark + tail if fragment else body


def parse_text(text: str, base: whatwg.URL | None, fragment: bool) -> str:
    """The href of a URL of any scheme by today's standard (see core/src/whatwg.rs for what url-py does otherwise)."""
    if base is not None and base.scheme in _SPECIAL and text.lstrip(TRIM)[:1] in ("/", "\\"):
        clean = _cleaned(text)
        rest = clean.lstrip("/\\")
        if len(clean) - len(rest) > 2:
            text = "//" + rest
    try:
        return _href(_crate(text, base), fragment)
    except whatwg.IdnaError:
        found = _ascii_domain(text, base, fragment)
        if found is None:
            raise UrlError(_REASONS[whatwg.IdnaError]) from None
        return found
    except whatwg.URLError as error:
        raise UrlError(_REASONS.get(type(error), "URL too long")) from None


def _cleaned(text: str) -> str:
    """What the parser drops before it begins."""
    return _NEWLINES.sub("", text.strip(TRIM))


def _ascii_domain(text: str, base: whatwg.URL | None, fragment: bool) -> str | None:
    """Parse with the "xn--" labels of an ASCII domain put out of the crate's sight, then put them back."""
    clean = _cleaned(text)
    found = _AUTHORITY.match(clean)
    if not found:
        return None
    start, end = found.span(1)
    start = max(start, clean.rfind("@", start, end) + 1)
    if not clean[start:end].isascii():
        return None
    host = clean[start:end].lower()
    mark = next((f"xn0{letter}" for letter in ascii_lowercase if f"xn0{letter}" not in host), None)
    if mark is None:
        return None
    try:
        href = _href(_crate(clean[:start] + _swap(host, "xn--", mark) + clean[end:], base), fragment)
    except whatwg.URLError:
        return None
    start, end = host_span(href)
    # Punycode that the crate made itself: the domain was not ASCII (percent-encoded), so its error stands.
    if any(label.startswith("xn--") for label in href[start:end].split(".")):
        return None
    return href[:start] + _swap(href[start:end], mark, "xn--") + href[end:]


def _swap(host: str, old: str, new: str) -> str:
    return ".".join(new + label.removeprefix(old) if label.startswith(old) else label for label in host.split("."))


def _parse_base(base: str | None) -> whatwg.URL | None:
    if base is None:
        return None
    try:
        return _crate(base, None)
    except whatwg.URLError as error:
        raise UrlError(f"base: {_REASONS.get(type(error), 'URL too long')}") from None


def parse_http(text: str, base: whatwg.URL | None) -> str:
    """The href of an absolute http(s) URL, or of a relative one against `base`; the fragment is dropped.

    What has a base is a link: its userinfo is that of the base where they are of one origin, else none.
    """
    href = parse_text(text, base, False)
    if not href.startswith(("http:", "https:")):
        raise UnsupportedScheme(f"unsupported scheme '{href.partition(':')[0]}'")
    return href if base is None else _with_userinfo_of(base, href)


def _with_userinfo_of(base: whatwg.URL, href: str) -> str:
    """A page must not choose credentials: its links have those of its own URL, and to other origins none."""
    begins = href.index("//") + 2
    start, end = host_span(href)
    known = ""
    if base.username or base.password:
        own = str(base)
        host, path = host_span(own)
        if own.partition(":")[0] == href.partition(":")[0] and own[host:path] == href[start:end]:
            known = own[own.index("//") + 2 : host]
    return href[:begins] + known + href[start:]


def parse_document(text: str) -> whatwg.URL:
    """The URL of a page, which links are resolved against."""
    try:
        return whatwg.URL.parse(parse_http(text, None))
    except whatwg.URLError as error:
        raise UrlError(_REASONS.get(type(error), "URL too long")) from None


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

    def __init__(self, href: str) -> None:
        self.href = href
        start, end = host_span(self.href)
        self.host_key = self.href[start:end]
        self.path_query = self.href[end:]
        self.scheme = href.partition(":")[0]
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
    return parse_text(url, _parse_base(base), True)
