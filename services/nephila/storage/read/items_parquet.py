"""Items as one Parquet file: a column for each field, beside the whole item as JSON. pyarrow is imported when it is
used.

The type of a column is that of the items it was made from. A value that does not fit is null in its column; the column
`data` has every item as it is, so nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Final

from nephila.storage.read.tabular import flat
from nephila.storage.sinks.parquet_file import require_arrow

FIXED: Final = ("job", "url", "url_key", "rule", "rule_version", "ordinal")
"""Columns of the table; a field with such a name is the column data.NAME."""
_INTEGERS: Final = ("rule_version", "ordinal")
_GROUP_ROWS: Final = 5000
_INT64: Final = 1 << 63


class Columns:
    """The fields of items and their types."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        """Field → bool, int, float or text."""

    def note(self, data: Mapping[str, Any]) -> None:
        """The fields of an item."""
        for name, value in flat(data):
            kind, known = _kind(value), self.kinds.get(name, "")
            if not kind:
                self.kinds.setdefault(name, "")
            elif not known or {known, kind} == {"int", "float"}:
                self.kinds[name] = "float" if known else kind
            elif known != kind:
                self.kinds[name] = "text"


def _kind(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_INT64 <= value < _INT64 else "text"
    return "float" if isinstance(value, float) else "text"


def _fitting(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "text":
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()
    if kind == "float" and _kind(value) == "int":
        return float(value)
    return value if _kind(value) == kind else None


class ItemsParquet:
    """A context manager that writes to a stream."""

    def __init__(self, stream: IO[bytes], columns: Columns) -> None:
        """Raises `UserError` without pyarrow."""
        arrow = self._arrow = require_arrow()
        self._kinds = {name: kind or "text" for name, kind in columns.kinds.items()}
        types = {"bool": arrow.bool_(), "int": arrow.int64(), "float": arrow.float64(), "text": arrow.string()}
        taken = {*FIXED, "data"}
        fields = [(name, types["int" if name in _INTEGERS else "text"]) for name in FIXED]
        for name, kind in self._kinds.items():
            column = f"data.{name}" if name in taken else name
            while column in taken:
                column += "_"
            taken.add(column)
            fields.append((column.encode("utf-8", "replace").decode(), types[kind]))
        self._schema = arrow.schema([*fields, ("data", arrow.string())])
        self._writer = arrow.parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[list[Any]] = []
        self.written = 0

    def extend(self, items: Iterable[tuple[Sequence[Any], Any]]) -> None:
        """Append items: the values of FIXED, and the data."""
        for fixed, data in items:
            fields = dict(flat(data if isinstance(data, dict) else {"data": data}))
            values = [_fitting(fields.get(name), kind) for name, kind in self._kinds.items()]
            whole = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()
            own = [one.encode("utf-8", "replace").decode() if isinstance(one, str) else one for one in fixed]
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
        arrays = [self._arrow.array(list(one), type=field.type) for one, field in zip(columns, self._schema)]  # noqa: B905 - equal by construction
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []
