"""Rows as CSV and JSON lines: chosen columns, dotted names for nested values, written as bytes to a stream.

CSV is RFC 4180: CRLF, doubled quotes, a header line; UTF-8 without a byte order mark.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of what a spreadsheet computes as a formula."""
MAX_DEPTH: Final = 6
"""Deeper values stay JSON."""


class _Utf8:
    """Encodes text for a byte stream. io.TextIOWrapper would close the stream on deletion, also after a broken pipe."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.encode("utf-8", "replace"))


def write_csv(stream: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool) -> int:
    """Write the rows and return their number. Text cells that a spreadsheet would compute get an apostrophe unless
    `raw`."""
    writer = csv.writer(_Utf8(stream), lineterminator="\r\n")
    writer.writerow(header)
    count = 0
    for row in rows:
        writer.writerow(row if raw else [_harmless(cell) for cell in row])
        count += 1
    return count


def write_jsonl(stream: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write one object per row and return their number."""
    count = 0
    for row in rows:
        line = json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False, separators=(",", ":"))
        stream.write(line.encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def flat(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of each field that is not an object: {"price": {"amount": 3}} gives price.amount."""
    for name, field_value in value.items():
        if isinstance(field_value, Mapping) and field_value and depth < MAX_DEPTH:
            yield from flat(field_value, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, field_value


def cell(value: Any) -> Any:
    """A value as a cell: texts and numbers unchanged, null as empty, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.startswith(FORMULA) else value
