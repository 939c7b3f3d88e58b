"""Exports the rows of a finished or running crawl, in bounded memory.

JSON lines and CSV are written here; the other formats are rows of `kernel/runtime/extensions.py`.
Rows come in the order in which they were first stored (on a server: of job and key; of several servers, one after the
other). Each chunk is read in a
transaction of its own, so that a running crawl can checkpoint its write-ahead log. A file is written under a temporary
name and renamed.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple, TypeVar, cast

from nephila.kernel.page_facts.facts import FACTS
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extensions import extension
from nephila.storage.faults import write_fault
from nephila.storage.ledgers.read_connection import ReadConnection, open_each
from nephila.storage.read import items
from nephila.storage.read.tabular import cell, write_csv, write_jsonl
from nephila.storage.rows import CHANGE, COLUMNS, META, STORED_COLUMNS, Row, iso
from nephila.storage.sinks.facts import facts_of
from nephila.storage.sinks.jsonl import append_line, json_object
from nephila.storage.source import Source

FORMATS = ("jsonl", "csv", "parquet", "markdown", "chunks", "blocks")
ARCHIVES = ("cdxj", "wacz")
"""Formats of WARC files."""
STDOUT = "-"
PRESENT = "(outcome = 'stored' OR (outcome = 'failed' AND sha256 != '' AND status NOT IN (404, 410)))"
"""Rows that hold a page: stored, or stored earlier and unavailable at the last fetch, but not gone."""
_PAGE_ROWS = 200
"""Rows per chunk."""
_META = "meta."
T = TypeVar("T")
Shown = Callable[[str], str]
"""Makes a text safe for a terminal."""


class Layout(NamedTuple):
    """How rows are written."""

    columns: Sequence[str] = ()
    """Columns or facts (`FACTS`) of CSV and JSON lines, in their order; meta.NAME is a value of `meta`. Empty: all."""
    raw_csv: bool = False
    """CSV cells that a spreadsheet would compute as a formula are unchanged. Otherwise they get a leading apostrophe,
    because their text comes from the web."""
    text: Callable[[Row], str] = lambda row: ""
    """Returns the Markdown of a row; "" stands for its plain text."""
    chunk: tuple[int, int] = (2000, 200)
    """Characters of a chunk, and of its overlap."""
    shown: Shown | None = None
    """Makes text safe if standard output is a terminal."""


PLAIN: Final = Layout()
Writer = Callable[[Path | None, Iterator[Row], Layout], int]
"""Writes rows to a path, or to standard output where it is None, and returns their number. Raises `OSError` and
`UserError`."""


def export(
    source: Source,
    format: str,
    out: Path | Literal["-"] | None = None,
    *,
    all_outcomes: bool = False,
    job: str | None = None,
    changes: bool = False,
    since: str = "",
    layout: Layout = PLAIN,
) -> int:
    """Write the rows and return their number: those that hold a page, or with `all_outcomes` all rows.

    `changes`: only pages whose present text came at or after `since` (ISO 8601, UTC by default; "" = always), each
    once; `change` is "new" if the page had no text before `since`, else "changed". `out`: None or "-" is standard
    output, for Parquet DIR/export.parquet (./export.parquet if the rows are on a server). A Markdown export to standard
    output is one stream, to a path ending in .jsonl JSON lines, to another path a directory with one file per page. A
    line of JSON has all facts that the page states.

    Raises `UserError` in one line: no database, unknown format, an output that cannot be written.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}; known are {', '.join(FORMATS)}")
    if format == "parquet" and out in (None, STDOUT):
        out = (source if isinstance(source, Path) else Path()) / "export.parquet"
    if layout.columns and format not in WRITERS:
        raise UsageError("--columns go with --format csv and jsonl")
    write = WRITERS.get(format) or extension("export-writer")(format)
    for name in layout.columns:
        if name not in (*COLUMNS, *FACTS) and not name.startswith(_META):
            raise UsageError(f"--columns {name!r} is none of {', '.join((*COLUMNS, *FACTS))}, meta.NAME")
    target = None if out is None or out == STDOUT else Path(out)
    try:
        begin = _instant(since) if changes else None
        with open_each(source, check=True) as places:
            rows = chain.from_iterable(_rows(connection, all_outcomes, job, begin) for connection in places)
            written: int = write(target, rows, layout)
            return written
    except OSError as error:
        raise _plain(error, target) from error


