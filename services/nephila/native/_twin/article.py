"""What is left out of a page that calls itself an article: lines of doubt, comments below it, and captions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from nephila.native._twin.boxes import COMMENT, Box
from nephila.native._twin.tags import ids

STRICT: Final = 666
"""1,024ths: lines of a smaller chance are left out,"""
LEAST_LEFT: Final = 80
"""if those that stay make so many percent of the bytes: else the page is no article to the model."""
LEAST_ABOVE: Final = 400
LONG: Final = 80
"""Comments stand below so many bytes of lines that are `LONG`, and are at most seven eighths of the whole: else they
are what the page is about, or its body has the class."""
_FIGCAPTION: Final = ids("figcaption")[0]


def stricter(found: list[int], lines: list[list[int]], least: int, chances: Sequence[int]) -> int:
    """The entry of the chances from which on lines are taken, where `least` is that of any page. O(lines)."""
    strict = max(bisect_left(chances, STRICT), least)
    left, had = (
        sum(line[1] for entry, line in zip(found, lines, strict=True) if entry >= at) for at in (strict, least)
    )
    return strict if 100 * left >= LEAST_LEFT * had else least


def left_in(kept: list[int], lines: list[list[int]], boxes: list[Box]) -> list[int]:
    """`kept` without captions, and without comments that stand below the text. O(lines + boxes)."""
    outer = [0] * len(boxes)
    for at in range(1, len(boxes)):
        above = outer[boxes[at].parent]
        outer[at] = at if not above and boxes[at].own & COMMENT else above
    prose = size = comments = last = 0
    goes = False
    stays = []
    for at in kept:
        line = lines[at]
        if outer[line[5]] != last:
            last = outer[line[5]]
            goes = last > 0 and prose >= LEAST_ABOVE
        size += line[1]
        comments += line[1] if goes else 0
        prose += line[1] if not last and line[1] >= LONG else 0
        stays.append(not goes)
    if 8 * comments <= 7 * size:
        kept = [at for at, one in zip(kept, stays, strict=True) if one]
    return [at for at in kept if lines[at][3] != _FIGCAPTION]
