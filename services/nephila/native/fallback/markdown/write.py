"""Blocks as Markdown text, each with the markers and indentation of the lists and quotes around it."""

from __future__ import annotations

import re
from typing import Final

from nephila.native.fallback.markdown.blocks import Block, BlockContainer, BlockKind, Cell, ContainerKind

MAX_CHARS: Final = 32_000_000
"""What is beyond is left out: indentation may make the text several times longer than the page."""

_OPENING: Final = re.compile(
    r"^(?:#{1,6}(?=\s|$)|>|[+-](?=\s|$)|[=:|-][=:| -]*$|~{3}|(?P<number>[0-9]{1,9})(?P<dot>[.)])(?=\s|$))"
)
_TICKS: Final = re.compile(r"`{3,}")
_BAR: Final = re.compile(r"(?<!\\)\|")


def write(blocks: list[Block]) -> str:
    """The text, without a line end at its end. O(characters)."""
    out: list[str] = []
    length = 0
    before: Block | None = None
    for block in blocks:
        lines = _lines(block)
        if not lines:
            continue
        if before is not None:
            out += [_blank(before, block)] if not _is_close(before, block) else []
        first, rest = _prefixes(block.containers)
        out.append(first + lines[0])
        out += [rest + line if line else rest.rstrip() for line in lines[1:]]
        length += sum(map(len, lines)) + len(rest) * len(lines)
        if length > MAX_CHARS:
            break
        before = block
    return "\n".join(out)


def _lines(block: Block) -> list[str]:
    if block.kind is BlockKind.HEADING:
        text = " ".join(line.written for line in block.lines).strip()
        return ["#" * block.level + " " + text] if text else []
    if block.kind is BlockKind.CODE:
        ticks = max((len(run) for line in block.lines for run in _TICKS.findall(line.written)), default=2)
        fence = "`" * (ticks + 1)
        return [fence + block.language, *(line.written for line in block.lines), fence]
    if block.kind is BlockKind.TABLE:
        return _table(block.rows)
    lines = [_OPENING.sub(_escaped, line.written) for line in block.lines if line.written]
    # Two spaces end a line within a paragraph.
    return [*(line + "  " for line in lines[:-1]), *lines[-1:]]


def _escaped(found: re.Match[str]) -> str:
    return f"{found['number']}\\{found['dot']}" if found["number"] else f"\\{found[0]}"


def _table(rows: list[list[Cell]]) -> list[str]:
    rows = [row for row in rows if row]
    head = rows[0] if rows and all(cell.is_head for cell in rows[0]) else []
    width = max((sum(cell.span for cell in row) for row in rows), default=0)
    lines = [_row(head) if head else "|" + "  |" * width, "|" + " --- |" * width]
    if head and sum(cell.span for cell in head) < width:
        lines[0] += "  |" * (width - sum(cell.span for cell in head))
    return [*lines, *map(_row, rows[1:] if head else rows)]


def _row(cells: list[Cell]) -> str:
    parts = ["|"]
    for cell in cells:
        text = "<br>".join(_BAR.sub(r"\\|", line.written) for line in cell.lines if line.written)
        parts.append(f" {text} |" + "  |" * (cell.span - 1))
    return "".join(parts)


def _prefixes(containers: tuple[BlockContainer, ...]) -> tuple[str, str]:
    """What stands before the first line of a block and before the others."""
    first: list[str] = []
    rest: list[str] = []
    for container in containers:
        if container.kind is ContainerKind.QUOTE:
            first.append("> ")
            rest.append("> ")
        elif container.kind is ContainerKind.ITEM:
            space = " " * len(container.marker)
            first.append(space if container.begun else container.marker)
            rest.append(space)
            container.begun = True
    return "".join(first), "".join(rest)


def _is_close(before: Block, block: Block) -> bool:
    """Whether no blank line parts them: items of one list, or of one within the other."""
    if before.kind is not BlockKind.TEXT or block.kind is not BlockKind.TEXT or not block.containers:
        return False
    own = block.containers[-1]
    common = [
        container for container, other in zip(before.containers, block.containers, strict=False) if container is other
    ]
    return (
        own.kind is ContainerKind.ITEM and not own.begun and bool(common) and common[-1].kind is not ContainerKind.QUOTE
    )


def _blank(before: Block, block: Block) -> str:
    """The line between two blocks, which keeps what they both stand in together."""
    common: list[str] = []
    for container, other in zip(before.containers, block.containers, strict=False):
        if container is not other:
            break
        common.append("> " if container.kind is ContainerKind.QUOTE else " " * len(container.marker))
    return "".join(common).rstrip()
