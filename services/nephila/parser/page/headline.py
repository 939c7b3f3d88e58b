"""The headline of a document that states none: its <title> without the site's name.

The rules for a <title> are those of Mozilla's Readability (Article titles, `_getArticleTitle`), by whose pages titles
are judged, so that the two agree: a part behind the last separator is the site, unless too little would be left. Of a
title that is stated (or left whole by these rules) only what the page itself names as its site goes, and only behind a
bar or a dot: dashes stand in too many headlines. Behind a dash it goes where what is left is a heading of the page.
Invariant: pure; white space collapsed; O(length).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MAX_CHARS: Final = 4096
"""Of a longer <title> the start is looked at."""

_SEPARATOR: Final = re.compile(r"\s[|\-–—\\/>»]\s")
_HIERARCHY: Final = re.compile(r"\s[\\/>»]\s")
_FIRST_PART: Final = re.compile(r"^[^|\-–—\\/>»]*[|\-–—\\/>»]")
_TOKEN: Final = re.compile(r"\w+")
_BAR: Final = re.compile(r"\s+(?:[|·•»]|[-—])\s+")
_BARS: Final = "|·•»"

FEW_WORDS: Final = 3
"""With fewer left the part on the other side is the headline;"""
TOO_FEW_WORDS: Final = 4
"""with so many or fewer the <title> stays as it is."""
LONG_LEAD: Final = 5
"""Words before a colon that are a headline themselves."""
SHORT, LONG = 15, 150
"""Characters of a <title> that is asked to show an h1 instead."""
MIN_OVERLAP: Final = 0.75


def from_title(title: str, headings: Sequence[str], h1s: Sequence[str]) -> str:
    """A <title> without the name of its site; `headings` are the texts of h1 and h2, `h1s` those of h1."""
    whole = " ".join(title[:MAX_CHARS].split())
    found = whole
    hierarchy = False
    if separators := list(_SEPARATOR.finditer(whole)):
        hierarchy = _HIERARCHY.search(whole) is not None
        found = whole[: separators[-1].start()]
        if _words(found) < FEW_WORDS:
            found = _FIRST_PART.sub("", whole, count=1)
    elif ": " in whole:
        if not any(" ".join(text.split()) == whole for text in headings):
            found = _behind_colon(whole)
    elif not SHORT <= len(whole) <= LONG and len(h1s) == 1:
        found = h1s[0]
    found = " ".join(found.split())
    if _words(found) <= TOO_FEW_WORDS and not (hierarchy and _words(found) == _words(_SEPARATOR.sub("", whole)) - 1):
        return whole
    return found


def _behind_colon(whole: str) -> str:
    found = whole[whole.rindex(":") + 1 :]
    if _words(found) < FEW_WORDS:
        return whole[whole.index(":") + 1 :]
    return whole if _words(whole[: whole.index(":")]) > LONG_LEAD else found


def _words(text: str) -> int:
    """As many as there are gaps, and one: an empty text counts one."""
    return len(re.split(r"\s+", text))


def without_site(title: str, site: str, host: str, headings: Sequence[str] = ()) -> str:
    """A title without the site's name at its end; `site` is what the page calls it (or ""), `host` its URL's,
    `headings` the texts of its h1 and h2."""
    names = {_letters(site), _letters(host.removeprefix("www.")), *map(_letters, host.split(".")[:-1])} - {""}
    whole = title[:MAX_CHARS]
    for bar in _BAR.finditer(whole):
        left = whole[: bar.start()]
        if _letters(whole[bar.end() :]) not in names or not _letters(left):
            continue
        if bar[0].strip() in _BARS or any(left.lower() == " ".join(one.lower().split()) for one in headings):
            return left
    return title


def is_site(title: str, site: str, host: str) -> bool:
    """Whether a title is nothing but the name of its site."""
    names = {_letters(site), _letters(host.removeprefix("www.")), *map(_letters, host.split(".")[:-1])} - {""}
    return _letters(title[:MAX_CHARS]) in names


def _letters(text: str) -> str:
    return "".join(_TOKEN.findall(text.lower()))


def closer_to_title(name: str, said: str, title: str) -> str:
    """Which of the two names of an article is like the document's title: `said` only where `name` is not."""
    return said if word_overlap(said, title) > MIN_OVERLAP >= word_overlap(name, title) else name


def word_overlap(left: str, right: str) -> float:
    """Share of `right`, by characters, whose words stand in `left` as well."""
    known = set(_TOKEN.findall(left.lower()))
    words = _TOKEN.findall(right.lower())
    if not known or not words:
        return 0.0
    other = [word for word in words if word not in known]
    return 1 - len(" ".join(other)) / len(" ".join(words))
