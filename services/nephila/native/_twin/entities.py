"""Character references, as the standard's tokenizer decodes them, in text and in attribute values."""

from __future__ import annotations

import re
from html.entities import html5
from typing import Final

NAMES: Final = {name.encode(): value.encode() for name, value in html5.items()}
_C1: Final = (
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0, 0,
    0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
)  # fmt: skip
_NAME: Final = re.compile(rb"[0-9A-Za-z]{1,32}")
_NUMBER: Final = re.compile(rb"#(?:[xX]0*([0-9A-Fa-f]+)|0*([0-9]+));?")
_SPECIAL: Final = re.compile(rb"&|\r\n?|\0")
REPLACEMENT: Final = "\ufffd".encode()


def reference(data: bytes, at: int, in_attribute: bool) -> tuple[bytes, int] | None:
    """The text of the reference whose `&` stands at `at`, and the index behind it; None if it is plain text. O(32)."""
    if data[at + 1 : at + 2] == b"#":
        return _numeric(data, at)
    found = _NAME.match(data, at + 1)
    if not found:
        return None
    run = found.group()
    value = NAMES.get(run + b";") if data[found.end() : found.end() + 1] == b";" else None
    if value is not None:
        return value, found.end() + 1
    # Legacy names need no semicolon; the longest that fits wins, none is longer than 6 or shorter than 2.
    for length in range(min(len(run), 6), 1, -1):
        value = NAMES.get(run[:length])
        if value is not None:
            end = at + 1 + length
            following = data[end : end + 1]
            if in_attribute and (following == b"=" or (following.isalnum() and following.isascii())):
                return None
            return value, end
    return None


def _numeric(data: bytes, at: int) -> tuple[bytes, int] | None:
    found = _NUMBER.match(data, at + 1)
    if not found:
        return None
    digits = found.group(1) or found.group(2)
    code = int(digits, 16 if found.group(1) else 10) if len(digits) < 9 else 0x110000
    if 0x80 <= code < 0xA0:
        code = _C1[code - 0x80] or code
    if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        code = 0xFFFD
    return chr(code).encode(), found.end()


def decode(raw: bytes, references: bool, in_attribute: bool) -> bytes:
    """Decode references and normalise NUL and line ends. O(n)."""
    found = _SPECIAL.search(raw)
    if not found:
        return raw
    out = []
    at = 0
    while found:
        start, end = found.span()
        out.append(raw[at:start])
        what = found.group()
        if what == b"&":
            decoded = reference(raw, start, in_attribute) if references else None
            piece, end = decoded or (b"&", end)
        else:
            piece = REPLACEMENT if what == b"\0" else b"\n"
        out.append(piece)
        at = end
        found = _SPECIAL.search(raw, at)
    out.append(raw[at:])
    return b"".join(out)
