"""The ledger in SQLite: rows, history, links and the committed lengths of all other files, in one transaction.

Invariant: what this database has committed is the state of the crawl; all other outputs are truncated to it. The
write-ahead log has synchronous=FULL: one fsync per flush. When the log has grown to `wal_bytes`, this connection copies
it into the database, after the receipts; SQLite's automatic checkpoint would do it before.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from pathlib import Path

from nephila import __version__
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UserError
from nephila.storage.append_file import committed_lengths, is_same_file, write_back
from nephila.storage.changes import AWAY, DEAD_LETTER, ChangeRow, StoredVersion
from nephila.storage.config import StorageConfig
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledgers import scheme_pages
from nephila.storage.ledgers.contract import RECENT_CHANGES, Key
from nephila.storage.ledgers.item_parts import complete, has_parts
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.ledgers.schema import ADD_ROWS, DATABASE, ROWS, examined, holds_tables, prepare
from nephila.storage.ledgers.statements import MultiInsert
from nephila.storage.ledgers.versions import INTO, ON_CONFLICT
from nephila.storage.rows import (
    BYTES,
    CHANGE,
    FETCH_ID,
    FETCH_NO,
    FETCHED_AT,
    JOB,
    OUTCOME,
    OUTCOMES,
    REASON,
    SHA256,
    STATUS,
    STORED_COLUMNS,
    TEXT,
    TEXT_HASH,
    URL_KEY,
    RowBatch,
    item_rows,
    unpack_links,
)

log = logging.getLogger(__name__)

PAGE_BYTES = 16384
"""Of new files. Larger pages make rows cheaper, smaller pages the key index; measured in docs/notes/storage.md."""
_CACHE_KIB = 16 * 1024
"""Holds the key index of 200,000 rows; the texts of a crawl fill the rest and are not read again. docs/adr/0006."""
_BUSY_S = 5.0
"""Maximum wait for another program's lock in one attempt; the service repeats attempts for `patience_s`."""

