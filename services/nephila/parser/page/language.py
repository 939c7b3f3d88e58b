"""The language of a text whose page declares none: by its script, else by its most frequent words.

A table of 60 words in each of 35 languages (native/languages.txt) names a wrong language less often than langid and
lingua: where they guess, it names none. It costs a tenth of their time and no dependency (docs/adr/0249). Invariant: a
text that has too few words of one language, or nearly as many of another, has none. Pure; only the start of a text is
read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

import nephila.native

MAX_CHARS: Final = 800
"""Characters of a text that are read."""
LEAST_WORDS: Final = 3.0
"""Frequent words that a text has at least; a word of several languages counts as a part of one in each."""
LEAST_SHARE: Final = 0.08
"""Share of them in all words."""
MARGIN: Final = 1.2
"""The first language has so many times the words of the second."""
_SCRIPTS: Final = (
    ("ko", "가-힣"),
    ("th", "ก-๛"),
    ("el", "Ͱ-Ͽ"),
    ("he", "א-ת"),
    ("hy", "Ա-֏"),
    ("ka", "Ⴀ-ჿ"),
    ("bn", "ঀ-৿"),
    ("ta", "஀-௿"),
    ("te", "ఀ-౿"),
    ("km", "ក-៿"),
    ("my", "က-႟"),
)
"""Scripts of one language that is frequent on the web."""
_OTHER: Final = re.compile("[Ͱ-῿⺀-￿]")
"""Letters of scripts that are not Latin."""
_KANA: Final = re.compile("[ぁ-ヿ]")
_HAN: Final = re.compile("[一-鿿]")
_LEAST_KANA: Final = 0.1
"""Kana to a Chinese character in Japanese texts."""
_EDGES: Final = ".,;:!?()[]\"'“”„«»‘’…–—-|"


def language_of(text: bytes) -> str:
    """The tag of a language in small letters (ISO 639-1, or -3 where that has none), or "". O(1)."""
    start = text[: 4 * MAX_CHARS].decode("utf-8", "ignore")[:MAX_CHARS].lower()
    is_latin = start.isascii() or 3 * len(_OTHER.findall(start)) <= len(start)
    return ("" if is_latin else _by_script(start)) or _by_words(start)


def _by_script(text: str) -> str:
    """The language of a script that a third of the text, with its spaces and signs, is written in."""
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    if 3 * (kana + han) > len(text):
        return "ja" if kana > _LEAST_KANA * han else "zh"
    return next((tag for tag, script in _scripts() if 3 * len(script.findall(text)) > len(text)), "")


@cache
def _scripts() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((tag, re.compile(f"[{letters}]")) for tag, letters in _SCRIPTS)


def _by_words(text: str) -> str:
    table, scores = _table(), defaultdict[str, float](float)
    words = [word.strip(_EDGES) for word in text.split()]
    for tags in filter(None, map(table.get, words)):
        share = 1 / len(tags)
        for tag in tags:
            scores[tag] += share
    ranks = sorted(((score, tag) for tag, score in scores.items()), reverse=True)
    (score, tag), (second, _) = [*ranks, (0.0, ""), (0.0, "")][:2]
    is_clear = score >= max(LEAST_WORDS, LEAST_SHARE * len(words)) and score >= MARGIN * second
    return tag if is_clear else ""


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """Word → languages that have it."""
    table: dict[str, tuple[str, ...]] = {}
    for line in Path(nephila.native.__file__).with_name("languages.txt").read_text("utf-8").splitlines():
        tag, *words = line.split()
        if tag != "#":
            for word in words:
                table[word] = (*table.get(word, ()), tag)
    return table
