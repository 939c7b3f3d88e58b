"""Main text as it is written: a line each, the cells of a table row in one line, empty lines of code kept."""

from __future__ import annotations

from typing import Final

from nephila.native._twin.blocks import Place

BAR: Final = b" | "
"""Between two cells."""
MOST_LINES: Final = 8
"""A cell of more lines is a text of its own: its row is not one line."""
_PRE: Final = 1 << 4


def joined(text: bytes, lines: list[list[int]], named: list[int], known: list[Place]) -> bytes:
    """The lines of `text` that are named, one below the other. O(bytes + cells)."""
    out = bytearray()
    start = 0
    while start < len(named):
        row = known[lines[named[start]][5]].row
        end = start + 1
        while row and end < len(named) and known[lines[named[end]][5]].row == row:
            end += 1
        cells = [known[lines[at][5]].cell for at in named[start:end]]
        is_short = all(a != b for a, b in zip(cells, cells[MOST_LINES:], strict=False))
        one_line = row > 0 and known[row].cells > 1 and is_short
        before = 0
        for number, at in enumerate(named[start:end]):
            line = lines[at]
            if not one_line or number == 0:
                out += b"\n" if out else b""
            if one_line:
                bars = BAR * (cells[number] - before)
                # No line begins with a space.
                out += bars[1:] if number == 0 else bars or b" "
                before = cells[number]
            elif out and at and lines[at - 1][4] & line[4] & _PRE:
                out += b"\n" * line[7]
            out += text[line[0] : line[0] + line[1]]
        start = end
    return bytes(out)
