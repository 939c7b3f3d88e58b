"""Meaning of response headers: RFC 9112, as lenient as browsers. Pure.

Strict in the consequence: when the length of a body is in doubt, the connection is not used again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nephila.downloader.http.contract import FetchError
from nephila.kernel.reasons.table import Reason

_DIGITS = re.compile(r"\d{1,18}\Z", re.ASCII)
_NO_BODY = (204, 205, 304)

CHUNKED = -1
UNTIL_CLOSE = -2


_SINGLE = frozenset(("location", "refresh", "retry-after", "etag", "last-modified"))
"""Headers that have one value. An equal repetition counts once."""
_LINES = _SINGLE | {"x-robots-tag", "set-cookie"}
"""Headers whose values may contain a comma: an agent name in X-Robots-Tag applies to its own line, a cookie contains a
date. Their repeated values are joined by line feeds."""


def joined(name: str, before: str, value: str) -> str:
    """The value of a repeated header."""
    if name in _SINGLE and before == value:
        return before
    return f"{before}{separator(name)}{value}"


def separator(name: str) -> str:
    """The separator between the values of a repeated header."""
    return "\n" if name in _LINES else ", "


def values_of(headers: Mapping[str, str], name: str) -> list[str]:
    """The different values of a header that has one value; more than one: the server contradicts itself."""
    return list(dict.fromkeys(filter(None, map(str.strip, headers.get(name, "").split("\n")))))


def first_of(headers: Mapping[str, str], name: str) -> str:
    """The first value of a header that has one value, as browsers take it; empty without one."""
    value = headers.get(name, "")
    return value if "\n" not in value else next(iter(values_of(headers, name)), "")


def framing(status: int, headers: dict[str, str]) -> tuple[int, bool]:
    """The length of the body (a number, CHUNKED or UNTIL_CLOSE), and whether the connection stays usable.

    RFC 9112 6.3. A Content-Length in addition to a Transfer-Encoding is ignored as required, but the connection is not
    used again: what follows may be the rest of a smuggled response.
    """
    transfer = headers.get("transfer-encoding")
    length = headers.get("content-length")
    has_both = transfer is not None and length is not None
    if status in _NO_BODY:
        return 0, not has_both
    if transfer:
        codings = [coding.strip().lower() for coding in transfer.split(",")]
        if codings[-1] == "chunked":
            if any(coding not in ("chunked", "identity") for coding in codings[:-1]):
                raise FetchError(Reason.PROTOCOL, f"transfer encoding {transfer[:40]!r} is not supported")
            # A repeated "chunked" is one, as in browsers; the connection is not used again.
            return CHUNKED, not has_both and codings.count("chunked") == 1
        if codings != ["identity"]:
            raise FetchError(Reason.PROTOCOL, f"transfer encoding {transfer[:40]!r} is not supported")
    if length is None:
        return UNTIL_CLOSE, False
    if not _DIGITS.match(length):
        lengths = {part.strip() for part in length.split(",")}
        length = lengths.pop()
        if lengths or not _DIGITS.match(length):
            raise FetchError(Reason.PROTOCOL, f"Content-Length {headers['content-length'][:40]!r} is not a length")
        return int(length), False
    return int(length), not has_both


def is_exact(headers: dict[str, str]) -> bool:
    """Whether the end of a response without a body is certain: that to a HEAD request."""
    return "transfer-encoding" not in headers or "content-length" not in headers


def keeps_alive(headers: dict[str, str], http11: bool) -> bool:
    """True when the server accepts another request on the connection (RFC 9112 9.3)."""
    if not http11 and "transfer-encoding" in headers:
        return False  # faulty framing: RFC 9112 6.1
    connection = headers.get("connection")
    if connection is None:
        return http11
    options = connection.lower()
    return "close" not in options and (http11 or "keep-alive" in options)
