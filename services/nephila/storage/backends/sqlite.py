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
from nephila.storage.backends.statements import MultiInsert
from nephila.storage.config import StorageConfig
from nephila.storage.faults import sqlite_fault
from nephila.storage.rows import (
    BYTES,
    COLUMNS,
    FETCH_NO,
    FETCHED_AT,
    JOB,
    OUTCOME,
    REASON,
    SHA256,
    STATUS,
    TEXT,
    URL_KEY,
    Batch,
    unpack_links,
)
from nephila.storage.schema import DATABASE, check, create

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
_TOUCH = MultiInsert(
    f"INSERT INTO pages ({_NAMES})",
    _ROW,
    "ON CONFLICT (job, url_key) DO UPDATE SET status = excluded.status, fetched_at = excluded.fetched_at,"
    " fetch_id = excluded.fetch_id, fetch_no = excluded.fetch_no WHERE excluded.fetch_no >= pages.fetch_no",
)
_HISTORY = MultiInsert(
    "INSERT INTO fetches (job, url_key, fetch_no, outcome, reason, status, fetched_at, bytes, sha256, attempt)",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
)
_of_fetch = itemgetter(JOB, URL_KEY, FETCH_NO, OUTCOME, REASON, STATUS, FETCHED_AT, BYTES, SHA256)
_LINKS = MultiInsert("INSERT INTO links (job, from_key, to_url, to_key, anchor)", "(?, ?, ?, ?, ?)")
_KEYS = 512
"""Keys asked for in one query."""


class Sqlite:
    """See `Backend`; besides, it answers what the others have committed."""

    raw = False
    lengths: Mapping[str, int] = {}

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
            known = check(connection, self.path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._config.fsync else 'OFF'}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            if not known:
                create(connection, f"nephila {__version__}")
        except sqlite3.Error as error:
            self._abandon()
            raise sqlite_fault(error, self.path) from error
        except BaseException:
            self._abandon()
            raise

    def durable(self, job: str, keys: Iterable[str]) -> dict[str, tuple[int, str]]:
        """url_key → (fetch_no, outcome) of those keys that have a row."""
        found: dict[str, tuple[int, str]] = {}
        wanted = list(keys)
        for start in range(0, len(wanted), _KEYS):
            part = wanted[start : start + _KEYS]
            marks = ", ".join("?" * len(part))
            query = f"SELECT url_key, fetch_no, outcome FROM pages WHERE job = ? AND url_key IN ({marks})"
            for key, fetch_no, outcome in self.connection.execute(query, [job, *part]):
                found[key] = (fetch_no, outcome)
        return found

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
        largest = max((len(row[TEXT]) for row in batch.rows), default=0)
        _UPSERT.run(connection, batch.rows, largest)
        _TOUCH.run(connection, batch.touched)
        fetches = zip([*batch.rows, *batch.touched], batch.attempts, strict=True)
        history = [(*_of_fetch(row), attempt) for row, attempt in fetches]
        _HISTORY.run(connection, history)
        for job, key, links in batch.links:
            connection.execute("DELETE FROM links WHERE job = ? AND from_key = ?", (job, key))
            _LINKS.run(connection, [(job, key, url, to, anchor) for url, to, anchor in unpack_links(links)])

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
