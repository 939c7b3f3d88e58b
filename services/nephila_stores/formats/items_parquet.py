"""Items as one Parquet file: a column for each field, beside the whole item as JSON. pyarrow is imported when it is
used.

The type of a column is that of the items it was made from: lists are list<…>, objects in lists are structs, instants
with an offset are timestamps in UTC, and dates are dates. A value that does not fit is null in its column; the column
`data` has every item as it is, so nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import IO, Any, Final

from nephila.storage.read.item_columns import FIXED, ItemColumns, Kind, day, instant, kind_of

from nephila_stores.formats.parquet_file import require_arrow

_INTEGERS: Final = ("rule_version", "ordinal")
_GROUP_ROWS: Final = 5000


def _fitting(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if isinstance(kind, tuple):
        name, inner = kind
        if name == "list":
            return [_fitting(element, inner) for element in value] if isinstance(value, list) else None
        if not isinstance(value, dict):
            return None
        return {_utf8(field): _fitting(value.get(field), of_field) for field, of_field in inner.items()}
    if kind in ("text", ""):
        return _utf8(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if kind in ("instant", "date"):
        text = value if isinstance(value, str) else ""
        return instant(text) if kind == "instant" else day(text)
    of_value = kind_of(value)
    if kind == "float" and of_value == "int":
        return float(value)
    return value if of_value == kind else None


def _utf8(text: str) -> str:
    """The text without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


class ItemsParquet:
    """A context manager that writes to a stream."""

    def __init__(self, stream: IO[bytes], columns: ItemColumns) -> None:
        """Raises `UserError` without pyarrow."""
        self._arrow = require_arrow()
        self._columns = columns
        self._kinds = list(columns.kinds.values())
        kinds = [*("int" if name in _INTEGERS else "text" for name in FIXED), *self._kinds, "text"]
        names = [_utf8(name) for name in (*columns.header, "data")]
        self._schema = self._arrow.schema([(name, self._type(kind)) for name, kind in zip(names, kinds, strict=True)])
        self._writer = self._arrow.parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[list[Any]] = []
        self.written = 0

    def _type(self, kind: Kind) -> Any:
        arrow = self._arrow
        if isinstance(kind, tuple):
            name, inner = kind
            if name == "list":
                return arrow.list_(self._type(inner))
            # Parquet has no struct without fields.
            fields = [(_utf8(field), self._type(of_field)) for field, of_field in inner.items()]
            return arrow.struct(fields) if fields else arrow.string()
        types = {"bool": arrow.bool_(), "int": arrow.int64(), "float": arrow.float64(), "date": arrow.date32()}
        return arrow.timestamp("us", tz="UTC") if kind == "instant" else types.get(kind, arrow.string())

    def extend(self, items: Iterable[tuple[Sequence[Any], Any]]) -> None:
        """Append items: the values of FIXED, and the data."""
        for fixed, data in items:
            fields = self._columns.values(data if isinstance(data, dict) else {"data": data})
            values = [_fitting(value, kind) for value, kind in zip(fields, self._kinds, strict=True)]
            whole = _utf8(json.dumps(data, ensure_ascii=False))
            own = [_utf8(entry) if isinstance(entry, str) else entry for entry in fixed]
            self._rows.append([*own, *values, whole])
            self.written += 1
            if len(self._rows) >= _GROUP_ROWS:
                self._group()

    def __enter__(self) -> ItemsParquet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._rows:
            self._group()
        self._writer.close()

    def _group(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [self._arrow.array(list(column), type=field.type) for column, field in zip(columns, self._schema)]  # noqa: B905 - equal by construction
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []
