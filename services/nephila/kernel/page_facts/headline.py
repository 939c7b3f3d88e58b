"""The headline of a document: its <title> without the name of the site.

The rules are those of Mozilla's Readability (`_getArticleTitle`), which is also the reference for titles here. The part
behind the last separator is the site, unless too little remains. From a stated title only the site's own name is
removed, and only behind a bar or a dot, because dashes are common in headlines. Behind a dash it is removed if the rest
is a heading of the page. Pure; white space is collapsed; O(length).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MAX_CHARS: Final = 4096
"""Characters of a <title> that are examined."""

_SEPARATOR: Final = re.compile(r"\s[|\-–—\\/>»]\s")
_HIERARCHY: Final = re.compile(r"\s[\\/>»]\s")
_FIRST_PART: Final = re.compile(r"^[^|\-–—\\/>»]*[|\-–—\\/>»]")
_TOKEN: Final = re.compile(r"\w+")
_BAR: Final = re.compile(r"\s+(?:[|·•»]|[-—])\s+")
_BARS: Final = "|·•»"

FEW_WORDS: Final = 3
"""With fewer words left, the part on the other side of the separator is the headline."""
TOO_FEW_WORDS: Final = 4
"""With at most so many words left, the <title> stays unchanged."""
LONG_LEAD: Final = 5
"""More words before a colon are part of the headline."""
SHORT, LONG = 15, 150
"""A <title> with fewer or more characters is replaced by the h1."""
MIN_OVERLAP: Final = 0.75


def from_title(title: str, headings: Sequence[str], h1s: Sequence[str]) -> str:
    """A <title> without the name of its site; `headings` are the texts of h1 and h2, `h1s` those of h1."""
    whole = " ".join(title[:MAX_CHARS].split())
    headline = whole
    hierarchy = False
    if separators := list(_SEPARATOR.finditer(whole)):
        hierarchy = _HIERARCHY.search(whole) is not None
        headline = whole[: separators[-1].start()]
        if _words(headline) < FEW_WORDS:
            headline = _FIRST_PART.sub("", whole, count=1)
    elif ": " in whole:
        if not any(" ".join(text.split()) == whole for text in headings):
            headline = _behind_colon(whole)
    elif not SHORT <= len(whole) <= LONG and len(h1s) == 1:
        headline = h1s[0]
    headline = " ".join(headline.split())
    if _words(headline) <= TOO_FEW_WORDS and not (
        hierarchy and _words(headline) == _words(_SEPARATOR.sub("", whole)) - 1
    ):
        return whole
    return headline


def _behind_colon(whole: str) -> str:
    tail = whole[whole.rindex(":") + 1 :]
    if _words(tail) < FEW_WORDS:
        return whole[whole.index(":") + 1 :]
    return whole if _words(whole[: whole.index(":")]) > LONG_LEAD else tail


def _words(text: str) -> int:
    """Number of words: gaps plus one, so that an empty text counts as one."""
    return len(re.split(r"\s+", text))


def without_site(title: str, site: str, host: str, headings: Sequence[str] = (), only_h1: str = "") -> str:
    """A title without the site's name at its end; `site` is the name that the page states (or ""), `host` its URL's,
    `headings` the texts of its h1 and h2. What is behind a bar also goes if the rest is the only h1 of the page."""
    names = {_letters(site), _letters(host.removeprefix("www.")), *map(_letters, host.split(".")[:-1])} - {""}
    whole = title[:MAX_CHARS]
    for bar in _BAR.finditer(whole):
        left = whole[: bar.start()]
        if only_h1 and bar[0].strip() in _BARS and left.lower() == only_h1.lower():
            return left
        if _letters(whole[bar.end() :]) not in names or not _letters(left):
            continue
        if bar[0].strip() in _BARS or any(left.lower() == " ".join(heading.lower().split()) for heading in headings):
            return left
    return title


def is_site(title: str, site: str, host: str) -> bool:
    """Whether a title is only the name of its site."""
    names = {_letters(site), _letters(host.removeprefix("www.")), *map(_letters, host.split(".")[:-1])} - {""}
    return _letters(title[:MAX_CHARS]) in names


def _letters(text: str) -> str:
    return "".join(_TOKEN.findall(text.lower()))


def closer_to_title(name: str, headline: str, title: str) -> str:
    """The name of an article, or its headline if only that is similar to the document's title."""
    return headline if word_overlap(headline, title) > MIN_OVERLAP >= word_overlap(name, title) else name


def word_overlap(left: str, right: str) -> float:
    """Share of the characters of `right` whose words are also in `left`."""
    left_words = set(_TOKEN.findall(left.lower()))
    words = _TOKEN.findall(right.lower())
    if not left_words or not words:
        return 0.0
    other = [word for word in words if word not in left_words]
    return 1 - len(" ".join(other)) / len(" ".join(words))
