"""Which lines of a page are its main text: features, model, the cut that promises the best F1, and no line twice.

Invariant: whole numbers only. A page of no text has none; lines beyond MAX_LINES are what the last before them is.
"""

from __future__ import annotations

from typing import Final

from nephila.native._twin.boxes import Box
from nephila.native._twin.features import MAX_LINES, Line, features
from nephila.native._twin.forest import chances, model
from nephila.native._twin.tags import ids

LEAST: Final = 205
"""1,024ths: below 0.2 nothing is main text,"""
ENOUGH: Final = 512
"""and from even odds on everything is."""
ONCE: Final = 32
"""A line of so many bytes is main text but once."""
_AS_THEY_STAND: Final = frozenset(ids("pre td th"))


def main_lines(text: bytes, lines: list[Line], boxes: list[Box], title: bytes) -> list[int]:
    """Indices of the lines that are main text, rising. O(bytes + lines + boxes)."""
    count = len(lines)
    lines = lines[:MAX_LINES]
    if not lines:
        return []
    texts = [text[line[0] : line[0] + line[1]] for line in lines]
    found = chances(features(lines, texts, boxes, title), len(lines))
    least = _cut(found, lines)
    rest = range(len(lines), count) if found[-1] >= least else range(0)
    return [*once([at for at, chance in enumerate(found) if chance >= least], lines, texts), *rest]


def once(taken: list[int], lines: list[Line], texts: list[bytes]) -> list[int]:
    """`taken` without what it says a second time: pages hold copies of their parts for phones, for noscript and for
    carousels. The first stays. Verses (lines of one box), code and cells repeat themselves rightly. O(bytes)."""
    said: dict[bytes, int] = {}
    kept = []
    for at in taken:
        line = lines[at]
        if line[1] < ONCE or line[3] in _AS_THEY_STAND or said.setdefault(texts[at], line[5]) == line[5]:
            kept.append(at)
    return kept


def _cut(found: list[int], lines: list[Line]) -> int:
    """The entry of the chances from which on lines are taken: where the expected F1 of bytes is highest.

    With C the expected main bytes among the Z bytes taken and T those of the page, F1 is 2C / (Z + T). Lewis (1995),
    "Evaluating and optimizing autonomous text classification systems".
    """
    known = model().chances
    sizes = [0] * len(known)
    for chance, line in zip(found, lines, strict=True):
        sizes[chance] += line[1]
    total = sum(size * chance for size, chance in zip(sizes, known, strict=True))
    best, best_of, cut = 0, 1, len(known)
    taken = right = 0
    for at in range(len(known) - 1, -1, -1):
        if not sizes[at]:
            continue
        taken += sizes[at] << 10
        right += sizes[at] * known[at]
        if right * best_of > best * (taken + total):
            best, best_of, cut = right, taken + total, at
    low = next(at for at, chance in enumerate(known) if chance >= LEAST)
    high = next(at for at, chance in enumerate(known) if chance >= ENOUGH)
    return min(max(cut, low), high)
