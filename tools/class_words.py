"""Scores of class words for the main-text model: learnt from the pages that the model is trained on.

A word of class, id, role or itemprop holds on a page what its outermost boxes hold. Its score is the share of that
which is main text, less the share of the whole page: mean over sites, in thousandths, drawn to 0 for words of few
sites. The core has the words in class_words.txt and computes the columns of `COLUMNS` (core/src/boxes.rs); here the
same columns are computed with other scores, because a page must not be judged by what its own site has taught.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TARGET = Path(__file__).parents[1] / "services/nephila/native/class_words.txt"
COLUMNS = ("own_score_least", "own_score_most", "path_score_least", "path_score_most", "path_score_sum")
"""The last features of the model."""
LEAST_SITES = 5
"""A word of fewer sites has no score."""
SHRINK = 6.0
"""Sites with a share of 0 that are added to those of a word."""
LEAST_SCORE = 20
"""A smaller score is left out."""
TOP = 32767
_WORD = re.compile(rb"[A-Za-z]+")
_CUT = re.compile(rb"(?<=[a-z])(?=[A-Z])")


class Boxes(NamedTuple):
    """The boxes of a page: parents before children; words of each, and the box of each line."""

    parents: list[int]
    words: list[frozenset[bytes]]
    lines: list[int]


Sums = dict[bytes, tuple[int, float]]
"""Word → sites, and the sum of their shares."""


def words_of(attributes: bytes) -> frozenset[bytes]:
    """Words as core/src/words.rs has them: runs of ASCII letters, cut where a capital follows a small one, in small
    letters, of 2 to 16."""
    parts = (part for run in _WORD.findall(attributes) for part in _CUT.split(run))
    return frozenset(part.lower() for part in parts if 2 <= len(part) <= 16)


def shares(page: Boxes, labels: Any, weights: Any) -> dict[bytes, float]:
    """For each word of a page the share of main text in its outermost boxes, less that of the page."""
    sums = np.zeros((len(page.parents), 2))
    np.add.at(sums, page.lines, np.column_stack((weights, weights * labels)))
    for at in range(len(sums) - 1, 0, -1):
        sums[page.parents[at]] += sums[at]
    if not sums[0, 0]:
        return {}
    base = sums[0, 1] / sums[0, 0]
    above: list[frozenset[bytes]] = [frozenset()] * len(sums)
    found: dict[bytes, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for at in range(1, len(sums)):
        outer = above[page.parents[at]]
        fresh = page.words[at] - outer
        above[at] = outer | fresh if fresh else outer
        if sums[at, 0]:
            for word in fresh:
                found[word][0] += sums[at, 0]
                found[word][1] += sums[at, 1]
    return {word: part / whole - base for word, (whole, part) in found.items()}


def by_site(pages: Iterable[tuple[str, dict[bytes, float]]]) -> dict[str, dict[bytes, float]]:
    """Site → word → mean share over its pages."""
    lists: dict[str, dict[bytes, list[float]]] = defaultdict(lambda: defaultdict(list))
    for site, found in pages:
        for word, share in found.items():
            lists[site][word].append(share)
    return {site: {word: sum(all_) / len(all_) for word, all_ in found.items()} for site, found in lists.items()}


def total(sites: Mapping[str, dict[bytes, float]], without: frozenset[str] = frozenset()) -> Sums:
    """Sums over all sites but some."""
    sums: Sums = {}
    for site, found in sites.items():
        if site not in without:
            for word, share in found.items():
                count, before = sums.get(word, (0, 0.0))
                sums[word] = (count + 1, before + share)
    return sums


def score(count: int, share: float) -> int:
    """Thousandths; 0: no score."""
    found = round(1000 * share / (count + SHRINK)) if count >= LEAST_SITES else 0
    return found if abs(found) >= LEAST_SCORE else 0


def scorer(sums: Sums, own: Mapping[bytes, float]) -> Callable[[bytes], int]:
    """Scores by `sums` without those of one site that is in them (`own`: its shares; empty: of none)."""
    known: dict[bytes, int] = {}

    def of(word: bytes) -> int:
        if word not in known:
            count, share = sums.get(word, (0, 0.0))
            known[word] = score(count - 1, share - own[word]) if word in own else score(count, share)
        return known[word]

    return of


def columns(page: Boxes, of: Callable[[bytes], int]) -> Any:
    """The columns of `COLUMNS` for the lines of a page, a row each."""
    rows = np.zeros((len(page.parents), len(COLUMNS)), np.float32)
    for at in range(1, len(rows)):
        scores = [found for word in page.words[at] if (found := of(word))]
        least, most = (min(scores), max(scores)) if scores else (0, 0)
        above = rows[page.parents[at]]
        rows[at] = (least, most, min(above[2], least), max(above[3], most), above[4] + least + most)
    return np.clip(rows[page.lines], -TOP - 1, TOP)


def write(sums: Sums) -> None:
    """The table that the core is built with."""
    rows = sorted((word.decode(), found) for word, (count, share) in sums.items() if (found := score(count, share)))
    head = "# Class words with learnt scores, written by tools/train_maintext.py: see core/src/words.rs.\n"
    TARGET.write_text(head + "".join(f"{word} {found}\n" for word, found in rows), "utf-8")
