"""Plain text of a body that is not HTML: decoded, bounded, UTF-8; and the hash that compares texts.

Invariant: the text is valid UTF-8 without NUL, at most `max_bytes` long and cut between characters.
"""

from __future__ import annotations

import hashlib
from typing import Final

from nephila.native import spelled, to_utf8

_MARK: Final = "\ufeff".encode()
_REPLACED: Final = "\ufffd".encode()
CONTROLS: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), " ")
"""Translation of control characters to blanks; line ends and tabs stay."""
HASH_BYTES: Final = 8
"""Only versions of one page are compared, never two pages: 64 bits suffice."""


def plain_text(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decode the start of `body` to UTF-8; undecodable bytes become U+FFFD.

    `encoding` is a WHATWG name; an unknown one is read as windows-1252. A character has at most 4 bytes in any
    encoding, so 4 x `max_bytes` are read.
    """
    start = bytes(body[: 4 * max_bytes])
    try:
        text = to_utf8(start, encoding)
    except ValueError:
        text = to_utf8(start, "")
    return cut_utf8(text.removeprefix(_MARK).replace(b"\0", _REPLACED), max_bytes)


def spelled_text(text: str) -> str:
    """A text in the one form of text (`native.spelled`); one with lone surrogates is unchanged."""
    return text if text.isascii() else spelled(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def cut_utf8(text: bytes, max_bytes: int) -> bytes:
    """The longest prefix of UTF-8 `text` with at most `max_bytes` that ends between characters."""
    if len(text) <= max_bytes:
        return text
    end = max_bytes
    while end > 0 and text[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end]


def text_hash(text: bytes) -> bytes:
    """`Record.text_hash`, which a recrawl compares; empty without a text. 8 µs for 15 KB.

    For a page it is the hash of the main text, if there is one and the job reads it, so that a new date in the footer
    is no change.
    """
    return hashlib.sha256(text).digest()[:HASH_BYTES] if text else b""


def one_line(text: str) -> str:
    """Text on one line in the one form of text, without control characters, white space collapsed."""
    return " ".join(spelled_text(text.translate(CONTROLS)).split())
