"""Keywords in a text, as core/src/keywords.rs finds them: by substrings of a normal form. O(terms × bytes)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nephila.native.fallback.spelling import spelled_text

_SPACE, _WORD, _GAPLESS, _OTHER = range(4)
_RANGES = (
    *((_SPACE, 9, 13), (_SPACE, 0x20, 0x20), (_SPACE, 0x85, 0x85), (_SPACE, 0xA0, 0xA0), (_SPACE, 0x1680, 0x1680)),
    *((_SPACE, 0x2000, 0x200C), (_SPACE, 0x2028, 0x2029), (_SPACE, 0x202F, 0x202F), (_SPACE, 0x205F, 0x205F)),
    *((_SPACE, 0x3000, 0x3000), (_SPACE, 0xFEFF, 0xFEFF)),
    *((_WORD, 0x30, 0x39), (_WORD, 0x41, 0x5A), (_WORD, 0x61, 0x7A), (_OTHER, 0, 0x7F)),
    *((_OTHER, 0xA1, 0xA9), (_OTHER, 0xAB, 0xB4), (_OTHER, 0xB6, 0xB9), (_OTHER, 0xBB, 0xBF)),
    *((_OTHER, 0xD7, 0xD7), (_OTHER, 0xF7, 0xF7), (_OTHER, 0x2010, 0x2BFF)),
    *((_OTHER, 0x3001, 0x3004), (_OTHER, 0x3008, 0x303F), (_OTHER, 0x30FB, 0x30FB), (_OTHER, 0xFF00, 0xFF65)),
    *((_OTHER, 0xFFE0, 0xFFFF), (_OTHER, 0x1F000, 0x1FAFF)),
    *((_GAPLESS, 0x0E00, 0x0EFF), (_GAPLESS, 0x1000, 0x109F), (_GAPLESS, 0x1100, 0x11FF), (_GAPLESS, 0x1780, 0x17FF)),
    *((_GAPLESS, 0x2E80, 0x2FFF), (_GAPLESS, 0x3005, 0x3007), (_GAPLESS, 0x3040, 0x318F), (_GAPLESS, 0x31A0, 0x31FF)),
    *((_GAPLESS, 0x3400, 0x4DBF), (_GAPLESS, 0x4E00, 0xA4CF), (_GAPLESS, 0xAC00, 0xD7FF), (_GAPLESS, 0xF900, 0xFAFF)),
    *((_GAPLESS, 0xFF66, 0xFFDC), (_GAPLESS, 0x20000, 0x3FFFF)),
)
"""Kinds of characters, the first range that holds one counts; all others are letters of words."""


@lru_cache(maxsize=1 << 16)
def _kind(char: str) -> int:
    code = ord(char)
    return next((kind for kind, first, last in _RANGES if first <= code <= last), _WORD)


def normal_form(text: str) -> str:
    """Lower case, a blank at both ends of each word, no other white space. O(characters)."""
    pieces = []
    in_word = False
    for raw_char in text:
        if raw_char == "\u200d":
            continue
        char = chr(ord(raw_char) - 0xFEE0) if "\uff01" <= raw_char <= "\uff5e" else raw_char
        kind = _kind(char)
        if (kind == _WORD) != in_word:
            pieces.append(" ")
            in_word = not in_word
        if kind != _SPACE:
            pieces.append(char.lower() if kind == _WORD else char)
    return "".join(pieces) + " " * in_word


class KeywordSet:
    """The terms of a search, by their number."""

    def __init__(self, terms: Sequence[str]) -> None:
        """Raises ValueError for a blank term."""
        self._forms = [normal_form(spelled_text(term)) for term in terms]
        for term, form in zip(terms, self._forms, strict=True):
            if not form:
                raise ValueError(f"the keyword {term!r} is blank")

    def __len__(self) -> int:
        return len(self._forms)

    def find(self, text: bytes | bytearray | memoryview) -> list[int]:
        """Numbers of the terms that occur in a UTF-8 text, rising. Invalid UTF-8 ends the text."""
        data = bytes(text)
        try:
            decoded = data.decode()
        except UnicodeDecodeError as error:
            decoded = data[: error.start].decode()
        haystack = normal_form(decoded)
        return [number for number, form in enumerate(self._forms) if form in haystack]
