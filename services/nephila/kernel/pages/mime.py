"""Content-Type by the WHATWG MIME Sniffing Standard (section 4.4): essence and parameters. Pure.

Invariant: of parameters with the same name the first counts; a malformed parameter is dropped alone; the header is
invalid only without type/subtype.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_CHARS: Final = 4_096

_SPACE: Final = "\n\r\t "
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~A-Za-z0-9]+")
_VALUE: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*+(?:"|\Z))++', re.DOTALL)
"""A value of a joined header: it ends at a comma outside of quotes."""
_QUOTABLE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def parse(header: str) -> tuple[str, dict[str, str]] | None:
    """Essence ("type/subtype") and parameters, names in lower case, values as written; None for an invalid MIME type.

    O(length), of which at most MAX_CHARS are read.
    """
    essence, semicolon, rest = header[:MAX_CHARS].strip(_SPACE).partition(";")
    kind, slash, subtype = essence.partition("/")
    subtype = subtype.rstrip(_SPACE)
    if not slash or not _TOKEN.fullmatch(kind) or not _TOKEN.fullmatch(subtype):
        return None
    parameters: dict[str, str] = {}
    at, end = 0, len(rest)
    while semicolon and at < end:
        while at < end and rest[at] in _SPACE:
            at += 1
        name_end = _next(rest, at, ";=")
        name, at = rest[at:name_end].lower(), name_end
        if at >= end or rest[at] == ";":
            at += 1
            continue
        value, at = _value(rest, at + 1)
        if _TOKEN.fullmatch(name) and value is not None and _QUOTABLE.fullmatch(value):
            parameters.setdefault(name, value)
    return f"{kind}/{subtype}".lower(), parameters


def _value(rest: str, at: int) -> tuple[str | None, int]:
    """The value that begins here, None if there is none, and the position of the next parameter."""
    if rest[at : at + 1] == '"':
        value, at = _quoted(rest, at + 1)
        return value, _next(rest, at, ";") + 1
    stop = _next(rest, at, ";")
    return rest[at:stop].rstrip(_SPACE) or None, stop + 1


def _quoted(rest: str, at: int) -> tuple[str, int]:
    parts = []
    while at < len(rest) and rest[at] != '"':
        if rest[at] == "\\" and at + 1 < len(rest):
            at += 1
        parts.append(rest[at])
        at += 1
    return "".join(parts), at


def _next(text: str, at: int, ends: str) -> int:
    """The position of the next of these characters."""
    positions = [position for end in ends if (position := text.find(end, at)) >= 0]
    return min(positions, default=len(text))


def serialised(essence: str, parameters: dict[str, str]) -> str:
    """The header text; values are quoted where necessary."""
    parts = [essence]
    for name, value in parameters.items():
        if not _TOKEN.fullmatch(value):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            value = f'"{escaped}"'
        parts.append(f"{name}={value}")
    return ";".join(parts)


def media_type(header: str) -> tuple[str, str]:
    """Essence and charset of a Content-Type, both in lower case, "" if missing.

    More tolerant than the standard: spaces and quotes around a charset are removed, and a charset without a type is
    accepted.
    """
    # The same few values recur; very long values are not cached.
    return _remembered(header) if len(header) <= _REMEMBERED_CHARS else _media_type(header)


def _media_type(header: str) -> tuple[str, str]:
    """A repeated header is read as in the Fetch standard ("extract a MIME type"): the last valid type counts, with the
    charset of an earlier equal one."""
    if "," not in header:
        return _one_media_type(header)
    essence = charset = first_charset = ""
    for value in _VALUE.findall(header[:MAX_CHARS]):
        kind, own = _one_media_type(value)
        if not kind or kind == "*/*":
            continue
        if kind != essence:
            essence, first_charset = kind, own
        charset = own or first_charset
    return (essence, charset) if essence else _one_media_type(header)


def _one_media_type(header: str) -> tuple[str, str]:
    parsed = parse(header)
    if parsed is None:
        # A charset may be present although the type is missing or invalid.
        parsed = parse(f"x/x;{header.partition(';')[2]}")
        essence, parameters = "", parsed[1] if parsed else {}
    else:
        essence, parameters = parsed
    return essence, parameters.get("charset", "").strip(" \t\"'").lower()


_REMEMBERED_CHARS: Final = 200
_remembered = lru_cache(maxsize=1024)(_media_type)
