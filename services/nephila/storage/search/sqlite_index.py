"""DIR/search.db: the search index of nephila.db by SQLite's FTS5, in a file of its own.

The words are stored without the texts (`content=''`). A page whose text changed gets a new number; the words of the
old number stay in the file, and no page is found by them. When they are the greater part the index is made again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nephila.kernel.runtime.errors import UserError
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.search.contract import BATCH, COUNTED, LONGEST_S, RANKED, Matches
from nephila.storage.search.facets import days, facets, host_of, host_token, job_token
from nephila.storage.search.query import Query, Term
from nephila.storage.search.words import index_text
from nephila.storage.source import Source

SEARCH_DATABASE: Final = "search.db"
VERSION: Final = 1
PROGRESS: Final = 100_000
"""Steps of SQLite between two looks at the clock: some milliseconds."""
_TABLES: Final = (
    # `ascii`: ASCII letters and digits and all characters beyond are parts of words, which `index_text` relies on.
    "CREATE VIRTUAL TABLE words USING fts5(title, url, text, facets, content='', columnsize=0, tokenize='ascii')",
    "CREATE TABLE docs (id INTEGER PRIMARY KEY, job TEXT NOT NULL, url_key TEXT NOT NULL, text_hash TEXT NOT NULL,"
    " UNIQUE (job, url_key))",
    "CREATE TABLE position (fetch INTEGER NOT NULL, url_key TEXT NOT NULL, last INTEGER NOT NULL)",
    "INSERT INTO position VALUES (0, '', 0)",
    # Words of so many bytes are gathered before they are written to the file.
    "INSERT INTO words (words, rank) VALUES ('hashsize', 33554432)",
    f"PRAGMA user_version = {VERSION}",
)
_ROWS: Final = """
    SELECT f.id, p.job, p.url_key, p.url, p.title, p.text_hash || p.sha256,
        CASE p.changed_at WHEN '' THEN p.fetched_at ELSE p.changed_at END, p.text
    FROM fetches AS f CROSS JOIN pages AS p ON p.job = f.job AND p.url_key = f.url_key AND p.fetch_no = f.fetch_no
    WHERE f.id > :after AND f.id <= :end AND p.sha256 != '' ORDER BY f.id
"""
_FOUND: Final = (
    "SELECT d.job, d.url_key, d.id FROM words AS w JOIN docs AS d ON d.id = w.rowid WHERE w.words MATCH :words"
    " ORDER BY w.rowid DESC LIMIT :limit"
)


@contextlib.contextmanager
def open_sqlite_index(source: Source, *, fresh: bool) -> Iterator[SqliteIndex]:
    """See `OpenIndex`."""
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
    """See `Index`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_on(self, source: Source, seconds: float) -> Iterator[int]:
        """See `Index`. A second program waits until the first one has written its batch."""
        until = time.monotonic() + seconds
        with open_for_reading(source) as rows:
            self._check_position(rows)
            while True:
                left = self._batch(rows)
                yield left
                if not left or time.monotonic() >= until:
                    return

    def _check_position(self, rows: ReadConnection) -> None:
        """Begin again where the rows are not those that the index was made of, or most of its words are of old
        texts."""
        fetch, key, last = self._connection.execute("SELECT fetch, url_key, last FROM position").fetchone()
        query = "SELECT url_key FROM fetches WHERE id = :id"
        found = rows.execute(query, {"id": fetch}).fetchone() if fetch else (key,)
        (pages,) = self._connection.execute("SELECT count(*) FROM docs").fetchone() if last > 10_000 else (last,)
        if found == (key,) and last <= 2 * pages:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self._connection.execute("DELETE FROM docs")
        self._connection.execute("UPDATE position SET fetch = 0, url_key = '', last = 0")
        self._connection.execute("COMMIT")

    def _batch(self, rows: ReadConnection) -> int:
        connection = self._connection
        (newest,) = rows.execute("SELECT max(id) FROM fetches", {}).fetchone()
        after, _, number = connection.execute("SELECT fetch, url_key, last FROM position").fetchone()
        end = min(newest or 0, after + BATCH)
        if end <= after:
            return 0
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("SELECT fetch FROM position").fetchone() != (after,):
                connection.execute("ROLLBACK")  # another program has read this batch
                return int(newest - after)
            for row in rows.execute(_ROWS, {"after": after, "end": end}):
                number = self._add(row, number)
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
        self._connection.execute(
            "INSERT INTO words (rowid, title, url, text, facets) VALUES (?, ?, ?, ?, ?)",
            (number + 1, index_text(title), index_text(url), index_text(text), facets(job, host_of(url), at)),
        )
        return number + 1

    def find(self, query: Query, job: str) -> Matches:
        """See `Index`."""
        until = time.monotonic() + LONGEST_S
        self._connection.set_progress_handler(lambda: time.monotonic() > until, PROGRESS)
        keys: dict[tuple[str, str], None] = {}
        count = 0
        try:
            for words, limit in ((_match(query, job, "title"), RANKED // 2), (_match(query, job, ""), COUNTED)):
                found = self._connection.execute(_FOUND, {"words": words, "limit": limit}).fetchall()
                keys |= dict.fromkeys((of_job, key) for of_job, key, _ in found)
                count = max(count, len(found))
        except sqlite3.OperationalError:
            if time.monotonic() <= until:
                raise
            return Matches([*keys][:RANKED], len(keys), False)
        finally:
            self._connection.set_progress_handler(None, 0)
        return Matches([*keys][:RANKED], count, True)


def _match(query: Query, job: str, field: str) -> str:
    """The search in the language of FTS5; `field`: with all words in this one."""
    parts = [_phrase(term, field) for term in query.terms]
    choices = [[job_token(job)] if job else [], [host_token(host) for host in query.hosts], days(query)]
    parts += ["facets : (" + " OR ".join(choice) + ")" for choice in choices if choice]
    found = " AND ".join(parts)
    for term in query.without:
        found = f"({found}) NOT {_phrase(term, '')}"
    return found


def _phrase(term: Term, field: str) -> str:
    columns = term.field or field or "title url text"
    words = '"' + " ".join(term.tokens) + '"' + ("*" if term.prefix else "")
    return f"{{{columns}}} : {words}"
