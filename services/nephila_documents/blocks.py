"""Blocks of a document that is not HTML - headings, paragraphs, items, tables - as text and structure. Pure.

Readers of office files and PDF in child processes make them. Invariant: text has one line per block and per row of a
table, cells are separated by tabs; the structure has the same words.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from html import escape
from typing import Final, NamedTuple

from nephila.native import recoded, structure_by
from nephila.parser.documents.content import without_controls
from nephila.parser.page.text import one_line, spelled_text

MAX_LEVEL: Final = 6
MAX_DEPTH: Final = 8
"""Of lists."""


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
    clean = []
    for block in blocks:
        if block.kind is BlockKind.TABLE:
            rows = tuple(tuple(one_line(cell) for cell in row) for row in block.rows)
            if any(map(any, rows)):
                clean.append(block._replace(rows=tuple(row for row in rows if any(row))))
        elif block.kind is BlockKind.CODE:
            if block.text.strip():
                clean.append(block._replace(text=spelled_text(without_controls(block.text)).strip("\n")))
        elif text := one_line(block.text):
            clean.append(block._replace(text=text))
    return clean


def text_of(blocks: Iterable[Block]) -> str:
    """Plain text of cleaned blocks."""
    return "\n".join(
        "\n".join("\t".join(row) for row in block.rows) if block.kind is BlockKind.TABLE else block.text
        for block in blocks
    )


def structure_of(blocks: Iterable[Block], text: bytes) -> bytes:
    """The structure of cleaned blocks beside their text, as the native core makes it of a page with these elements."""
    parts, depth = [], 0
    for block in blocks:
        level = min(block.level, MAX_DEPTH) + 1 if block.kind is BlockKind.ITEM else 0
        parts.append("<ul>" * (level - depth) + "</ul>" * (depth - level) + _html(block))
        depth = level
    return page_structure("".join(parts).encode("utf-8", "replace"), text)


def page_structure(html: bytes, text: bytes) -> bytes:
    """The structure of all of a page beside a text of it."""
    page_text, structure = structure_by(html, "utf-8", [])
    return recoded(structure, page_text, text)


def _html(block: Block) -> str:
    text = escape(block.text)
    match block.kind:
        case BlockKind.HEADING:
            level = min(max(block.level, 1), MAX_LEVEL)
            return f"<h{level}>{text}</h{level}>"
        case BlockKind.ITEM:
            return f"<li>{text}</li>"
        case BlockKind.TABLE:
            rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in block.rows)
            table = "".join(f"<tr>{row}</tr>" for row in rows)
            head, rest = table.split("</tr>", 1)
            return f"<table>{head.replace('<td>', '<th>').replace('</td>', '</th>')}</tr>{rest}</table>"
        case BlockKind.CODE:
            return f"<pre>{text}</pre>"
        case _:
            return f"<p>{text}</p>"
