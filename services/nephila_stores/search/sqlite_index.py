"""DIR/search.db: the search index of nephila.db by SQLite's FTS5, in a file of its own.

The words are stored without the texts (`content=''`), those of each `BLOCK` pages in a table of their own, so that a
search of frequent words looks at a bounded part. A page whose text changed gets a new number; the words of the old
number stay in the file, and no page is found by them. When they are the greater part the index is made again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nephila.kernel.runtime.errors import UserError
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.source import Source

from nephila_stores.search.blocks import Key, newest_first
from nephila_stores.search.contract import BATCH, Matches
from nephila_stores.search.facets import days, facets, host_of, host_token, job_token
from nephila_stores.search.query import Query, Term
from nephila_stores.search.words import index_text

SEARCH_DATABASE: Final = "search.db"
VERSION: Final = 1
BLOCK: Final = 65_536
"""Pages of a block: of the most frequent words some 10 ms."""
CHECK_EVERY: Final = 50_000
"""Pages that are read between two looks at the part of old texts, which counts all pages."""
_TABLES: Final = (
    "CREATE TABLE docs (id INTEGER PRIMARY KEY, job TEXT NOT NULL, url_key TEXT NOT NULL, text_hash TEXT NOT NULL,"
    " UNIQUE (job, url_key))",
    "CREATE TABLE position (fetch INTEGER NOT NULL, url_key TEXT NOT NULL, last INTEGER NOT NULL)",
    "INSERT INTO position VALUES (0, '', 0)",
    f"PRAGMA user_version = {VERSION}",
)
_BLOCK: Final = (
    # `ascii`: ASCII letters and digits and all characters beyond are parts of words, which `index_text` relies on.
    "CREATE VIRTUAL TABLE words{0} USING fts5(title, url, text, facets, content='', columnsize=0, tokenize='ascii')",
    # Words of so many bytes are gathered before they are written to the file.
    "INSERT INTO words{0} (words{0}, rank) VALUES ('hashsize', 33554432)",
)
"""The tables of a block; a page's number is its rowid."""
_ROWS: Final = """
    SELECT f.id, p.job, p.url_key, p.url, p.title, p.text_hash || p.sha256,
        CASE p.changed_at WHEN '' THEN p.fetched_at ELSE p.changed_at END, p.text
    FROM fetches AS f CROSS JOIN pages AS p ON p.job = f.job AND p.url_key = f.url_key AND p.fetch_no = f.fetch_no
    WHERE f.id > :after AND f.id <= :end AND p.sha256 != '' ORDER BY f.id
"""
_FOUND: Final = (
    "SELECT d.job, d.url_key FROM words{0} AS w JOIN docs AS d ON d.id = w.rowid WHERE w.words{0} MATCH :words"
    " ORDER BY w.rowid DESC LIMIT :limit"
)


