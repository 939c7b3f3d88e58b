"""Blocks that main text takes or leaves whole: preformatted text, tables of data, and lists; and the rows of tables.

Invariant: the lines of one block follow each other. O(lines + boxes).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from nephila.native._twin.boxes import Box
from nephila.native._twin.tags import ids

_A_HEADING: Final = 1
_A_SECTION: Final = 2
_A_TABLE: Final = 4
_A_PRE: Final = 8
"""What a box holds, at any depth."""
LEAST_ROWS: Final = 2
LEAST_CELLS: Final = 4
"""A table of data has so many rows and cells; a smaller one is layout."""
_HOLDS: Final = {
    **dict.fromkeys(ids("h1 h2 h3 h4 h5 h6"), _A_HEADING),
    **dict.fromkeys(ids("article aside footer form header main nav section"), _A_SECTION),
    **dict.fromkeys(ids("table"), _A_TABLE),
    **dict.fromkeys(ids("pre"), _A_PRE),
}
_PRE: Final = ids("pre")[0]
_TABLE: Final = ids("table")[0]
_TR: Final = ids("tr")[0]
_CELLS: Final = frozenset(ids("td th"))
_LISTS: Final = frozenset(ids("ul ol dl menu dir"))


class Place:
    """Where a box stands: the box that is its block, that of its table row and the number of its cell; 0 is none.
    `cells` counts those of a row. `is_data`: in a table of data whose cells hold no preformatted text."""

    __slots__ = ("block", "cell", "cells", "is_data", "row")

    def __init__(self) -> None:
        self.block = self.row = self.cell = self.cells = 0
        self.is_data = False


def places(boxes: list[Box]) -> list[Place]:
    """A place for each box."""
    holds, rows, cells = ([0] * len(boxes) for _ in range(3))
    for at in range(len(boxes) - 1, 0, -1):
        tag, over = boxes[at].tag, boxes[at].parent
        holds[over] |= holds[at] | _HOLDS.get(tag, 0)
        rows[over] += rows[at] + (tag == _TR)
        cells[over] += cells[at] + (tag in _CELLS)
    found = [Place() for _ in boxes]
    for at in range(1, len(boxes)):
        tag, parent = boxes[at].tag, boxes[at].parent
        above, place = found[parent], found[at]
        place.block, place.row, place.cell, place.is_data = above.block, above.row, above.cell, above.is_data
        is_data = (
            not holds[at] & (_A_HEADING | _A_SECTION | _A_TABLE) and rows[at] >= LEAST_ROWS and cells[at] >= LEAST_CELLS
        )
        if tag == _TABLE:
            place.is_data = is_data and not holds[at] & _A_PRE
        elif tag == _TR and above.is_data:
            place.row, place.cell = at, 0
        elif tag in _CELLS and above.row == parent > 0:
            place.cell = above.cells
            above.cells += 1
        is_list = tag in _LISTS and not holds[at] & (_A_HEADING | _A_SECTION)
        if not place.block and (tag == _PRE or (tag == _TABLE and is_data) or is_list):
            place.block = at
    return found


def level(
    found: list[int], lines: list[list[int]], boxes: list[Box], known: list[Place], chances: Sequence[int]
) -> None:
    """Give all lines of a block one chance: its mean, weighted by bytes; of code and tables, which look like nothing
    else, that of the text before or after them where it is higher."""
    runs: list[tuple[int, int, bool]] = []
    at = 0
    while at < len(found):
        end = at + run(lines, at, len(found), known)
        block = known[lines[at][5]].block
        if block:
            size = sum(line[1] for line in lines[at:end])
            total = sum(chances[n] * line[1] for n, line in zip(found[at:end], lines[at:end], strict=True))
            entry = min(bisect_left(chances, -(-total // max(size, 1))), len(chances) - 1)
            found[at:end] = [entry] * (end - at)
        runs.append((at, end, boxes[block].tag in (_PRE, _TABLE)))
        at = end
    means = found[:]
    for ordered in (runs, runs[::-1]):
        beside = 0
        for at, end, is_odd in ordered:
            if is_odd:
                found[at:end] = [max(found[at], means[at], beside)] * (end - at)
            else:
                beside = means[at]


def run(lines: list[list[int]], at: int, stop: int, known: list[Place]) -> int:
    """How many of the lines from `at` on belong together: those of one block, or one alone."""
    block = known[lines[at][5]].block
    end = at + 1
    while block and end < stop and known[lines[end][5]].block == block:
        end += 1
    return end - at