def export_items(
    source: Source,
    format: str,
    out: Path | None,
    *,
    job: str | None = None,
    raw_csv: bool = False,
    columns: Sequence[str] = (),
    explode: str = "",
    shown: Shown | None = None,
) -> int:
    """Write all items and return their number. `out` None is standard output. Raises `UserError`."""

    def write(stream: IO[bytes]) -> int:
        return items.export_items(source, format, stream, job, raw_csv=raw_csv, columns=columns, explode=explode)

    if format not in items.FORMATS:
        raise UsageError(f"items are written as {' or '.join(items.FORMATS)}, not {format}")
    return write_rows(out, write, shown)


def write_rows(out: Path | None, write: Callable[[IO[bytes]], int], escape: Shown | None = None) -> int:
    """Write to a file, which appears as a whole, or to standard output; returns the number of rows. Raises
    `UserError`."""
    try:
        if out is None:
            return _to_stdout(lambda stream, _: write(stream), iter(()), escape)
        return whole_file(out, lambda part: _stream_to(part, write))
    except OSError as error:
        raise _plain(error, out) from error


def write_file(out: Path, write: Callable[[Path], T]) -> T:
    """Write a file, which appears as a whole. Raises `UserError`."""
    try:
        return whole_file(out, write)
    except OSError as error:
        raise _plain(error, out) from error


def _stream_to(part: Path, write: Callable[[IO[bytes]], int]) -> int:
    with part.open("wb") as stream:
        return write(stream)


def _csv(target: Path | None, rows: Iterator[Row], layout: Layout) -> int:
    names = layout.columns or COLUMNS

    def write(stream: IO[bytes], rows: Iterator[Row]) -> int:
        chosen = (list(map(cell, row)) for row in _chosen(rows, names))
        cells = chosen if layout.columns else (row[: len(COLUMNS)] for row in rows)
        return write_csv(stream, names, cells, raw=layout.raw_csv)

    return to_output(target, write, rows, layout.shown)


def _json_lines(target: Path | None, rows: Iterator[Row], layout: Layout) -> int:
    def write(stream: IO[bytes], rows: Iterator[Row]) -> int:
        names = layout.columns
        return write_jsonl(stream, names, _chosen(rows, names)) if names else _jsonl(stream, rows)

    return to_output(target, write, rows, layout.shown)


WRITERS: Final[dict[str, Writer]] = {"jsonl": _json_lines, "csv": _csv}
"""Formats that the core writes itself."""


def _rows(connection: ReadConnection, all_outcomes: bool, job: str | None, since: str | None) -> Iterator[Row]:
    key, last = connection.walk
    behind = ", ".join(f":last_{name}" for name in key)
    terms, values = [f"({', '.join(key)}) > ({behind})"], {"job": job, "since": since}
    if not all_outcomes:
        terms.append(PRESENT)
    if job is not None:
        terms.append("job = :job")
    names = list(STORED_COLUMNS)
    if since is not None:
        terms += ["sha256 != ''", "changed_at >= :since"]
        names[CHANGE] = (
            "CASE WHEN first_at >= :since AND :since != '' OR first_at = changed_at THEN 'new' ELSE 'changed' END"
        )
    query = (
        f"SELECT {', '.join((*key, *names))} FROM pages WHERE {' AND '.join(terms)}"
        f" ORDER BY {', '.join(key)} LIMIT {_PAGE_ROWS}"
    )
    width = len(key)
    while True:
        position = {f"last_{name}": value for name, value in zip(key, last, strict=True)}
        rows = connection.execute(query, {**values, **position}).fetchall()
        for row in rows:
            yield row[width:]
        if len(rows) < _PAGE_ROWS:
            return
        last = rows[-1][:width]


