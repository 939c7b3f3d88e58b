"""Blocks of PDF pages from pieces of text with their places: headings, tables, columns, paragraphs. Pure.

A piece is a stretch of characters on one line without a wide gap, in the order of the page's content. Lines are pieces
on one baseline. Invariant: every piece is in exactly one block. Sizes are heights of lines in points; y grows upwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nephila_documents.blocks import Block, BlockKind

HEADING_RATIO: Final = 1.15
"""Height of a heading beside that of the text, at least."""
MAX_HEADING_CHARS: Final = 200
MIN_ROWS: Final = 3
"""Rows of a table without rules, at least; two columns of a glossary in two lines are text."""
MAX_COLUMNS: Final = 30
MAX_CELL_LINES: Final = 20
"""Lines of a row, on average."""
DROP_CAP_RATIO: Final = 1.7
"""Height of a letter that begins a paragraph over several lines, beside the text."""
MAX_DROP_CAPS: Final = 20
"""Of one page."""
FULL_LINE: Final = 0.85
"""Of the width of its column that a line fills when the next one continues it."""

HYPHEN: Final = "\u00ad"
"""Stands for the hyphen of a word that is broken at the end of a line."""
_NUMBER: Final = re.compile(r"^(?:(?:\d+|[A-Z])(?:\.\d+)*\.?)\s+(?=\S)")
_LEADER: Final = re.compile(r"(?:\. ?){4,}")
"""Dots up to the number of a page: a line of a table of contents."""
_WORD: Final = re.compile(r"\w+")
_BULLET: Final = re.compile(r"^[•◦▪‣·●○–—*-]\s+|^\(?\d{1,2}[.)]\s+(?=\S)")


class Piece(NamedTuple):
    """A stretch of text. Coordinates in points."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    size: float
    bold: bool = False

    @property
    def middle(self) -> float:
        """Height of its middle."""
        return (self.bottom + self.top) / 2


@dataclass(slots=True)
class Line:
    """Pieces on one baseline, from left to right."""

    pieces: list[Piece]

    @property
    def text(self) -> str:
        """The pieces with blanks between them."""
        return " ".join(piece.text.strip() for piece in self.pieces)

    @property
    def left(self) -> float:
        return self.pieces[0].left

    @property
    def right(self) -> float:
        return max(piece.right for piece in self.pieces)

    @property
    def size(self) -> float:
        """The largest height of its pieces."""
        return max(piece.size for piece in self.pieces)

    @property
    def bottom(self) -> float:
        return min(piece.bottom for piece in self.pieces)

    @property
    def top(self) -> float:
        return max(piece.top for piece in self.pieces)


@dataclass(slots=True)
class Sizes:
    """Heights of text over a document: that of running text, and the larger ones as levels of headings."""

    body: float = 0.0
    levels: dict[float, int] = field(default_factory=dict)

    def level_of(self, line: Line) -> int:
        """Level of a heading of this size; 0 for text."""
        if not self.body or line.size < HEADING_RATIO * self.body:
            return 0
        return self.levels.get(_rounded(line.size), len(self.levels) + 1)


def sizes_of(pages: Iterable[Sequence[Piece]]) -> Sizes:
    """Sizes by the number of characters that have them."""
    count: Counter[float] = Counter()
    for pieces in pages:
        for piece in pieces:
            count[_rounded(piece.size)] += len(piece.text)
    if not count:
        return Sizes()
    body = count.most_common(1)[0][0]
    larger = sorted((size for size in count if size >= HEADING_RATIO * body), reverse=True)
    # Sizes that hardly differ are one level.
    levels: dict[float, int] = {}
    last, level = 0.0, 0
    for size in larger:
        if not last or size < 0.93 * last:
            level += 1
            last = size
        levels[size] = level
    return Sizes(body, levels)


def _rounded(size: float) -> float:
    return round(2 * size) / 2


def blocks_of(pieces: Sequence[Piece], sizes: Sizes, outline: Mapping[str, int]) -> list[Block]:
    """The blocks of one page. `outline`: level of the headings that the document's outline has here, by `key_of`."""
    lines = _lines(_with_drop_caps(_by_columns(list(pieces)), sizes))
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        end, table = _table(lines, at)
        if table is not None:
            blocks.append(table)
            at = end
            continue
        heading, end = _heading(lines, at, sizes, outline)
        if heading is not None:
            blocks.append(heading)
            at = end
            continue
        at, block = _paragraph(lines, at, sizes, outline)
        blocks.append(block)
    return blocks


