"""Formats of `nephila export` beside JSON lines and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from nephila.storage.read.export import Layout, Writer, to_output, whole_file
from nephila.storage.rows import Row

from nephila_stores.formats import markdown_file
from nephila_stores.formats.block_lines import write_blocks
from nephila_stores.formats.chunks import write_chunks
from nephila_stores.formats.parquet_file import ParquetFile


def _export_parquet(target: Path | None, rows: Iterator[Row], layout: Layout) -> int:
    if target is None:
        raise ValueError("a Parquet file has a path")

    def write(part: Path) -> int:
        with ParquetFile(part) as file:
            file.extend(rows)
            return file.written

    return whole_file(target, write)


def _export_markdown(target: Path | None, rows: Iterator[Row], layout: Layout) -> int:
    """Standard output gets one stream, a path ending in .jsonl JSON lines, another path a file per page below it."""
    if target is None:
        return to_output(target, partial(markdown_file.write_stream, text=layout.text), rows, layout.shown)
    if target.suffix == ".jsonl":
        return to_output(target, partial(markdown_file.write_lines, text=layout.text), rows)
    return markdown_file.write_directory(target, rows, layout.text)


def _export_chunks(target: Path | None, rows: Iterator[Row], layout: Layout) -> int:
    chars, overlap = layout.chunk
    write = partial(write_chunks, text=layout.text, chars=chars, overlap=overlap)
    return to_output(target, write, rows, layout.shown)


def _export_blocks(target: Path | None, rows: Iterator[Row], layout: Layout) -> int:
    return to_output(target, write_blocks, rows, layout.shown)


_WRITERS: Final[Mapping[str, Writer]] = {
    "blocks": _export_blocks,
    "chunks": _export_chunks,
    "markdown": _export_markdown,
    "parquet": _export_parquet,
}


def writer_of(format: str) -> Writer:
    """What writes a format of `nephila.storage.read.export.FORMATS` that the core does not write."""
    return _WRITERS[format]
