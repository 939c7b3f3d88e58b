"""Rows as CSV and JSON lines: chosen columns, nested values by dotted names, bytes to a stream that may be closed.

RFC 4180: CRLF, quotes doubled, a header line; UTF-8 without a mark.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""
MAX_DEPTH: Final = 6
"""Values nested deeper stay JSON."""


class _Utf8:
    """Text as bytes to a stream. io.TextIOWrapper would close the stream when it goes, after a broken pipe as well."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.encode("utf-8", "replace"))


def write_csv(stream: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool) -> int:
    """Write the rows; returns how many. Text cells that a spreadsheet would compute get an apostrophe unless `raw`."""
    writer = csv.writer(_Utf8(stream), lineterminator="\r\n")
    writer.writerow(header)
    count = 0
    for row in rows:
        writer.writerow(row if raw else [_harmless(cell) for cell in row])
        count += 1
    return count


def write_jsonl(stream: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write an object per row and return how many."""
    count = 0
    for row in rows:
        line = json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False, separators=(",", ":"))
        stream.write(line.encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def flat(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of every field that is no object itself: {"price": {"amount": 3}} is price.amount."""
    for name, one in value.items():
        if isinstance(one, Mapping) and one and depth < MAX_DEPTH:
            yield from flat(one, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, one


def cell(value: Any) -> Any:
    """A value as a cell: text and numbers as they are, nothing for null, all else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.startswith(FORMULA) else value
