"""The table items: read for an export, read for one page, and put in place of those a page had.

Reading works on nephila.db and on a server alike; replacing is for nephila.db alone, under the directory's lock, which
the caller holds. Invariant: the items of a page are replaced together with what its row says of the rule.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from nephila import __version__
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledgers import item_parts
from nephila.storage.ledgers.schema import DATABASE, prepare, version
from nephila.storage.read.reading import Reading, reading
from nephila.storage.read.source import Source
from nephila.storage.read.tabular import cell, flat, write_csv, write_jsonl
from nephila.storage.rows import Items, item_rows

FORMATS: Final = ("jsonl", "csv")
_PAGE_ROWS: Final = 500


class Item(NamedTuple):
    """A row of the table, with the URL of its page."""

    job: str
    url: str
    url_key: str
    rule: str
    rule_version: int
    ordinal: int
    data: str


def all_items(connection: Reading, job: str | None) -> Iterator[Item]:
    """Every item in the order of job, page and ordinal, a few at a time. O(items)."""
    last = ("", "", "", -1)
    only = "AND items.job = :only" if job is not None else ""
    query = (
        "SELECT items.job, pages.url, items.url_key, items.rule, items.rule_version, items.ordinal, items.data"
        " FROM items JOIN pages ON pages.job = items.job AND pages.url_key = items.url_key"
        " WHERE (items.job, items.url_key, items.rule, items.ordinal) > (:job, :key, :rule, :ordinal)"
        f" {only} ORDER BY items.job, items.url_key, items.rule, items.ordinal LIMIT {_PAGE_ROWS}"
    )
    while True:
        values = {**dict(zip(("job", "key", "rule", "ordinal"), last, strict=True)), "only": job}
        found = [Item(*row) for row in connection.execute(query, values).fetchall()]
        yield from found
        if len(found) < _PAGE_ROWS:
            return
        end = found[-1]
        last = (end.job, end.url_key, end.rule, end.ordinal)


def export_items(
    source: Source,
    format: str,
    stream: IO[bytes],
    job: str | None = None,
    *,
    raw_csv: bool = False,
    columns: Sequence[str] = (),
) -> int:
    """Write all items and return how many. A column for each field that some item has, those of nested objects by
    dotted names (price.amount), which takes one more reading of the table; or `columns`, in their order, where
    data.NAME is a field that is named like a column of the table. JSON lines without `columns` keep the objects as they
    are. `format` is one of FORMATS. Raises `UserError`."""
    with reading(source) as connection:
        if format == "jsonl" and not columns:
            return _jsonl(stream, all_items(connection, job))
        names: dict[str, None] = {}
        for item in all_items(connection, job):
            names.update(dict.fromkeys(name for name, _ in flat(_object(item.data))))
        fixed = Item._fields[:-1]
        chosen = list(columns) or [*fixed, *names]
        unknown = [name for name in columns if name not in fixed and name.removeprefix("data.") not in names]
        if unknown and names:
            raise UsageError(f"--columns {unknown[0]!r} is none of {', '.join((*fixed, *names))}")
        rows = (_cells(item, chosen, columns=bool(columns)) for item in all_items(connection, job))
        if format == "jsonl":
            return write_jsonl(stream, chosen, rows)
        return write_csv(stream, chosen, ([cell(value) for value in row] for row in rows), raw=raw_csv)


def _cells(item: Item, names: Sequence[str], *, columns: bool) -> list[Any]:
    data = dict(flat(_object(item.data)))
    if not columns:
        start = len(item) - 1
        return [*item[:start], *(data.get(name) for name in names[start:])]
    fixed = item._asdict()
    del fixed["data"]
    return [fixed[name] if name in fixed else data.get(name, data.get(name.removeprefix("data."))) for name in names]


def _jsonl(stream: IO[bytes], items: Iterator[Item]) -> int:
    count = 0
    for item in items:
        value = {**item._asdict(), "data": _object(item.data)}
        stream.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def _object(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {"data": data}
    return value if isinstance(value, dict) else {"data": value}


class Replacing:
    """nephila.db of a directory, for new items of its pages; a context manager: one transaction, all or nothing."""

    def __init__(self, directory: Path, *, write: bool) -> None:
        self._path = directory / DATABASE
        self._write = write
        if not self._path.is_file():
            raise UserError(f"no database at {self._path}; is {directory} the output directory of a crawl?")
        self._db = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=30
        )
        self._reading = Reading(self._db)

    def __enter__(self) -> Replacing:
        try:
            if self._write:
                prepare(self._db, self._path, f"nephila {__version__}")
            else:
                version(self._db, self._path)
            self._db.execute("BEGIN IMMEDIATE" if self._write else "BEGIN")
        except BaseException:
            self._db.close()
            raise
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        try:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")
        except sqlite3.Error as fault:
            raise sqlite_fault(fault, self._path) from fault
        finally:
            self._db.close()

    def jobs(self, key: str) -> list[str]:
        """Jobs that have a copy of a page."""
        query = "SELECT job FROM pages WHERE url_key = ? AND sha256 != ''"
        # The primary key begins with the job: those that there are, and each by its key.
        jobs = [job for (job,) in self._db.execute("SELECT DISTINCT job FROM pages")]
        return [job for job in jobs if self._db.execute(f"{query} AND job = ?", (key, job)).fetchone()]

    def of_page(self, job: str, key: str) -> list[Any]:
        """The items of a page as values."""
        query = "SELECT data FROM items WHERE job = ? AND url_key = ? ORDER BY rule, ordinal"
        return [json.loads(data) for (data,) in self._db.execute(query, (job, key))]

    def target(self, job: str, url: str) -> str:
        """Where a URL redirected to; "" when it did not."""
        query = (
            "SELECT final_url FROM pages WHERE job = ? AND url_key = ? AND outcome = 'dropped' AND reason = 'redirect'"
        )
        row = self._db.execute(query, (job, item_parts.key_of(url))).fetchone()
        return str(row[0] or "") if row else ""

    def put(self, job: str, key: str, rule: str, version: int, data: Sequence[str]) -> None:
        """Other items for a page."""
        items = Items(rule, version, tuple(data), "")
        self._db.execute("DELETE FROM items WHERE job = ? AND url_key = ?", (job, key))
        self._db.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", item_rows({(job, key): items}))
        # A mark of the parser's is about the items that were here.
        meta = "CASE WHEN json_valid(meta) THEN json_remove(meta, '$.degraded', '$.items_left_out') ELSE meta END"
        self._db.execute(
            f"UPDATE pages SET rule = ?, rule_version = ?, meta = {meta} WHERE job = ? AND url_key = ?",
            (rule, version, job, key),
        )
        item_parts.put(self._reading, job, key, items)
        item_parts.settle(self._reading, job, key)
