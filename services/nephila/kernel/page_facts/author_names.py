"""Names of authors: a stated author without labels and dates, and the single names of several.

Pure. Invariant: a string that is no name is "".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Final

_BY: Final = re.compile(
    r"(?:(?:(?:words|text|article|review|story|post|photos?|written|posted|published|submitted)\s+)?by\b|author\b|von|par|por"
    r"|di|af|av)(?:\s*:\s*|\s+)",
    re.IGNORECASE,
)
_WHEN: Final = re.compile(
    r"(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},?\s+)?(?:"
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\s?\w{1,9}[-/.]?\s\d{4}|\w{3,9}\.?\s\d{1,2},?\s\d{4}"
    r"|\d{1,2}\s\w{3,9},?\s\d{4}|\d+\s?(?:minutes?|mins?|h|hours?|days?|weeks?|months?|years?)\b)",
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    r"[\s|•·»–—,(-](?:on|at|last|updated|published|posted|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6})[\s:,]*$",
    re.IGNORECASE,
)
_EDGES: Final = " \t\"'“”,;:|•·-–—»*("
MAX_NAME_CHARS: Final = 300
"""A longer author is a text, not a name."""
_NO_NAMES: Final = re.compile(
    r"(?:sign|log)\s?-?(?:in|up|out)|login|register|subscribe|search|menu|share|comments?|reply|home|undefined"
    r"|null|none|n/a|unknown|anonymous|admin(?:istrator)?|webmaster|guest|user|(?:topic |the )?authors?|editor|staff"
    r"|name\s*\*?|(?:(?:written|posted|published|words|text|story) )?by|email|about(?: the authors?| us)?|follow"
    r"|contact(?: us)?|(?:read|see|view|show) (?:more|all)|posts? by.*|default",
    re.IGNORECASE,
)


_BYLINE: Final = re.compile(
    r"(?:(?:words|text|article|review|story|post(?:ed)?|written|published)\s+)?by\s*:?\s+(?P<name>\S.*)", re.IGNORECASE
)
_CAPITAL: Final = re.compile(r"[^\W\d_a-z].*|(?:de|van|von|der|den|la|del|di|da|bin|al|and|&)")
_BEHIND_NAME: Final = re.compile(r"\s+[|•·⋅●∙›»–—(]|\s+(?:on|updated|published|in)\s|,|\s+\d")
MOST_WORDS: Final = 5
_AND: Final = re.compile(r"\s+(?:and|und|et|&)\s+")


def name_of(author: str) -> str:
    """A stated author without the label before the name and the date after it; "" if the rest is no name."""
    name = " ".join(unescape(author[: 2 * MAX_NAME_CHARS]).split()).strip(_EDGES)
    if len(name) > MAX_NAME_CHARS:
        return ""
    if label := _BY.match(name):
        name = name[label.end() :]
    if when := _WHEN.search(name):
        name = name[: when.start()]
        while behind := _BEHIND.search(name.rstrip(_EDGES)):
            name = name[: behind.start()]
    name = name.strip(_EDGES)
    return "" if _NO_NAMES.fullmatch(name) or "©" in name or not any(map(str.isalpha, name)) else name


def visible_author(lines: Iterable[str]) -> str:
    """The name behind "By" in one of the lines near a headline: up to `MOST_WORDS` words with capitals; else ""."""
    for line in lines:
        if len(line) <= MAX_NAME_CHARS and (match := _BYLINE.match(line)):
            name = name_of(_BEHIND_NAME.split(match["name"], maxsplit=1)[0])
            if name and len(words := name.split()) <= MOST_WORDS and all(map(_CAPITAL.fullmatch, words)):
                return name
    return ""


def single_names(author: str) -> list[str]:
    """The names in a text that has several. A comma separates no names ("Lee, Ann"), and a conjunction only if each
    part has two words ("Ann & Bob Lee" is one name)."""
    parts = [part.strip() for part in author.split(";") if part.strip()]
    names: list[str] = []
    for part in parts:
        pieces = _AND.split(part)
        names += pieces if all(len(piece.split()) > 1 for piece in pieces) else [part]
    return names
