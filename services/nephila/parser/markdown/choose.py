"""Which blocks are main text: those whose lines it has, tables and code as a whole, headings of what is kept.

Each line of the main text is found as often as it stands there. O(lines).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from nephila.parser.markdown.blocks import Block, Box, BoxKind, Kind, Line

TABLE_SHARE: Final = 0.3
"""Of the text of a table that has to be main text for the table to be."""
NEAR: Final = 4
"""Blocks between code, a table or a picture and the main text before and behind it, at most."""
CELLS: Final = " | "
"""Between two cells of a row in the main text."""


def choose(blocks: list[Block], main_text: str) -> list[Block]:
    """Mark and return the blocks to be written."""
    wanted = Counter(" ".join(line.split()) for line in main_text.split("\n"))
    for line in [line for line in wanted if CELLS in line]:
        for cell in line.split(CELLS):
            wanted[" ".join(cell.split())] += wanted[line]
    for block in blocks:
        _look(block, wanted)
    _lists(blocks)
    _between(blocks)
    _headings(blocks)
    return [block for block in blocks if block.kept]


def _look(block: Block, wanted: Counter[str]) -> None:
    if block.kind is Kind.TABLE:
        whole = sum(len(line.plain) for row in block.rows for cell in row for line in cell.lines)
        found = sum(_found_in_cell(cell.lines, wanted) for row in block.rows for cell in row)
        block.kept = found > 0 and found >= TABLE_SHARE * whole
    elif block.kind is Kind.TEXT:
        # A line without text is a picture between two lines.
        lines = [line for line in block.lines if not line.plain or _take(line, wanted)]
        block.kept = any(line.plain for line in lines)
        if block.kept:
            block.lines = lines
    else:
        found = sum(_take(line, wanted) for line in block.lines)
        block.kept = found > 0


def _take(line: Line, wanted: Counter[str]) -> int:
    """Characters of a line that is main text."""
    if not line.plain or wanted[line.plain] <= 0:
        return 0
    wanted[line.plain] -= 1
    return len(line.plain)


def _found_in_cell(lines: Sequence[Line], wanted: Counter[str]) -> int:
    found = sum(_take(line, wanted) for line in lines)
    if not found and len(lines) > 1:
        return _take(Line(" ".join(line.plain for line in lines), ""), wanted)
    return found


def _lists(blocks: list[Block]) -> None:
    """A list of which half is main text is it as a whole."""
    whole: Counter[int] = Counter()
    found: Counter[int] = Counter()
    for block in blocks:
        if block.kind is Kind.TEXT and (box := _list_of(block)) is not None:
            length = sum(len(line.plain) for line in block.lines)
            whole[id(box)] += length
            found[id(box)] += length * block.kept
    for block in blocks:
        box = _list_of(block)
        if box is not None and block.kind is Kind.TEXT and 2 * found[id(box)] >= whole[id(box)] > 0:
            block.kept = True


def _list_of(block: Block) -> Box | None:
    return next((box for box in block.boxes if box.kind is BoxKind.LIST), None)


def _between(blocks: list[Block]) -> None:
    """Code, tables and pictures that stand between two blocks of the main text are part of it."""
    behind = [len(blocks)] * (len(blocks) + 1)
    """Of each block the next one that is kept."""
    for number in range(len(blocks) - 1, -1, -1):
        behind[number] = number if blocks[number].kept else behind[number + 1]
    before = -NEAR - 1
    for number, block in enumerate(blocks):
        picture = block.kind is Kind.TEXT and not any(line.plain for line in block.lines)
        if block.kept:
            before = number
        elif (picture or block.kind in (Kind.CODE, Kind.TABLE)) and (next_ := behind[number]) < len(blocks):
            near = number - before <= NEAR
            block.kept = next_ - number <= NEAR and (near or (picture and blocks[next_].caption))
            if block.kept and not picture:
                before = number


def _headings(blocks: list[Block]) -> None:
    """The headings right above what is kept are kept, however short they are."""
    kept = False
    for block in reversed(blocks):
        if block.kind is Kind.HEADING:
            block.kept = block.kept or kept
        kept = block.kept