@contextlib.contextmanager
def open_sqlite_index(source: Source, *, fresh: bool) -> Iterator[SqliteIndex]:
    path = Path(source) / SEARCH_DATABASE
    try:
        if fresh:
            _remove(path)
        connection = _opened(path)
        try:
            yield SqliteIndex(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise sqlite_fault(error, path) from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _opened(path: Path) -> sqlite3.Connection:
    if not path.parent.is_dir():
        raise UserError(f"{path.parent} is not a directory")
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            connection.close()
            _remove(path)
            return _opened(path)
        # It is made of nephila.db and can be made again, so nothing waits for the disk.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -65536")
        if not version:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                for statement in _TABLES:
                    connection.execute(statement)
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _remove(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


class SqliteIndex:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_on(self, source: Source, seconds: float) -> Iterator[int]:
        """A second program waits until the first one has written its batch."""
        until = time.monotonic() + seconds
        with open_for_reading(source) as rows:
            self._check_position(rows)
            while True:
                left = self._batch(rows)
                yield left
                if not left or time.monotonic() >= until:
                    return

    def behind(self, source: Source) -> int:
        with open_for_reading(source) as rows:
            (newest,) = rows.execute("SELECT max(id) FROM fetches", {}).fetchone()
            fetch, key, _ = self._position()
            return int((newest or 0) - (fetch if _has(rows, fetch, key) else 0))

    def _position(self) -> tuple[int, str, int]:
        """The last fetch that was read, the key of its page, and the number of the newest page."""
        fetch, key, last = self._connection.execute("SELECT fetch, url_key, last FROM position").fetchone()
        return fetch, key, last

    def _check_position(self, rows: ReadConnection) -> None:
        """Begin again where the rows are not those that the index was made of."""
        fetch, key, _ = self._position()
        if _has(rows, fetch, key):
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._clear()
        self._connection.execute("COMMIT")

    def _clear(self) -> None:
        for block in self._blocks():
            self._connection.execute(f"DROP TABLE words{block}")
        self._connection.execute("DELETE FROM docs")
        self._connection.execute("UPDATE position SET fetch = 0, url_key = '', last = 0")

    def _blocks(self) -> list[int]:
        query = "SELECT substr(name, 6) FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        return [int(number) for (number,) in self._connection.execute(query).fetchall()]

    def _mostly_old(self, before: int, number: int) -> bool:
        """Whether most words are those of texts that pages no longer have."""
        if number // CHECK_EVERY == before // CHECK_EVERY:
            return False
        (pages,) = self._connection.execute("SELECT count(*) FROM docs").fetchone()
        return bool(number > 2 * pages)

    def _batch(self, rows: ReadConnection) -> int:
        connection = self._connection
        (newest,) = rows.execute("SELECT max(id) FROM fetches", {}).fetchone()
        after, _, before = self._position()
        end = min(newest or 0, after + BATCH)
        if end <= after:
            return 0
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("SELECT fetch FROM position").fetchone() != (after,):
                connection.execute("ROLLBACK")  # another program has read this batch
                return int(newest - after)
            number = before
            for row in rows.execute(_ROWS, {"after": after, "end": end}):
                number = self._add(row, number)
            if self._mostly_old(before, number):
                self._clear()
                connection.execute("COMMIT")
                return int(newest)
            key = rows.execute("SELECT url_key FROM fetches WHERE id = :id", {"id": end}).fetchone()
            values = (end, key[0] if key else "", number)
            connection.execute("UPDATE position SET fetch = ?, url_key = ?, last = ?", values)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return int(newest - end)

    def _add(self, row: Sequence[Any], number: int) -> int:
        _, job, key, url, title, text_hash, at, text = row
        old = self._connection.execute("SELECT text_hash FROM docs WHERE job = ? AND url_key = ?", (job, key))
        if old.fetchone() == (text_hash,):
            return number
        self._connection.execute("INSERT OR REPLACE INTO docs VALUES (?, ?, ?, ?)", (number + 1, job, key, text_hash))
        block = (number + 1) // BLOCK
        if not number or not (number + 1) % BLOCK:
            for statement in _BLOCK:
                self._connection.execute(statement.format(block))
        self._connection.execute(
            f"INSERT INTO words{block} (rowid, title, url, text, facets) VALUES (?, ?, ?, ?, ?)",
            (number + 1, index_text(title), index_text(url), index_text(text), facets(job, host_of(url), at)),
        )
        return number + 1

    def find(self, query: Query, jobs: Collection[str] | None) -> Matches:
        last = self._position()[2]
        matches = {field: _match(query, jobs, field) for field in ("", "title")}

        def in_block(block: int, field: str, limit: int) -> list[Key]:
            values = {"words": matches[field], "limit": limit}
            return self._connection.execute(_FOUND.format(block), values).fetchall()

        return newest_first(last, BLOCK, in_block) if last else Matches([], 0, 0)


def _has(rows: ReadConnection, fetch: int, key: str) -> bool:
    """Whether the rows are those that an index with this position was made of."""
    if not fetch:
        return True
    return bool(rows.execute("SELECT url_key FROM fetches WHERE id = :id", {"id": fetch}).fetchone() == (key,))


def _match(query: Query, jobs: Collection[str] | None, field: str) -> str:
    """The search in the language of FTS5; `field`: with all words in this one."""
    parts = [_phrase(term, field) for term in query.terms]
    choices = [[job_token(job) for job in jobs or ()], [host_token(host) for host in query.hosts], days(query)]
    parts += ["facets : (" + " OR ".join(choice) + ")" for choice in choices if choice]
    expression = " AND ".join(parts)
    for term in query.without:
        expression = f"({expression}) NOT {_phrase(term, '')}"
    return expression


def _phrase(term: Term, field: str) -> str:
    columns = term.field or field or "title url text"
    words = '"' + " ".join(term.tokens) + '"' + ("*" if term.prefix else "")
    return f"{{{columns}}} : {words}"
