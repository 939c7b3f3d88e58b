"""The one form of text, as core/src/spelling.rs has it: NFC, plain spaces, no soft hyphens and no word joiners.

U+200C and U+200D stay: they are spelling in many scripts and in emoji.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_PLAIN: Final = {**dict.fromkeys((0xA0, 0x2007, 0x202F), " "), **dict.fromkeys((0xAD, 0x2060, 0xFEFF))}


def spelled_text(text: str) -> str:
    """A text in the one form. O(n)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_PLAIN))


def spelled(text: bytes) -> bytes:
    """UTF-8 text in the one form. O(n)."""
    try:
        return text if text.isascii() else spelled_text(text.decode()).encode()
    except UnicodeDecodeError:
        return text
