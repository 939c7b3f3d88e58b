"""One Parquet file of rows, written in row groups of bounded size; used by the sink and by the export.

pyarrow is imported when the first file is opened; the import costs 0.2 s and 60 MB.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import compress
from pathlib import Path
from types import TracebackType
from typing import Any

from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.extras import install_line
from nephila.storage.ledgers.schema import INTEGERS
from nephila.storage.rows import COLUMNS, FETCHED_AT, TEXT, Row

_GROUP_ROWS = 5_000
_GROUP_BYTES = 32 * 1024 * 1024
"""Maximum rows and bytes of text held in memory."""


def require_arrow() -> Any:
    """The library. Raises `UserError` if it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(f"Parquet needs pyarrow: {install_line('parquet')}") from None
    return pyarrow


class ParquetFile:
    """A context manager. On success the file is complete and synced; otherwise the caller removes it."""

    def __init__(self, path: Path, left_out: Collection[str] = ()) -> None:
        """`left_out`: columns that the file does not have. Raises `UserError` without pyarrow, `OSError`."""
        pyarrow = self._arrow = require_arrow()
        self._kept = [name not in left_out for name in COLUMNS]
        self._schema = pyarrow.schema([(name, self._type(name)) for name in compress(COLUMNS, self._kept)])
        self._file = path.open("wb")
        self._writer = pyarrow.parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._bytes = 0
        self.written = 0
        """Number of rows appended."""

    def extend(self, rows: Iterable[Row]) -> None:
        """Append rows in column order, text as str. Raises `OSError`."""
        for row in rows:
            self._rows.append(row)
            self._bytes += len(row[TEXT])
            self.written += 1
            if len(self._rows) >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
                self._group()

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                if self._rows:
                    self._group()
                self._writer.close()
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def _group(self) -> None:
        columns: list[Any] = [list(column) for column in zip(*self._rows, strict=True)][: len(COLUMNS)]
        columns[FETCHED_AT] = [datetime.fromisoformat(text) if text else None for text in columns[FETCHED_AT]]
        arrays = [
            self._arrow.array(column, type=field.type)
            for column, field in zip(compress(columns, self._kept), self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []
        self._bytes = 0

    def _type(self, name: str) -> Any:
        if name == "fetched_at":
            return self._arrow.timestamp("ms", tz="UTC")
        return self._arrow.int64() if name in INTEGERS else self._arrow.string()
