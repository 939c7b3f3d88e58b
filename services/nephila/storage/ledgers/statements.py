"""Writes many rows with one statement: each execution is one step of SQLite, so the writer's thread takes the GIL once
per 128 rows, not once per row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from nephila.storage.rows import Row

_SIZES = (128, 64, 32, 16, 8, 4, 2, 1)
_VARIABLES = 32_000
"""SQLite allows 32,766 bound values in one statement."""
_CHUNK_BYTES = 16 * 1024 * 1024
"""Bound values are copied; 128 rows of 10 MB must not be copied at once."""


class MultiInsert:
    """`head VALUES (row), (row), … tail` for any number of rows; one text per size is cached."""

    def __init__(self, head: str, row: str, tail: str = "") -> None:
        self._head = head
        self._row = row
        self._tail = tail
        width = row.count("?")
        self._sizes = tuple(size for size in _SIZES if size * width <= _VARIABLES)
        self._texts: dict[int, str] = {}

    def run(self, connection: sqlite3.Connection, rows: Sequence[Row], row_bytes: int = 0) -> None:
        """Insert the rows in order; `row_bytes` is the size of the largest one."""
        start, end = 0, len(rows)
        while start < end:
            size = next(
                size for size in self._sizes if size == 1 or (size <= end - start and size * row_bytes <= _CHUNK_BYTES)
            )
            values: list[object] = []
            for row in rows[start : start + size]:
                values += row
            connection.execute(self._text(size), values)
            start += size

    def _text(self, size: int) -> str:
        text = self._texts.get(size)
        if text is None:
            text = self._texts[size] = f"{self._head} VALUES {', '.join([self._row] * size)} {self._tail}"
        return text
