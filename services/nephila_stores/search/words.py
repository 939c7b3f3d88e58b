"""Words of a text for the index, the same for every database: folded, and cut into pieces where a script has no spaces.

Invariant: a token is a maximal run of ASCII letters and digits and of characters beyond ASCII. Letters are in lower
case, Latin ones without accents. Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are cut into pairs of
neighbours and the last single character: 北京大学 gives 北京 京大 大学 学. So each part of a run is found as a phrase
of its pairs, and a single character as the beginning of a pair. Pure; O(n), nothing at all for text in ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_RANGES: Final = (
    "\u0e01-\u0e4e\u0e80-\u0ece\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u1100-\u11ff\u3005-\u3007\u3041-\u3096"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaa7f"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
SPACELESS: Final = re.compile(f"[{_RANGES}]+")
"""A run of characters of scripts that are written without spaces between words."""
_INDIC: Final = "\u0900-\u0963\u0966-\u0df3"
_BREAK: Final = re.compile(rf"[^\w{_RANGES}{_INDIC}]+|_+")
TOKEN: Final = re.compile(r"[0-9a-z\x80-\U0010ffff]+")
"""A token of a text that `index_text` has made."""
_MARKS: Final = re.compile("[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u200d\xad]+")
"""Marks, and signs inside of words that no reader sees."""


def _accents() -> dict[int, str]:
    plain_letters = {}
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        plain = _MARKS.sub("", unicodedata.normalize("NFD", chr(code)))
        if len(plain) == 1 and plain != chr(code):
            plain_letters[code] = plain
    return plain_letters | {0x451: "е", 0x3C2: "σ"}


_PLAIN: Final = _accents()
VARIANTS: Final[dict[str, str]] = {}
"""Letter → letters that are folded to it."""
for _code, _letter in _PLAIN.items():
    VARIANTS[_letter] = VARIANTS.get(_letter, "") + chr(_code)


def fold(text: str) -> str:
    """The text in lower case, compatibility forms and Latin accents removed."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN)
    return _MARKS.sub("", folded)


def index_text(text: str) -> str:
    """The text as the tokenizer of an index reads it: its tokens are those of `TOKEN`, in order."""
    if text.isascii():
        return text.lower()
    return SPACELESS.sub(_pairs, _BREAK.sub(" ", fold(text)))


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join([run[at : at + 2] for at in range(len(run) - 1)])} {run[-1]} "


def tokens(text: str) -> list[str]:
    """The tokens of a text."""
    return TOKEN.findall(index_text(text))


def runs(text: str) -> list[tuple[str, bool]]:
    """The words of a query as they are written, folded, each with whether its script has no spaces."""
    parts = []
    for word in _BREAK.sub(" ", fold(text)).split():
        at = 0
        for match in SPACELESS.finditer(word):
            if match.start() > at:
                parts.append((word[at : match.start()], False))
            parts.append((match[0], True))
            at = match.end()
        if at < len(word):
            parts.append((word[at:], False))
    return parts
