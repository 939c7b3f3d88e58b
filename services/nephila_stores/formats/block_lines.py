"""The structure of pages as JSON lines: title, and blocks with kind, level, text, language, cells and links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

import msgspec
from nephila.native import UrlError, blocks
from nephila.storage.rows import STRUCTURE, TEXT, URL, Row

from nephila_stores.formats.markdown_file import LINE_COLUMNS, line_of, plain_text

_encode: Final = msgspec.json.Encoder().encode


def write_blocks(stream: IO[bytes], rows: Iterator[Row]) -> int:
    """Write one JSON object per row and return their number. A row without a structure is one block of its text."""
    written = 0
    for row in rows:
        stream.write(_encode({**line_of(row, LINE_COLUMNS), "blocks": _blocks(row)}) + b"\n")
        written += 1
    return written


def _blocks(row: Row) -> object:
    text = row[TEXT]
    try:
        lines = blocks(row[STRUCTURE], text.encode() if isinstance(text, str) else text, row[URL])
    except UrlError:
        lines = b""
    return msgspec.Raw(lines) if lines else [{"kind": "text", "text": plain_text(row)}] if text else []
