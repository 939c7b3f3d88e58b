"""Tables that a PDF page draws with lines: grids, and the pieces of text in their cells. Pure.

Lines that touch are one grid; it is a table when it has two columns and two rows. Invariant: each piece is in at most
one cell. O(lines squared) for at most MAX_LINES lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from nephila_documents.blocks import Block, BlockKind
from nephila_documents.pdf_layout import Piece, joined

MAX_LINES: Final = 800
"""A page with more is a drawing."""
NEAR: Final = 3.0
"""Points between lines that meet."""


class Rule(NamedTuple):
    """A drawn line; its width or its height is near zero."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def is_flat(self) -> bool:
        """True for a horizontal line."""
        return self.right - self.left > self.top - self.bottom


class Grid(NamedTuple):
    """A table and the place in the content where it belongs."""

    first: int
    """Number of its first piece."""
    pieces: frozenset[int]
    block: Block


def grids_of(pieces: Sequence[Piece], rules: Sequence[Rule]) -> list[Grid]:
    """The tables of a page."""
    if not 4 <= len(rules) <= MAX_LINES:
        return []
    grids = []
    for group in _touching(list(rules)):
        across = _places([(rule.top + rule.bottom) / 2 for rule in group if rule.is_flat])[::-1]
        down = _places([(rule.left + rule.right) / 2 for rule in group if not rule.is_flat])
        if len(across) < 2 or len(down) < 1:
            continue
        left, right = min(rule.left for rule in group), max(rule.right for rule in group)
        down = _places([left, *down, right])
        if len(down) >= 3 and (grid := _grid(pieces, across, down)) is not None:
            grids.append(grid)
    return grids


def _touching(rules: list[Rule]) -> list[list[Rule]]:
    groups: list[list[Rule]] = []
    for rule in rules:
        mine = [group for group in groups if any(_touch(rule, other) for other in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([rule, *(member for group in mine for member in group)])
    return groups


def _touch(rule: Rule, other: Rule) -> bool:
    return (
        rule.left <= other.right + NEAR
        and other.left <= rule.right + NEAR
        and rule.bottom <= other.top + NEAR
        and other.bottom <= rule.top + NEAR
    )


def _places(values: list[float]) -> list[float]:
    """Sorted, those that hardly differ once."""
    out: list[float] = []
    for value in sorted(values):
        if not out or value - out[-1] > NEAR:
            out.append(value)
    return out


def _grid(pieces: Sequence[Piece], across: list[float], down: list[float]) -> Grid | None:
    """`across`: y of the horizontal lines, from the top; `down`: x of the vertical ones."""
    rows, columns = len(across) - 1, len(down) - 1
    cells: dict[tuple[int, int], list[str]] = {}
    inside = []
    for number, piece in enumerate(pieces):
        row = next((at for at in range(rows) if across[at + 1] <= piece.middle <= across[at]), None)
        column = next((at for at in range(columns) if down[at] - NEAR <= piece.left < down[at + 1]), None)
        if row is None or column is None:
            continue
        inside.append(number)
        cells.setdefault((row, column), []).append(piece.text.strip())
    if len({column for _, column in cells}) < 2 or len({row for row, _ in cells}) < 2:
        return None
    table = tuple(tuple(joined(cells.get((row, column), [])) for column in range(columns)) for row in range(rows))
    return Grid(inside[0], frozenset(inside), Block(BlockKind.TABLE, rows=table))
