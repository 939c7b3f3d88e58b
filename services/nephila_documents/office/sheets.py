"""Spreadsheets (xlsx, xlsb, xls, ods) by calamine: a heading and a table per sheet, values as a person reads them.

Invariant: at most MAX_SHEETS sheets and MAX_CELLS cells. A sheet is in memory as a whole; one that is too large ends
the child at its limit of memory.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator
from typing import Any, Final

from python_calamine import CalamineError, CalamineWorkbook

from nephila_documents.blocks import Block, BlockKind

MAX_SHEETS: Final = 256
MAX_CELLS: Final = 500_000


class Sheets:
    """The sheets of a workbook; `problem` says what was left out."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.problem = ""

    def blocks(self) -> Iterator[Block]:
        """A heading and a table per sheet that has cells. Hidden sheets are read as well."""
        try:
            book = CalamineWorkbook.from_filelike(io.BytesIO(self._body))
        except CalamineError as error:
            self.problem = f"not read: {error}"[:200]
            return
        names = book.sheet_names
        if len(names) > MAX_SHEETS:
            self.problem = f"more than {MAX_SHEETS:,} sheets"
        left = MAX_CELLS
        for name in names[:MAX_SHEETS]:
            try:
                sheet = book.get_sheet_by_name(name)
            except CalamineError as error:
                self.problem = self.problem or f"a sheet was not read: {error}"[:200]
                continue
            rows: list[tuple[str, ...]] = []
            for row in sheet.iter_rows():
                left -= len(row)
                if left < 0:
                    break
                cells = [_shown(value) for value in row]
                while cells and not cells[-1]:
                    cells.pop()
                rows.append(tuple(cells))
            if any(rows):
                yield Block(BlockKind.HEADING, name, 2)
                yield Block(BlockKind.TABLE, rows=tuple(rows))
            if left < 0:
                self.problem = f"more than {MAX_CELLS:,} cells"
                return


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(value)