def key_of(text: str) -> str:
    """Words of a heading without its number, for comparison."""
    text = _NUMBER.sub("", text.strip().replace(f"{HYPHEN} ", "").replace(HYPHEN, ""))
    return " ".join(_WORD.findall(text.casefold()))


# ---- order of columns


def _by_columns(pieces: list[Piece]) -> list[Piece]:
    """Pieces column by column where the content alternates between two columns of running text."""
    gutter = _gutter(pieces)
    if gutter is None:
        return pieces
    out: list[Piece] = []
    left: list[Piece] = []
    right: list[Piece] = []
    for piece in pieces:
        if piece.right <= gutter:
            left.append(piece)
        elif piece.left >= gutter:
            right.append(piece)
        else:
            out += [*left, *right, piece]
            left, right = [], []
    return [*out, *left, *right]


def _gutter(pieces: list[Piece]) -> float | None:
    """The middle of the gap between two columns, when lines of both alternate in the content; else None."""
    rows = _lines(pieces)
    pairs = [line.pieces for line in rows if len(line.pieces) == 2]
    if len(pairs) < 5 or 2 * len(pairs) < len(rows):
        return None
    ends, starts = [pair[0].right for pair in pairs], [pair[1].left for pair in pairs]
    edge = max(ends)
    if edge >= min(starts):
        return None
    # Cells of a table are short; lines of a column fill it.
    width = edge - min(pair[0].left for pair in pairs)
    full = sum(pair[0].right - pair[0].left > 0.8 * width for pair in pairs)
    long = sum(len(pair[0].text) > 20 and len(pair[1].text) > 8 for pair in pairs)
    return (edge + min(starts)) / 2 if 3 * full > 2 * len(pairs) and 3 * long > 2 * len(pairs) else None


# ---- lines


def _lines(pieces: Sequence[Piece]) -> list[Line]:
    lines: list[Line] = []
    for piece in pieces:
        if lines and _on_line(lines[-1].pieces[-1], piece):
            lines[-1].pieces.append(piece)
        else:
            lines.append(Line([piece]))
    for line in lines:
        line.pieces.sort(key=lambda piece: piece.left)
    return lines


def _on_line(before: Piece, piece: Piece) -> bool:
    lower = min(before.top - before.bottom, piece.top - piece.bottom)
    return abs(before.middle - piece.middle) < 0.4 * lower and (
        piece.left >= before.right - 1 or piece.right <= before.left + 1
    )


def _with_drop_caps(pieces: list[Piece], sizes: Sizes) -> list[Piece]:
    """A large first letter joined to the line that it begins."""
    out: list[Piece] = []
    waiting: list[Piece] = []
    for piece in pieces:
        text = piece.text.strip()
        is_letter = len(text) == 1 and text.isalpha() and len(waiting) < MAX_DROP_CAPS
        if is_letter and sizes.body and piece.size > DROP_CAP_RATIO * sizes.body:
            waiting.append(piece)
            continue
        cap = next((candidate for candidate in waiting if _begins(candidate, piece)), None)
        if cap is not None:
            waiting.remove(cap)
            piece = piece._replace(text=cap.text.strip() + piece.text.lstrip())
        out.append(piece)
    for cap in waiting:
        index = next((at for at, piece in enumerate(out) if _begins(cap, piece)), None)
        if index is None:
            out.append(cap)
        else:
            out[index] = out[index]._replace(text=cap.text.strip() + out[index].text.lstrip())
    return out


def _begins(cap: Piece, piece: Piece) -> bool:
    """True when the piece is the first line beside a large letter."""
    beside = -2 <= piece.left - cap.right < cap.size
    return beside and cap.bottom < piece.middle < cap.top and cap.top - piece.top < 0.6 * cap.size


# ---- headings


def _heading(lines: list[Line], at: int, sizes: Sizes, outline: Mapping[str, int]) -> tuple[Block | None, int]:
    line = lines[at]
    # A heading may take two lines.
    for count in (1, 2, 3):
        text = joined([row.text for row in lines[at : at + count]])
        if (level := outline.get(key_of(text))) and (line.size >= sizes.body or line.pieces[0].bold):
            return Block(BlockKind.HEADING, text, level), at + count
    level = sizes.level_of(line)
    if not level or not any(letter.isalpha() for letter in line.text):
        return None, at
    end = at + 1
    while (
        end < len(lines) and sizes.level_of(lines[end]) == level and lines[end - 1].bottom - lines[end].top < line.size
    ):
        end += 1
    text = joined([row.text for row in lines[at:end]])
    return (Block(BlockKind.HEADING, text, level), end) if len(text) <= MAX_HEADING_CHARS else (None, at)


