"""Tables for people have aligned columns: the first two to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def print_table(rows: Sequence[Sequence[str]], left: int = 2) -> None:
    """The first row is the head. `left` is the number of columns with texts."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        text = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo("  ".join(text).rstrip())
