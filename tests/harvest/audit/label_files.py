"""CSV files of labels, as a person changes them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

Row = dict[str, str]


def change_rows(path: Path, change: Callable[[int, Row], Row]) -> int:
    """Write each row of a template as `change` makes it of its place (from 0) and of itself; returns their number."""
    with path.open(newline="") as stream:
        rows = [change(at, row) for at, row in enumerate(csv.DictReader(stream))]
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, rows[0])
        out.writeheader()
        out.writerows(rows)
    return len(rows)
