"""The ledger: rows, history, links and the committed lengths of all other files, in one transaction.

Invariant: what this database has committed is what the crawl has; every other backend is cut back to it.
Write-ahead log with synchronous=FULL: one fsync per flush. The log is copied into the database whenever it has grown
to `wal_bytes`, by this connection and not by SQLite's own trigger, so that it happens after the receipts are out.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Mapping
from operator import itemgetter

from nephila import __version__
from nephila.kernel import messages as m
from nephila.storage.backends.statements import MultiInsert
from nephila.storage.changes import BURIED, Standing, mark_of_row
from nephila.storage.completing import complete, concerns
from nephila.storage.config import StorageConfig
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledger import Key
from nephila.storage.reading import Reading
from nephila.storage.rows import (
    BYTES,
    CHANGE,
    COLUMNS,
    FETCH_ID,
    FETCH_NO,
    FETCHED_AT,
    JOB,
    OUTCOME,
    OUTCOMES,
    REASON,
    SHA256,
    STATUS,
    TEXT,
    TEXT_HASH,
    URL_KEY,
    Batch,
    item_rows,
    unpack_links,
)
from nephila.storage.schema import DATABASE, prepare, version
from nephila.storage.versions import INTO, ON_CONFLICT

log = logging.getLogger(__name__)

PAGE_BYTES = 8192
"""Larger pages write rows cheaper, smaller ones the key index: measured in docs/adr/0006."""
_CACHE_KIB = 32 * 1024
_BUSY_S = 30.0

_NAMES = ", ".join(COLUMNS)
_ROW = "(" + ", ".join("CAST(? AS TEXT)" if name == "text" else "?" for name in COLUMNS) + ")"
_CHANGED = [name for name in COLUMNS if name not in ("job", "url_key")]
_UPSERT = MultiInsert(
    f"INSERT INTO pages ({_NAMES})",
    _ROW,
    "ON CONFLICT (job, url_key) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _CHANGED)
    + " WHERE excluded.fetch_no >= pages.fetch_no",
)
_KEEP_TEXT = f"{INTO} WHERE job = ? AND url_key = ? {ON_CONFLICT}"
_FETCH = ", ".join(
    f"{name} = excluded.{name}"
    for name in ("outcome", "status", "final_url", "fetched_at", "fetch_id", "fetch_no", "change")
)
"""What a fetch that brought no copy says of the row."""
_TOUCH = MultiInsert(
    f"INSERT INTO pages ({_NAMES})",
    _ROW,
    f"ON CONFLICT (job, url_key) DO UPDATE SET {_FETCH}, reason = CASE pages.sha256 WHEN '' THEN excluded.reason"
    " ELSE '' END WHERE excluded.fetch_no >= pages.fetch_no",
)
_KEEP = MultiInsert(
    f"INSERT INTO pages ({_NAMES})",
    _ROW,
    f"ON CONFLICT (job, url_key) DO UPDATE SET {_FETCH}, reason = excluded.reason"
    " WHERE excluded.fetch_no >= pages.fetch_no",
)
_HISTORY = MultiInsert(
    "INSERT INTO fetches (job, url_key, fetch_no, outcome, reason, status, fetched_at, bytes, sha256, change,"
    " text_hash, attempt, old_hash)",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
)
_of_fetch = itemgetter(JOB, URL_KEY, FETCH_NO, OUTCOME, REASON, STATUS, FETCHED_AT, BYTES, SHA256, CHANGE, TEXT_HASH)
_LINKS = MultiInsert("INSERT INTO links (job, from_key, to_url, to_key, anchor)", "(?, ?, ?, ?, ?)")
_ITEMS = MultiInsert("INSERT INTO items (job, url_key, rule, rule_version, ordinal, data)", "(?, ?, ?, ?, ?, ?)")
_STANDING = f"url_key, fetch_no, outcome, sha256 != '', text_hash, first_at, changed_at, reason = '{BURIED}'"
_NUMBERS = {name: m.Outcome(number) for number, name in enumerate(OUTCOMES)}
_KEYS = 512
"""Keys asked for in one query."""


class Sqlite:
    """See `Ledger`."""

    def __init__(self, config: StorageConfig) -> None:
        self.path = config.directory / DATABASE
        self._config = config
        self._connection: sqlite3.Connection | None = None
        self._wal = config.directory / (DATABASE + "-wal")

    @property
    def connection(self) -> sqlite3.Connection:
        """The one connection that writes."""
        if self._connection is None:
            raise RuntimeError("the database is not open")
        return self._connection

    def open(self) -> None:
        """Open or make the database. Raises `UserError` in one line for every reason not to."""
        try:
            self._connection = connection = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # only a new file takes it
            version(connection, self.path)  # before anything is set in a database that is not ours
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._config.fsync else 'OFF'}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            prepare(connection, self.path, f"nephila {__version__}")
        except sqlite3.Error as error:
            self._abandon()
            raise sqlite_fault(error, self.path) from error
        except BaseException:
            self._abandon()
            raise

    def durable(self, wanted: Mapping[str, Iterable[str]]) -> dict[Key, Standing]:
        """See `Ledger`; nobody else writes here, so that reading needs no transaction."""
        found: dict[Key, Standing] = {}
        for job, of_job in wanted.items():
            keys = list(of_job)
            for start in range(0, len(keys), _KEYS):
                part = keys[start : start + _KEYS]
                marks = ", ".join("?" * len(part))
                query = f"SELECT {_STANDING} FROM pages WHERE job = ? AND url_key IN ({marks})"
                for key, fetch_no, outcome, copy, mark, *instants in self.connection.execute(query, [job, *part]):
                    found[job, key] = Standing(fetch_no, _NUMBERS[outcome], bool(copy), bytes.fromhex(mark), *instants)
        return found

    def mark(self, job: str, key: str) -> bytes:
        """The mark of a copy that was stored without one, by schema version 1."""
        query = "SELECT CAST(text AS BLOB), sha256 FROM pages WHERE job = ? AND url_key = ?"
        text, sha256 = self.connection.execute(query, (job, key)).fetchone()
        return mark_of_row(text, bytes.fromhex(sha256))

    def sinks(self) -> dict[str, int]:
        """Name → committed length in bytes of every append-only file ever begun here."""
        return dict(self.connection.execute("SELECT name, length FROM sinks"))

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """Say that a file is ours, in a transaction of its own: before it is made, so that a crash leaves no orphan."""
        self.connection.execute("INSERT OR REPLACE INTO sinks VALUES (?, ?, ?)", (name, length, last_fetch))

    def stage(self, batch: Batch) -> None:
        """Begin the transaction and write the rows into it. Raises `sqlite3.Error`."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_KEEP_TEXT, batch.changed)
        largest = max((len(row[TEXT]) for row in batch.rows), default=0)
        _UPSERT.run(connection, batch.rows, largest)
        _TOUCH.run(connection, batch.touched)
        _KEEP.run(connection, batch.kept)
        told = batch.told
        _HISTORY.run(connection, [_of_fetch(row) + told[row[JOB], row[FETCH_ID]] for row in batch.fetches()])
        for job, key, links in batch.links:
            connection.execute("DELETE FROM links WHERE job = ? AND from_key = ?", (job, key))
            _LINKS.run(connection, [(job, key, url, to, anchor) for url, to, anchor in unpack_links(links)])
        if batch.items:
            connection.executemany("DELETE FROM items WHERE job = ? AND url_key = ?", list(batch.items))
            rows = item_rows(batch.items)
            _ITEMS.run(connection, rows, max((len(row[-1]) for row in rows), default=0))
        if concerns(database := Reading(connection), batch):
            complete(database, batch)

    def commit(self, lengths: Mapping[str, int]) -> None:
        """Commit rows and file lengths together. Raises `sqlite3.Error`."""
        connection = self.connection
        for name, length in lengths.items():
            connection.execute("UPDATE sinks SET length = ? WHERE name = ?", (length, name))
        connection.execute("COMMIT")

    def committed(self) -> None:
        """Keep the write-ahead log small."""
        if self._wal_bytes() >= self._config.wal_bytes:
            self._checkpoint("PASSIVE")

    def rollback(self) -> None:
        """Undo what was staged."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Copy the log into the database and close it; a reader elsewhere may keep the log alive, which is no loss."""
        if self._connection is not None:
            self._checkpoint("TRUNCATE")
            self._abandon()

    def _checkpoint(self, mode: str) -> None:
        # A failure here loses nothing: the log has the rows, and a full disk shows at the next commit.
        try:
            self.connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        except sqlite3.Error as error:
            log.info("%s: the write-ahead log stays: %s", self.path, error)

    def _wal_bytes(self) -> int:
        try:
            return os.stat(self._wal).st_size
        except OSError:
            return 0

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
