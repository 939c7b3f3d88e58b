"""Which blocks are main text: those with lines of it, tables and code as a whole, headings of selected blocks.

Each line of the main text is matched as often as it occurs there. O(lines).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from nephila.native.fallback.markdown.blocks import Block, BlockContainer, BlockKind, BlockLine, ContainerKind
from nephila.native.fallback.markdown.inline import collapsed

TABLE_SHARE: Final = 0.3
"""Of the text of a table that has to be main text for the table to be."""
NEAR: Final = 4
"""Blocks between code, a table or a picture and the main text before and behind it, at most."""
CELLS: Final = " | "
"""Between two cells of a row in the main text."""


def select_blocks(blocks: list[Block], main_text: str) -> list[Block]:
    """Mark and return the blocks to be written."""
    wanted = Counter(collapsed(line) for line in main_text.split("\n"))
    for line in [line for line in wanted if CELLS in line]:
        for cell in line.split(CELLS):
            wanted[collapsed(cell)] += wanted[line]
    for block in blocks:
        _match_lines(block, wanted)
    _keep_lists(blocks)
    _keep_between(blocks)
    _keep_headings(blocks)
    return [block for block in blocks if block.kept]


def _match_lines(block: Block, wanted: Counter[str]) -> None:
    if block.kind is BlockKind.TABLE:
        whole = sum(len(line.plain) for row in block.rows for cell in row for line in cell.lines)
        found = sum(_found_in_cell(cell.lines, wanted) for row in block.rows for cell in row)
        block.kept = found > 0 and found >= TABLE_SHARE * whole
    elif block.kind is BlockKind.TEXT:
        # A line without text is a picture between two lines.
        lines = [line for line in block.lines if not line.plain or _consume(line, wanted)]
        block.kept = any(line.plain for line in lines)
        if block.kept:
            block.lines = lines
    else:
        found = sum(_consume(line, wanted) for line in block.lines)
        block.kept = found > 0


def _consume(line: BlockLine, wanted: Counter[str]) -> int:
    """Characters of a line that is main text."""
    if not line.plain or wanted[line.plain] <= 0:
        return 0
    wanted[line.plain] -= 1
    return len(line.plain)


def _found_in_cell(lines: Sequence[BlockLine], wanted: Counter[str]) -> int:
    found = sum(_consume(line, wanted) for line in lines)
    if not found and len(lines) > 1:
        return _consume(BlockLine(" ".join(line.plain for line in lines), ""), wanted)
    return found


def _keep_lists(blocks: list[Block]) -> None:
    """A list of which half is main text is it as a whole."""
    whole: Counter[int] = Counter()
    found: Counter[int] = Counter()
    for block in blocks:
        if block.kind is BlockKind.TEXT and (container := _list_of(block)) is not None:
            length = sum(len(line.plain) for line in block.lines)
            whole[id(container)] += length
            found[id(container)] += length * block.kept
    for block in blocks:
        container = _list_of(block)
        if (
            container is not None
            and block.kind is BlockKind.TEXT
            and 2 * found[id(container)] >= whole[id(container)] > 0
        ):
            block.kept = True


def _list_of(block: Block) -> BlockContainer | None:
    return next((container for container in block.containers if container.kind is ContainerKind.LIST), None)


def _keep_between(blocks: list[Block]) -> None:
    """Code, tables and pictures that stand between two blocks of the main text are part of it."""
    behind = [len(blocks)] * (len(blocks) + 1)
    """Of each block the next one that is kept."""
    for number in range(len(blocks) - 1, -1, -1):
        behind[number] = number if blocks[number].kept else behind[number + 1]
    before = -NEAR - 1
    for number, block in enumerate(blocks):
        picture = block.kind is BlockKind.TEXT and not any(line.plain for line in block.lines)
        if block.kept:
            before = number
        elif (picture or block.kind in (BlockKind.CODE, BlockKind.TABLE)) and (next_ := behind[number]) < len(blocks):
            near = number - before <= NEAR
            block.kept = next_ - number <= NEAR and (near or (picture and blocks[next_].caption))
            if block.kept and not picture:
                before = number


def _keep_headings(blocks: list[Block]) -> None:
    """The headings right above what is kept are kept, however short they are."""
    kept = False
    for block in reversed(blocks):
        if block.kind is BlockKind.HEADING:
            block.kept = block.kept or kept
        kept = block.kept
