"""DIR/chunks.jsonl: parts of pages for language models, one JSON object per chunk. The text: chunk_text.py.

A new copy of a page appends all its chunks again: those with the highest fetch_no of a (job, url_key) are valid, and a
chunk whose text did not change has the same id. A page without main text has no line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import COLUMNS, SHA256, Row, RowBatch
from nephila.storage.sinks.line_file import LineFile

from nephila_stores.formats.chunk_text import chunks_of
from nephila_stores.formats.markdown_file import MarkdownOf, markdown_text, row_markdown

NAME: Final = "chunks.jsonl"
MIN_CHARS: Final = 100
_FIELDS: Final = ("job", "url", "url_key", "title", "lang", "fetched_at", "fetch_no", "sha256")
_encode = msgspec.json.Encoder().encode


class Chunks(LineFile):
    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        check_chunk_size(config.chunk_chars, config.chunk_overlap)
        super().__init__(config, ledger, NAME)
        self._chars, self._overlap = config.chunk_chars, config.chunk_overlap

    def lines(self, batch: RowBatch) -> bytearray:
        buffer = bytearray()
        for row in batch.rows:
            if row[SHA256]:
                buffer += chunk_lines(row, row_markdown(row), self._chars, self._overlap)
        return buffer


def check_chunk_size(
    chars: int, overlap: int, names: tuple[str, str] = ("storage.chunk_chars", "storage.chunk_overlap")
) -> None:
    """Raise `UsageError` for a size and an overlap that do not fit; `names` are those of the two settings."""
    if chars < MIN_CHARS:
        raise UsageError(f"{names[0]} {chars} is less than {MIN_CHARS}; 2000 characters are some 500 tokens")
    if not 0 <= overlap <= chars // 2:
        raise UsageError(f"{names[1]} {overlap} is not between 0 and half of {names[0]} {chars}; set {chars // 10}")


def chunk_lines(row: Row, text: str, chars: int, overlap: int) -> bytes:
    """The chunks of a row as lines. `text` is its Markdown; "" for the plain text of the row."""
    values = dict(zip(COLUMNS, row, strict=False))
    page = {name: values[name] for name in _FIELDS}
    chunks = chunks_of(values["url_key"], markdown_text(row, text), chars, overlap, markdown=bool(text))
    return b"".join(
        _encode(
            {
                "id": chunk.id,
                **page,
                "headings": chunk.headings,
                "position": position,
                "chunks": len(chunks),
                "chars": len(chunk.text),
                "text": chunk.text,
            }
        )
        + b"\n"
        for position, chunk in enumerate(chunks)
    )


def write_chunks(stream: IO[bytes], rows: Iterator[Row], text: MarkdownOf, chars: int, overlap: int) -> int:
    """Write the chunks of all rows and return the number of rows."""
    written = 0
    for row in rows:
        stream.write(chunk_lines(row, text(row), chars, overlap))
        written += 1
    return written
