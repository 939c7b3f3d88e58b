"""Plain text of a body that is not HTML: decoded, bounded, UTF-8. And what tells two texts apart.

Invariant: the text is valid UTF-8 without NUL, at most `max_bytes` long and cut between characters.
"""

from __future__ import annotations

import hashlib
from typing import Final

from nephila.native import to_utf8

_MARK: Final = "\ufeff".encode()
_REPLACED: Final = "\ufffd".encode()
CONTROLS: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), " ")
"""Translation of control characters to blanks; line ends and tabs stay."""
HASH_BYTES: Final = 8
"""Of a page's text two versions are compared, never two pages: 64 bits are plenty."""


def plain_text(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decode at most as much of `body` as can matter and return UTF-8; what cannot be decoded becomes U+FFFD.

    `encoding` is a WHATWG name, one nobody knows is windows-1252. At most 4 bytes of any encoding make one character,
    so 4 x `max_bytes` are read.
    """
    start = bytes(body[: 4 * max_bytes])
    try:
        text = to_utf8(start, encoding)
    except ValueError:
        text = to_utf8(start, "")
    return cut_utf8(text.removeprefix(_MARK).replace(b"\0", _REPLACED), max_bytes)


def cut_utf8(text: bytes, max_bytes: int) -> bytes:
    """The longest start of valid UTF-8 `text` that has at most `max_bytes` and ends between characters."""
    if len(text) <= max_bytes:
        return text
    end = max_bytes
    while end > 0 and text[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end]


def text_hash(text: bytes) -> bytes:
    """`Record.text_hash`: what a recrawl compares. Empty without a text; 8 µs for 15 KB.

    Of a page it is given the main text where there is one: a new date in the footer is no change then.
    """
    return hashlib.sha256(text).digest()[:HASH_BYTES] if text else b""


def one_line(text: str) -> str:
    """Text without line ends and control characters, white space collapsed."""
    return " ".join(text.translate(CONTROLS).split())
