"""URLs: WHATWG parsing by Ada (ada-url) and the canonical form that fingerprints are made of (KEY_VERSION 2).

Invariant: host key, canonical URL and fingerprint equal those of the native core.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import md5
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

import ada_url

_UNRESERVED: Final = re.compile(r"%(?:2[DE]|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
"""Percent-encoded letters, digits and - . _ ~ (RFC 3986, 6.2.2.2)."""
_SCHEME: Final = re.compile(r"[\x00-\x20]*[A-Za-z][A-Za-z0-9+.\t\n\r-]*:")


def _tracking() -> tuple[frozenset[str], tuple[str, ...]]:
    lines = Path(__file__).parent.with_name("tracking.txt").read_text("utf-8").splitlines()
    names = [line.split()[0] for line in lines if line and not line.startswith("#")]
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return frozenset(name for name in names if not name.endswith("*")), prefixes


_NAMES, _PREFIXES = _tracking()


class UrlError(ValueError):
    """Not an absolute http(s) URL; the text has the cause."""


class UnsupportedScheme(UrlError):
    """A valid URL of a scheme other than http and https."""


def _parse(text: str, base: str | None) -> str:
    try:
        return str(ada_url.URL(text, base).href)
    except UnicodeEncodeError:
        raise UrlError("not valid Unicode") from None
    except ValueError:
        relative = base is None and not _SCHEME.match(text)
        raise UrlError("relative URL without a base" if relative else "not a valid URL") from None


def _checked_base(base: str | None) -> str | None:
    try:
        return None if base is None else _parse(base, None)
    except UrlError as error:
        raise UrlError(f"base: {error}") from None


def parse_any(url: str, base: str | None = None) -> str:
    """The WHATWG href of a URL of any scheme, with its fragment; UrlError if it does not parse. O(n)."""
    return _parse(url, _checked_base(base))


def parse_http(text: str, base: str | None = None) -> str:
    """The href without its fragment of an http(s) URL, or of a reference against `base` (an href).

    A reference has the credentials of `base` if both are of one origin, else none.
    """
    href = _parse(text, base).partition("#")[0]
    if not href.startswith(("http:", "https:")):
        raise UnsupportedScheme(f"unsupported scheme '{href.partition(':')[0]}'")
    if base is None:
        return href
    start, end = host_span(href)
    own_start, own_end = host_span(base) if base.startswith(("http:", "https:")) else (0, 0)
    begin = href.index("//") + 2
    same = base[: base.find("//") + 2] == href[:begin] and base[own_start:own_end] == href[start:end]
    return href[:begin] + (base[begin:own_start] if same else "") + href[start:]


_QUERY_OF_HTTP: Final = re.compile(
    r"([\x00-\x20]*(?:https?:|(?![A-Za-z0-9+.-]+:))[^?#]*)(\?[^#]*)(.*)", re.IGNORECASE | re.DOTALL
)
_SUPERSETS: Final = {"shift_jis": "cp932", "euc-kr": "cp949", "windows-1252": "cp1252"}
"""The standard's encodings that Python has under another name."""
_RUNS: Final = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
_SIGN: Final = re.compile(rb"[^A-Za-z0-9._~!$&'()*+,;=:@/?%-]")
"""Half a character may be any ASCII letter or sign: those that are in no query (RFC 3986) are encoded, too."""
_C1: Final = frozenset("\x81\x8d\x8f\x90\x9d")
"""Characters of the standard's windows-1252 that Python leaves out."""


def query_in(reference: str, encoding: str) -> str:
    """A reference of a page in `encoding` with the characters of its query percent-encoded in that encoding, the rest
    as it is (HTML standard, "encoding-parse a URL"); UrlError for a lone surrogate. "" = windows-1252, an unknown label
    is UTF-8. O(n)."""
    if encoding == "utf-8" or reference.isascii():
        return reference
    parts = _QUERY_OF_HTTP.fullmatch(reference)
    if parts is None or parts[2].isascii() or _label(encoding) is None:
        return reference
    query = "".join(
        run.decode("ascii") if ascii else _SIGN.sub(lambda match: b"%%%02X" % match[0][0], run).decode("ascii")
        for run, ascii in _runs(parts[2], encoding, "nephila_query")
    )
    return parts[1] + query + parts[3]