def _instant(text: str) -> str:
    """A time in the format of the table; "" stays "". Raises `UsageError`."""
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"--since {text!r} is no date or time; say 2026-11-21 or 2026-11-21T09:30:00Z") from None
    return iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _jsonl(stream: IO[bytes], rows: Iterator[Row]) -> int:
    written = 0
    for row in rows:
        buffer = bytearray()
        append_line(buffer, row, facts=facts_of(row))
        stream.write(buffer)
        written += 1
    return written


def _chosen(rows: Iterator[Row], columns: Sequence[str]) -> Iterator[list[Any]]:
    """The named columns and facts of each row; meta.NAME is a value of the object `meta`."""
    nested, resolved = any(name.startswith(_META) for name in columns), not set(FACTS).isdisjoint(columns)
    for row in rows:
        meta = json_object(row[META]) if nested else {}
        values = {_META + name: value for name, value in meta.items()} if isinstance(meta, dict) else {}
        values |= facts_of(row)._asdict() if resolved else {}
        values |= zip(COLUMNS, row, strict=False)
        yield [values.get(name) for name in columns]


def to_output(
    target: Path | None,
    write: Callable[[IO[bytes], Iterator[Row]], int],
    rows: Iterator[Row],
    make_safe: Shown | None = None,
) -> int:
    """Write rows to a file, which appears as a whole, or to standard output. Raises `OSError`, `UserError`."""
    if target is None:
        return _to_stdout(write, rows, make_safe)
    return whole_file(target, lambda part: _to_file(part, write, rows))


def _to_file(part: Path, write: Callable[[IO[bytes], Iterator[Row]], int], rows: Iterator[Row]) -> int:
    with part.open("wb") as stream:
        return write(stream, rows)


class _Terminal(io.RawIOBase):
    """A stream to a terminal: it makes the text safe."""

    def __init__(self, stream: IO[bytes], make_safe: Shown) -> None:
        self._stream, self._make_safe = stream, make_safe
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: Any) -> int:
        self._stream.write(self._make_safe(self._decoder.decode(bytes(data))).encode())
        return len(data)


def _to_stdout(
    write: Callable[[IO[bytes], Iterator[Row]], int], rows: Iterator[Row], make_safe: Shown | None = None
) -> int:
    seen = 0

    def counted() -> Iterator[Row]:
        nonlocal seen
        for row in rows:
            yield row
            seen += 1

    sys.stdout.flush()
    try:
        stream: IO[bytes] = sys.stdout.buffer
        if make_safe is not None and sys.stdout.isatty():
            stream = cast("IO[bytes]", _Terminal(stream, make_safe))
        written = write(stream, counted())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # `nephila export … | head` is no error; the interpreter must not flush the closed pipe at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return max(seen, 1)  # a reader that closed the pipe needs no message about missing rows
    return written


def whole_file(target: Path, write: Callable[[Path], T]) -> T:
    """Write to a temporary name and rename; a target that is no ordinary file (a pipe, a device) is written
    directly."""
    if target.is_dir():
        raise UserError(f"{target} is a directory; name a file with -o")
    if target.exists() and not target.is_file():
        return write(target)
    part = target.with_name(target.name + ".part")
    try:
        written = write(part)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return written


def _plain(error: OSError, target: Path | None) -> BaseException:
    # A full disk here is no reason to resume the crawl.
    fault = write_fault(error, target or Path("standard output"))
    return UserError(str(fault).replace(" and run again with --resume", " and export again"))


__all__ = ["ARCHIVES", "FORMATS", "STDOUT", "Layout", "export", "export_items", "to_output", "whole_file"]
