"""Where the words of a search are in a text: the passage that is shown, and how well a page fits. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from nephila.storage.read.search_answer import Fragment

from nephila_stores.search.query import Term
from nephila_stores.search.words import VARIANTS

PASSAGE_CHARS: Final = 300
HITS: Final = 500
"""Occurrences that are looked at in one text."""
_SCORED: Final = 20_000
"""Characters of a text that count for its place."""
_BLANKS: Final = re.compile(r"\s+")
_SPACE: Final = r"(?:[\W_]+)"


def pattern(terms: Sequence[Term]) -> re.Pattern[str]:
    """Finds the words of a search in a text as it was written."""
    return re.compile("|".join(f"(?P<t{at}>{_of_term(term)})" for at, term in enumerate(terms)), re.IGNORECASE)


def _of_term(term: Term) -> str:
    words = [_of_word(word) for word in term.written]
    first, last = term.written[0], term.written[-1]
    before = r"(?<![^\W_])" if first.isascii() else ""
    after = r"(?![^\W_])" if last.isascii() and not term.prefix else ""
    # A word that begins in another script follows without a space.
    return before + f"{_SPACE}?".join(words) + after


def _of_word(word: str) -> str:
    letters = (
        [f"[{re.escape(letter + VARIANTS[letter])}]" if letter in VARIANTS else re.escape(letter) for letter in part]
        for part in word.split("ss")
    )
    return "(?:ss|ß)".join("".join(part) for part in letters)


def passage(text: str, words: re.Pattern[str]) -> list[Fragment]:
    """The part of a text with the most different words of the search; its beginning without any."""
    hits = [(hit.start(), hit.end(), hit.lastgroup) for hit in islice(words.finditer(text), HITS)]
    start, best = 0, 0
    for at, (begin, _, _) in enumerate(hits):
        near = [hit for hit in hits[at : at + 50] if hit[1] <= begin + PASSAGE_CHARS - 60]
        worth = 10 * len({name for _, _, name in near}) + min(len(near), 5)
        if worth > best:
            start, best = begin, worth
    if start > 60:
        begin, start = start, start - 60
        blank = text.find(" ", start, begin)
        start = blank + 1 if blank >= 0 else start
    else:
        start = 0
    end = min(len(text), start + PASSAGE_CHARS)
    return _fragments(text, start, end, hits)


def _fragments(text: str, start: int, end: int, hits: list[tuple[int, int, str | None]]) -> list[Fragment]:
    parts = [Fragment("…", False)] if start else []
    at = start
    for begin, stop, _ in hits:
        if begin < at or stop > end:
            continue
        if begin > at:
            parts.append(Fragment(_BLANKS.sub(" ", text[at:begin]), False))
        parts.append(Fragment(_BLANKS.sub(" ", text[begin:stop]), True))
        at = stop
    if end > at:
        parts.append(Fragment(_BLANKS.sub(" ", text[at:end]), False))
    return [*parts, Fragment("…", False)] if end < len(text) else parts


def score(terms: Sequence[Term], title: str, url: str, text: str) -> float:
    """How well a page fits: words in the title count most, then those in the URL, then how often in the text."""
    title, url, text = title.lower(), url.lower(), text[:_SCORED].lower()
    total = 0.0
    for term in terms:
        word = term.written[0]
        often = text.count(word)
        total += 3.0 * (word in title) + 1.0 * (word in url) + 2.0 * often / (often + 3.0)
    return total