def form_encoded(value: str, encoding: str) -> str:
    """A name or value of a form of a page in `encoding`, as application/x-www-form-urlencoded; UrlError for a lone
    surrogate. "" = windows-1252, an unknown label is UTF-8. O(n)."""
    octets = b"".join(run for run, _ in _runs(value, encoding, "nephila_form"))
    return quote_plus(octets, safe="*").replace("~", "%7E")


def _label(encoding: str) -> Any:
    """The encoding of a page's queries; None for UTF-8."""
    import webencodings

    label = webencodings.lookup(encoding or "windows-1252")
    return None if label is None or label.name.startswith(("utf-", "replacement")) else label


def _runs(text: str, encoding: str, errors: str) -> Iterator[tuple[bytes, bool]]:
    """The text in the encoding of a page's queries (its own, or UTF-8 where that is UTF-16), in runs that are of ASCII
    or not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UrlError("not valid Unicode") from None
    label = _label(encoding)
    name = "utf-8" if label is None else _SUPERSETS.get(label.name, "")
    encoder = (codecs.lookup(name) if name else label.codec_info).incrementalencoder(errors)
    runs = _RUNS.findall(text)
    for number, run in enumerate(runs):
        last = number == len(runs) - 1
        if label is not None and label.name == "gbk":  # the standard has its euro sign in one byte
            yield b"\x80".join(encoder.encode(part, last) for part in run.split("\u20ac")), run.isascii()
        else:
            yield encoder.encode(run, last), run.isascii()


def _errors(before: str, after: str) -> Callable[[UnicodeError], tuple[str | bytes, int]]:
    """The text for a character that an encoding has not: a numeric reference, or the octet of a control."""

    def of(error: UnicodeError) -> tuple[str | bytes, int]:
        assert isinstance(error, UnicodeEncodeError)
        refused = error.object[error.start]
        if error.encoding in ("cp1252", "charmap") and refused in _C1:
            return bytes((ord(refused),)), error.start + 1
        return f"{before}{ord(refused)}{after}", error.start + 1

    return of


codecs.register_error("nephila_query", _errors("%26%23", "%3B"))
codecs.register_error("nephila_form", _errors("&#", ";"))


def host_span(href: str) -> tuple[int, int]:
    """Where the host key is in an http(s) href: after the credentials, before the path."""
    start = href.index("//") + 2
    end = href.index("/", start)
    return max(start, href.rfind("@", start, end) + 1), end


def canonical_of(href: str) -> str:
    """The canonical form of an http(s) href: unreserved characters decoded, tracking parameters and empty pieces of
    the query removed, the other pieces sorted by name. O(n log n)."""
    path = host_span(href)[1]
    plain = _UNRESERVED.sub(lambda match: chr(int(match[0][1:], 16)), href[path:])
    path_only, mark, query = plain.partition("?")
    pieces = [piece for piece in query.split("&") if piece and not _is_tracking(piece.partition("=")[0].lower())]
    pieces.sort(key=lambda piece: piece.partition("=")[0])
    return href[:path] + path_only + (mark + "&".join(pieces) if pieces else "")


def _is_tracking(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def fingerprint_of(host_key: str, canonical: str) -> bytes:
    """MD5(host key)[0:4] + MD5(canonical)[0:12]."""
    return (
        md5(host_key.encode(), usedforsecurity=False).digest()[:4]
        + md5(canonical.encode(), usedforsecurity=False).digest()[:12]
    )


class UrlParts:
    """A parsed http(s) URL: `href` is fetched, `canonical` and `fingerprint` identify it."""

    __slots__ = ("canonical", "host_key", "href", "path_query", "scheme")

    def __init__(self, href: str) -> None:
        start, end = host_span(href)
        self.href = href
        self.host_key = href[start:end]
        self.path_query = href[end:]
        self.scheme = href.partition(":")[0]
        self.canonical = canonical_of(href)

    @property
    def fingerprint(self) -> bytes:
        return fingerprint_of(self.host_key, self.canonical)

    def __repr__(self) -> str:
        return f"UrlParts({self.href!r})"


def parse_url(url: str, base: str | None = None) -> UrlParts:
    """Parse an absolute http(s) URL, or a relative one against `base`; UrlError for anything else. O(n)."""
    return UrlParts(parse_http(url, _checked_base(base)))


def host_digests(host_keys: Sequence[str]) -> bytes:
    """MD5 of each host key, 16 bytes each: its first bits are those of the fingerprints of the host's URLs."""
    return b"".join([md5(host_key.encode(), usedforsecurity=False).digest() for host_key in host_keys])
