"""Which lines of a page are its main text: features, model, blocks as a whole, the cut that promises the best F1, and
no copy of another part.

Invariant: whole numbers only. A page of no text has none; lines beyond MAX_LINES are what the last before them is.
"""

from __future__ import annotations

from typing import Final

from nephila.native._twin import blocks
from nephila.native._twin.article import left_in, stricter
from nephila.native._twin.boxes import Box
from nephila.native._twin.features import MAX_LINES, Line, features
from nephila.native._twin.forest import chances, model
from nephila.native._twin.joined import joined
from nephila.native._twin.tags import F_PRE, ids

LEAST: Final = 205
"""1,024ths: below 0.2 nothing is main text,"""
ENOUGH: Final = 512
"""and from even odds on everything is."""
ONCE: Final = 32
"""A copy of a line of so many bytes is told by its text."""
_AS_THEY_STAND: Final = frozenset(ids("pre td th"))


def main_text(text: bytes, lines: list[Line], boxes: list[Box], title: bytes, article: bool) -> tuple[list[int], bytes]:
    """The lines that are main text: their numbers, rising, and their text. O(bytes + lines + boxes).

    `article`: the page calls itself one.
    """
    if not lines:
        return [], b""
    known = lines[:MAX_LINES]
    texts = [text[line[0] : line[0] + line[1]] for line in known]
    found = chances(features(known, texts, boxes, title), len(known))
    places = blocks.places(boxes)
    blocks.level(found, known, boxes, places, model().chances)
    least = _cut(found, known)
    if article:
        least = stricter(found, known, least, model().chances)
    said: dict[bytes, int] = {}
    kept: list[int] = []
    at = 0
    while at < len(known):
        end = at + blocks.run(known, at, len(known), places)
        if (
            found[at] >= least
            and not _is_data(known[at], texts[at])
            and _is_new(known[at:end], texts[at:end], boxes, said)
        ):
            kept += range(at, end)
        at = end
    if found[-1] >= least:
        kept += range(len(known), len(lines))
    if article:
        kept = left_in(kept, lines, boxes)
    return kept, joined(text, lines, kept, places)


def _is_data(line: Line, text: bytes) -> bool:
    """Whether a line is JSON that a page prints by mistake; code is none."""
    return text[:1] in (b"{", b"[") and text[-1:] in (b"}", b"]") and not line[4] & F_PRE and b'":' in text


def _is_new(lines: list[Line], texts: list[bytes], boxes: list[Box], said: dict[bytes, int]) -> bool:
    """Whether a line, or a block, says anything that was not said before in another part of the page: pages hold copies
    of their parts for phones and for noscript. Verses, notes and rows repeat themselves rightly, in boxes of one
    template; so do code and cells. O(bytes)."""
    long = copies = 0
    for line, text in zip(lines, texts, strict=True):
        if line[1] >= ONCE:
            first = said.setdefault(text, line[5])
            long += 1
            copies += line[3] not in _AS_THEY_STAND and boxes[first].key != boxes[line[5]].key
    return not long or copies < long


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