_NAMES = ", ".join(STORED_COLUMNS)
_ROW = "(" + ", ".join("CAST(? AS TEXT)" if name == "text" else "?" for name in STORED_COLUMNS) + ")"
_CHANGED = [name for name in STORED_COLUMNS if name not in ("job", "url_key")]
_UPSERT = MultiInsert(
    f"INSERT INTO pages ({_NAMES})",
    _ROW,
    "ON CONFLICT (job, url_key) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _CHANGED)
    + " WHERE excluded.fetch_no >= pages.fetch_no",
)
_KEEP_PREVIOUS = f"{INTO} WHERE job = ? AND url_key = ? {ON_CONFLICT}"
_FETCH = (
    ", ".join(
        f"{name} = excluded.{name}" for name in ("outcome", "status", "final_url", "fetched_at", "fetch_id", "fetch_no")
    )
    + f", change = CASE WHEN excluded.change = '' AND pages.change IN {AWAY} THEN pages.change ELSE excluded.change END"
)
"""Columns of a fetch that brought no copy. A page stays away until a fetch brings it: a time-out is no statement."""
_NOT_MODIFIED = MultiInsert(
    f"INSERT INTO pages ({_NAMES})",
    _ROW,
    f"ON CONFLICT (job, url_key) DO UPDATE SET {_FETCH}, reason = CASE pages.sha256 WHEN '' THEN excluded.reason"
    " ELSE '' END WHERE excluded.fetch_no >= pages.fetch_no",
)
_COPY_KEPT = MultiInsert(
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
_STORED_COLUMNS = (
    "url_key, fetch_no, outcome, sha256 != '', text_hash, first_at, changed_at,"
    f" change IN {AWAY}, reason = '{DEAD_LETTER}'"
)
_ORIGINALS = "FROM pages WHERE job = ? AND simhash != '' AND near_copy_of = '' AND sha256 != ''"
"""Pages that are no near-copies."""
_RECENT = (
    f"SELECT {', '.join(ChangeRow._fields)} FROM changes WHERE seq > (SELECT coalesce(max(seq), 0) FROM changes) - ?"
    " ORDER BY seq"
)
_CHANGES = MultiInsert(
    f"INSERT INTO changes ({', '.join(ChangeRow._fields)})", "(" + ", ".join("?" * len(ChangeRow._fields)) + ")"
)
_LENGTH = "UPDATE sinks SET length = ?, last_fetch = ? WHERE name = ?"
"""Stored twice, so that a damaged number is noticed before a file is truncated to it: see `examined`."""
_NUMBERS = {name: m.Outcome(number) for number, name in enumerate(OUTCOMES)}
_KEYS = 512
"""Keys in one query."""


class Sqlite:
    def __init__(self, config: StorageConfig) -> None:
        self.path = config.directory / DATABASE
        self._config = config
        self._connection: sqlite3.Connection | None = None
        self._wal = config.directory / (DATABASE + "-wal")
        self._opened: os.stat_result | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The only connection that writes."""
        if self._connection is None:
            raise RuntimeError("the database is not open")
        return self._connection

    @property
    def reading(self) -> ReadConnection:
        return ReadConnection(self.connection)

    def examine(self, ended: Mapping[str, int]) -> None:
        """The check uses a read-only connection: a writing one would discard, when it closes, what a damaged
        write-ahead log still contains."""
        rows: dict[str, int] = {}
        if self.path.is_file():
            try:
                rows = examined(self.path, ended)
            except sqlite3.Error as error:
                raise sqlite_fault(error, self.path) from error
        for job, number in ended.items():
            if rows.get(job, 0) < number:
                raise UserError(
                    f"{self.path} has {rows.get(job, 0):,} rows of job {job!r}, and {number:,} of its URLs have ended: "
                    "it was deleted or replaced, or its -wal was damaged; nothing was changed. Put it back, or remove "
                    f"{self.path.with_name('frontier')}: --resume then begins at the seeds again and keeps all rows"
                )

    def last_fetches(self) -> dict[str, int]:
        return dict(self.connection.execute("SELECT job, max(fetch_no) FROM pages GROUP BY job"))

    def open(self) -> None:
        """Open or create the database. Raises `UserError` in one line."""
        try:
            self._connection = connection = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # only effective in a new file
            holds_tables(connection, self.path)  # before any setting is changed in a database of another program
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._config.fsync else 'OFF'}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            prepare(connection, self.path, f"nephila {__version__}")
            self._opened = os.stat(self.path)
        except sqlite3.Error as error:
            self._abandon()
            raise sqlite_fault(error, self.path) from error
        except BaseException:
            self._abandon()
            raise

    def durable(self, keys_by_job: Mapping[str, Iterable[str]]) -> dict[Key, StoredVersion]:
        """Reading needs no transaction, because the ledger is the only writer."""
        versions: dict[Key, StoredVersion] = {}
        for job, of_job in keys_by_job.items():
            keys = list(of_job)
            for start in range(0, len(keys), _KEYS):
                part = keys[start : start + _KEYS]
                marks = ", ".join("?" * len(part))
                query = f"SELECT {_STORED_COLUMNS} FROM pages WHERE job = ? AND url_key IN ({marks})"
                for key, fetch_no, outcome, copy, copy_hash, *instants in self.connection.execute(query, [job, *part]):
                    versions[job, key] = StoredVersion(
                        fetch_no, _NUMBERS[outcome], bool(copy), bytes.fromhex(copy_hash), *instants
                    )
        return versions

    def copies(self, keys: Iterable[Key]) -> dict[Key, tuple[str, bytes]]:
        query = "SELECT title, CAST(text AS BLOB) FROM pages WHERE job = ? AND url_key = ?"
        rows = ((key, self.connection.execute(query, key).fetchone()) for key in keys)
        return {key: row for key, row in rows if row is not None}

    def simhashes(self, job: str) -> Iterable[tuple[str, str]]:
        return self.connection.execute(f"SELECT url_key, simhash {_ORIGINALS} ORDER BY fetch_no", (job,))

    def pages_by_prefix(self, job: str, prefix: str) -> Iterable[tuple[str, str, str]]:
        query = f"SELECT url_key, url, simhash {_ORIGINALS} AND url_key >= ? AND url_key < ?"
        return self.connection.execute(query, (job, prefix, prefix + "g"))

    def recorded_changes(self, ids: Collection[str]) -> list[ChangeRow]:
        expected = set(ids)
        recent = self.connection.execute(_RECENT, (RECENT_CHANGES,))
        return [ChangeRow(*row) for row in recent if row[0] in expected]

    def sinks(self) -> dict[str, int]:
        """Name → committed length in bytes of each append-only file that was created here."""
        return committed_lengths(self.connection.execute("SELECT name, length FROM sinks"))

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """Store a file name, in a transaction of its own. Called before the file is created, so that a crash leaves no
        unknown file."""
        self.connection.execute("INSERT OR REPLACE INTO sinks VALUES (?, ?, ?)", (name, length, last_fetch))

    def stage(self, batch: RowBatch) -> None:
        """Begin the transaction and write the rows. Raises `sqlite3.Error`."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_KEEP_PREVIOUS, batch.changed)
        largest = max((len(row[TEXT]) for row in batch.rows), default=0)
        _UPSERT.run(connection, batch.rows, largest)
        _NOT_MODIFIED.run(connection, batch.not_modified)
        _COPY_KEPT.run(connection, batch.copy_kept)
        attempt_and_old_hash = batch.attempt_and_old_hash
        _HISTORY.run(
            connection, [_of_fetch(row) + attempt_and_old_hash[row[JOB], row[FETCH_ID]] for row in batch.fetches()]
        )
        connection.executemany(ADD_ROWS, [(f"{ROWS}{job}", number) for job, number in batch.added.items()])
        _CHANGES.run(connection, batch.changes)
        for job, key, links in batch.links:
            connection.execute("DELETE FROM links WHERE job = ? AND from_key = ?", (job, key))
            _LINKS.run(connection, [(job, key, url, to, anchor) for url, to, anchor in unpack_links(links)])
        if batch.items:
            connection.executemany("DELETE FROM items WHERE job = ? AND url_key = ?", list(batch.items))
            rows = item_rows(batch.items)
            _ITEMS.run(connection, rows, max((len(row[-1]) for row in rows), default=0))
        database = self.reading
        if has_parts(database, batch):
            complete(database, batch)
        if batch.finds or batch.evaluated or batch.reports:
            scheme_pages.write(database, batch)

    def commit(self, lengths: Mapping[str, int]) -> None:
        """Commit rows and file lengths together. Raises `sqlite3.Error`."""
        connection = self.connection
        for name, length in lengths.items():
            connection.execute(_LENGTH, (length, length, name))
        connection.execute("COMMIT")

    def after_commit(self) -> None:
        """Checkpoint the write-ahead log if it has grown."""
        if self._wal_bytes() >= self._config.wal_bytes:
            self._checkpoint("PASSIVE")

    def rollback(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def restore(self) -> str:
        """If only the write-ahead log is missing, its content is copied into the database."""
        if self._connection is None or self._opened is None:
            return ""
        if is_same_file(self.path, self._opened):
            if self._wal.exists():
                return ""
            self._checkpoint("TRUNCATE")
            return f"{self._wal} was deleted while it was written to; what it held was copied to {self.path}"

        def write(path: Path) -> None:
            with contextlib.closing(sqlite3.connect(path)) as saved:
                self.connection.backup(saved)

        # A closing connection deletes its log by name: so it closes before the new file has that name.
        return write_back(self.path, write, self._abandon)

    def close(self) -> None:
        """Copy the log into the database and close it. If another program reads the database, the log stays, without
        loss."""
        if self._connection is not None:
            self._checkpoint("TRUNCATE")
            self._abandon()

    def _checkpoint(self, mode: str) -> None:
        # A failure loses nothing: the log has the rows, and the next commit reports a full disk.
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