# ---- paragraphs


def _paragraph(lines: list[Line], at: int, sizes: Sizes, outline: Mapping[str, int]) -> tuple[int, Block]:
    first = lines[at]
    parts = [first.text]
    bullet = _BULLET.match(first.text)
    edge = max(line.right for line in lines[at : at + 20] if abs(line.left - first.left) < 30)
    end = at + 1
    while end < len(lines):
        before, line = lines[end - 1], lines[end]
        gap = before.bottom - line.top
        if (
            gap > 0.8 * before.size
            or gap < -1.5 * before.size
            or abs(line.size - before.size) > 0.15 * before.size
            or _BULLET.match(line.text)
            or _LEADER.search(before.text)
            or _LEADER.search(line.text)
            or sizes.level_of(line)
            or key_of(line.text) in outline
            or before.right < first.left + FULL_LINE * (edge - first.left)
            or (line.left > first.left + 8 and not bullet and end > at + 1)
            or _table(lines, end)[1] is not None
        ):
            break
        parts.append(line.text)
        end += 1
    text = joined(parts)
    if bullet:
        return end, Block(BlockKind.ITEM, text[bullet.end() :] if not bullet[0].strip("(.) ").isdecimal() else text)
    return end, Block(BlockKind.PARAGRAPH, text)


def joined(parts: Sequence[str]) -> str:
    """Text of several lines: broken words whole, dots up to the number of a page left out."""
    return _LEADER.sub(" ", " ".join(parts).replace(f"{HYPHEN} ", "").replace(HYPHEN, ""))


# ---- tables


def _table(lines: list[Line], at: int) -> tuple[int, Block | None]:
    """A table that begins at a line, and the line behind it."""
    if not 2 <= len(lines[at].pieces) <= MAX_COLUMNS or _LEADER.search(lines[at].text):
        return at, None
    rows = [lines[at].pieces]
    starts = [piece.left for piece in lines[at].pieces]
    end = at + 1
    whole = 1
    while end < len(lines):
        line, before = lines[end], lines[end - 1]
        gap = before.bottom - line.top
        if gap > 2.5 * before.size or gap < -1.5 * before.size or len(rows) > MAX_CELL_LINES * whole:
            break
        columns = [_column(piece, starts) for piece in line.pieces]
        if len(line.pieces) >= 2 and _fits(line, rows, starts):
            rows.append(line.pieces)
            whole += 1
        elif None not in columns and min(c for c in columns if c is not None) > 0 and gap < 0.6 * before.size:
            rows.append(line.pieces)
        else:
            break
        end += 1
    if whole < MIN_ROWS:
        return at, None
    columns_of = _columns(rows)
    if len(columns_of) < 2:
        return at, None
    return end, Block(BlockKind.TABLE, rows=tuple(_cells(rows, columns_of)))


def _fits(line: Line, rows: list[list[Piece]], starts: list[float]) -> bool:
    """Whether most pieces of a line overlap a column of the rows so far."""
    hits = sum(
        any(piece.left < other.right + 2 and other.left < piece.right + 2 for other in rows[-1])
        or _column(piece, starts) is not None
        for piece in line.pieces
    )
    return hits >= 2 or hits == len(line.pieces)


def _column(piece: Piece, starts: list[float]) -> int | None:
    near = min(range(len(starts)), key=lambda at: abs(starts[at] - piece.left))
    return near if abs(starts[near] - piece.left) < 6 else None


def _columns(rows: list[list[Piece]]) -> list[tuple[float, float]]:
    """Left and right edges of the columns: pieces that overlap are in one."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((piece.left, piece.right) for row in rows for piece in row):
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(right, columns[-1][1]))
        else:
            columns.append((left, right))
    return columns


def _cells(rows: list[list[Piece]], columns: list[tuple[float, float]]) -> Iterable[tuple[str, ...]]:
    """Text by column; a line that leaves the first column empty continues the row above."""
    table: list[list[str]] = []
    for row in rows:
        cells = [""] * len(columns)
        for piece in row:
            at = next(column for column, (left, right) in enumerate(columns) if left <= piece.left <= right)
            cells[at] = f"{cells[at]} {piece.text.strip()}".strip()
        if table and not cells[0] and sum(map(bool, cells)) < sum(map(bool, table[-1])):
            table[-1] = [joined(list(filter(None, pair))) for pair in zip(table[-1], cells, strict=True)]
        else:
            table.append(cells)
    return map(tuple, table)
