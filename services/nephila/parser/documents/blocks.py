"""Blocks of a document that is not HTML - headings, paragraphs, items, tables - as text and as Markdown. Pure.

Readers of office files and PDF in child processes make them. Invariant: text has one line per block and per row of a
table, cells are separated by tabs; Markdown has the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from nephila.parser.documents.content import without_controls
from nephila.parser.page.text import one_line

MAX_LEVEL: Final = 6
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>])")
_START: Final = re.compile(r"^(#{1,6} |[-+>] |\d{1,9}[.)] |~~~|---|===)")


class BlockKind(Enum):
    """What a block is."""

    HEADING = 1
    PARAGRAPH = 2
    ITEM = 3
    """Of a list."""
    TABLE = 4
    CODE = 5


class Block(NamedTuple):
    """One block. `rows` belongs to a table, `text` to all others."""

    kind: BlockKind
    text: str = ""
    level: int = 0
    """Of a heading from 1; of an item from 0."""
    rows: tuple[tuple[str, ...], ...] = ()


def cleaned(blocks: Iterable[Block]) -> list[Block]:
    """Blocks without control characters and doubled white space; empty ones are left out."""
    found = []
    for block in blocks:
        if block.kind is BlockKind.TABLE:
            rows = tuple(tuple(one_line(cell) for cell in row) for row in block.rows)
            if any(map(any, rows)):
                found.append(block._replace(rows=tuple(row for row in rows if any(row))))
        elif block.kind is BlockKind.CODE:
            if block.text.strip():
                found.append(block._replace(text=without_controls(block.text).strip("\n")))
        elif text := one_line(block.text):
            found.append(block._replace(text=text))
    return found


def text_of(blocks: Iterable[Block]) -> str:
    """Plain text of cleaned blocks."""
    return "\n".join(
        "\n".join("\t".join(row) for row in block.rows) if block.kind is BlockKind.TABLE else block.text
        for block in blocks
    )


def markdown_of(blocks: Iterable[Block]) -> str:
    """Markdown (GFM) of cleaned blocks."""
    parts: list[str] = []
    last = None
    for block in blocks:
        # Items of one list stand without an empty line between them.
        joint = "\n" if block.kind is BlockKind.ITEM and last is BlockKind.ITEM else "\n\n"
        parts += [joint, _markdown(block)]
        last = block.kind
    return "".join(parts[1:])


def _markdown(block: Block) -> str:
    match block.kind:
        case BlockKind.HEADING:
            return f"{'#' * min(max(block.level, 1), MAX_LEVEL)} {_escaped(block.text)}"
        case BlockKind.ITEM:
            return f"{'  ' * min(block.level, 8)}- {_escaped(block.text)}"
        case BlockKind.TABLE:
            return _table(block.rows)
        case BlockKind.CODE:
            fence = "```" if "```" not in block.text else "````"
            return f"{fence}\n{block.text}\n{fence}"
        case _:
            return _START.sub(r"\\\1", _escaped(block.text))


def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    width = max(map(len, rows))
    lines = [f"| {' | '.join(_cells(row, width))} |" for row in rows]
    lines.insert(1, f"|{' --- |' * width}")
    return "\n".join(lines)


def _cells(row: tuple[str, ...], width: int) -> Iterable[str]:
    return (_escaped(cell).replace("|", "\\|") for cell in (*row, *("",) * (width - len(row))))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
