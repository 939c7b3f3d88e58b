"""The ledger in PostgreSQL: the tables of nephila.db in a database that many writers share.

Invariant: what this database has committed is the state of the crawl. A flush is one transaction. It first takes the
locks of its keys' buckets (first byte of url_key) in ascending order. Two writers with overlapping keys, as during a
hand-over, therefore run one after the other and cannot deadlock, and what a flush reads of its keys stays valid until
it commits. One statement per batch writes each table, with one array per column as parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter

from psycopg.pq import TransactionStatus

from nephila import __version__
from nephila.kernel import messages as m
from nephila.storage.changes import DEAD_LETTER, GONE, Change, StoredVersion
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Key
from nephila.storage.ledgers.item_parts import complete, has_parts
from nephila.storage.ledgers.postgres_arrays import columns, int_array, register, text_array
from nephila.storage.ledgers.postgres_link import Connection, connect, translate_errors
from nephila.storage.ledgers.postgres_schema import LOCKS, migrate
from nephila.storage.ledgers.read_connection import PostgresReadConnection
from nephila.storage.ledgers.schema import INTEGERS
from nephila.storage.ledgers.versions import INTO, ON_CONFLICT
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
    Row,
    item_rows,
    unpack_links,
)

_CHUNK_BYTES = 16 * 1024 * 1024
"""Bytes of text in one statement; they are copied several times."""


def _arrays(names: Sequence[str]) -> str:
    return "unnest(" + ", ".join("%s::bigint[]" if name in _NUMBERS else "%s::text[]" for name in names) + ")"


_NUMBERS = INTEGERS | {"attempt", "ordinal"}
_HISTORY_COLUMNS = (
    *("job", "url_key", "fetch_no", "outcome", "reason", "status", "fetched_at", "bytes", "sha256", "change"),
    *("text_hash", "attempt", "old_hash"),
)
_ITEM_COLUMNS = ("job", "url_key", "rule", "rule_version", "ordinal", "data")
_LINK_COLUMNS = ("job", "from_key", "to_url", "to_key", "anchor")
_INSERT = (
    f"INSERT INTO pages ({', '.join(COLUMNS)}) SELECT * FROM {_arrays(COLUMNS)}"
    " ON CONFLICT (job, url_key) DO UPDATE SET "
)
_GUARD = " WHERE excluded.fetch_no >= pages.fetch_no"
_FETCH = (
    ", ".join(
        f"{name} = excluded.{name}" for name in ("outcome", "status", "final_url", "fetched_at", "fetch_id", "fetch_no")
    )
    + f", change = CASE WHEN excluded.change = '' AND pages.change = '{GONE}' THEN '{GONE}' ELSE excluded.change END"
)
"""Columns of a fetch that brought no copy."""
_UPSERT = (
    _INSERT + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in ("job", "url_key")) + _GUARD
)
_NOT_MODIFIED = f"{_INSERT}{_FETCH}, reason = CASE pages.sha256 WHEN '' THEN excluded.reason ELSE '' END{_GUARD}"
_COPY_KEPT = f"{_INSERT}{_FETCH}, reason = excluded.reason{_GUARD}"
_KEEP_PREVIOUS = f"{INTO} WHERE (job, url_key) IN (SELECT * FROM unnest(%s::text[], %s::text[])) {ON_CONFLICT}"
_HISTORY = (
    f"INSERT INTO fetches ({', '.join(_HISTORY_COLUMNS)}) SELECT * FROM {_arrays(_HISTORY_COLUMNS)}"
    " ON CONFLICT (job, url_key, fetch_no) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _HISTORY_COLUMNS if name not in ("job", "url_key", "fetch_no"))
    + f" WHERE fetches.reason = '{DEAD_LETTER}'"
)
_UNLINK = (
    "DELETE FROM links USING unnest(%s::text[], %s::text[]) AS old (job, key)"
    " WHERE links.job = old.job AND links.from_key = old.key"
)
_LINK = f"INSERT INTO links ({', '.join(_LINK_COLUMNS)}) SELECT * FROM {_arrays(_LINK_COLUMNS)}"
_UNITEM = (
    "DELETE FROM items USING unnest(%s::text[], %s::text[]) AS old (job, key)"
    " WHERE items.job = old.job AND items.url_key = old.key"
)
_ITEM = f"INSERT INTO items ({', '.join(_ITEM_COLUMNS)}) SELECT * FROM {_arrays(_ITEM_COLUMNS)}"
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LOCK = f"SELECT pg_advisory_xact_lock({LOCKS}, bucket::int) FROM unnest(%s::bigint[]) AS bucket"
_LOCK_CHANGES = f"SELECT pg_advisory_xact_lock({LOCKS}, -3)"
_CHANGES = f"INSERT INTO changes ({', '.join(Change._fields)}) SELECT * FROM {_arrays(Change._fields)}"
_COPIES = (
    "SELECT job, url_key, title, text FROM pages WHERE (job, url_key) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
)
_LOCK_WAITS = f"SELECT pg_advisory_xact_lock({LOCKS}, -2)"
_STORED_COLUMNS = (
    "SELECT url_key, fetch_no, outcome, sha256 <> '', text_hash, first_at, changed_at,"
    f" change = '{GONE}', reason = '{DEAD_LETTER}'"
    " FROM pages WHERE job = %s AND url_key = ANY (%s::text[])"
)
_REGISTER = (
    "INSERT INTO sinks VALUES (%s, %s, %s, %s) ON CONFLICT (writer, name) DO UPDATE SET length = excluded.length,"
    " last_fetch = excluded.last_fetch"
)
_of_fetch = itemgetter(JOB, URL_KEY, FETCH_NO, OUTCOME, REASON, STATUS, FETCHED_AT, BYTES, SHA256, CHANGE, TEXT_HASH)
_OUTCOMES = {name: m.Outcome(number) for number, name in enumerate(OUTCOMES)}


class Postgres:
    """See `Ledger`. One connection, used by the writer's thread."""

    def __init__(self, config: StorageConfig) -> None:
        self.path = config.directory
        self._url = config.store
        self._writer = config.writer
        self._fsync = config.fsync
        self._connection: Connection | None = None

    def examine(self, ended: Mapping[str, int]) -> None:
        """See `Ledger`. The server checks its own pages, and other users may have deleted rows."""

    def last_fetches(self) -> dict[str, int]:
        """See `Ledger`."""
        query = "SELECT job, max(fetch_no) FROM pages GROUP BY job"
        with self._speaking() as connection:
            return dict(connection.execute(query).fetchall())

    def open(self) -> None:
        """See `Ledger`. Creates or completes the tables."""
        self._connection = connection = connect(self._url, fsync=self._fsync)
        try:
            register(connection)
            with translate_errors(self._url):
                migrate(connection, self._url, f"nephila {__version__}")
        except BaseException:
            self.close()
            raise

    def durable(self, wanted: Mapping[str, Iterable[str]]) -> dict[Key, StoredVersion]:
        """See `Ledger`. Begins the transaction and waits for other holders of these buckets."""
        keys = {job: list(of_job) for job, of_job in wanted.items()}
        buckets = sorted({int(key[:2], 16) for of_job in keys.values() for key in of_job})
        found: dict[Key, StoredVersion] = {}
        with self._speaking() as connection:
            connection.execute(_BEGIN)
            connection.execute(_LOCK, (int_array(buckets),), prepare=True)
            for job, of_job in keys.items():
                cursor = connection.execute(_STORED_COLUMNS, (job, text_array(of_job)), prepare=True)
                for key, fetch_no, outcome, copy, copy_hash, *instants in cursor:
                    found[job, key] = StoredVersion(
                        fetch_no, _OUTCOMES[outcome], copy, bytes.fromhex(copy_hash), *instants
                    )
        return found

    def copies(self, wanted: Iterable[Key]) -> dict[Key, tuple[str, bytes]]:
        """See `Ledger`. In the transaction of `durable`."""
        with self._speaking() as connection:
            found = connection.execute(_COPIES, columns(list(wanted)))
            return {(job, key): (title, text.encode()) for job, key, title, text in found}

    def sinks(self) -> dict[str, int]:
        """See `Ledger`. Only files of this writer, by the name in the configuration."""
        with self._speaking() as connection:
            rows = connection.execute("SELECT name, length FROM sinks WHERE writer = %s", (self._writer,)).fetchall()
        return dict(rows)

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """See `Ledger`. Uses a connection of its own, since a flush may be running on the other one."""
        with translate_errors(self._url), connect(self._url, fsync=self._fsync) as connection:
            connection.execute(_REGISTER, (self._writer, name, length, last_fetch))

    def stage(self, batch: Batch) -> None:
        """See `Ledger`."""
        attempt_and_old_hash = batch.attempt_and_old_hash
        # By fetch: a batch may contain a dead letter and its replayed record; the later one counts.
        fetches = {(row[JOB], row[URL_KEY], row[FETCH_NO]): row for row in batch.fetches()}
        history = [_of_fetch(row) + attempt_and_old_hash[row[JOB], row[FETCH_ID]] for row in fetches.values()]
        with self._speaking() as connection:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                connection.execute(_BEGIN)
            database = PostgresReadConnection(connection)
            completing = has_parts(database, batch)
            if completing:
                # Before the first row: of two flushes with a part and the item that waits for it, one sees the rows of
                # the other.
                connection.execute(_LOCK_WAITS, prepare=True)
            if batch.changed:
                connection.execute(_KEEP_PREVIOUS, columns(list(dict.fromkeys(batch.changed))), prepare=True)
            for statement, rows in (
                (_UPSERT, batch.rows),
                (_NOT_MODIFIED, batch.not_modified),
                (_COPY_KEPT, batch.copy_kept),
            ):
                for part in _parts(rows):
                    connection.execute(statement, columns(part), prepare=True)
            if history:
                connection.execute(_HISTORY, columns(history), prepare=True)
            if batch.links:
                _write_links(connection, {(job, key): links for job, key, links in batch.links})
            if batch.items:
                connection.execute(_UNITEM, columns(list(batch.items)), prepare=True)
                if rows := item_rows(batch.items):
                    connection.execute(_ITEM, columns(rows), prepare=True)
            if completing:
                complete(database, batch)
            if batch.changes:
                # The last lock of a flush, held to its commit: so changes become visible in the order of `seq`, and a
                # reader that continues behind the last one misses none.
                connection.execute(_LOCK_CHANGES, prepare=True)
                connection.execute(_CHANGES, columns(batch.changes), prepare=True)

    def commit(self, lengths: Mapping[str, int]) -> None:
        """See `Ledger`."""
        query = "UPDATE sinks SET length = %s WHERE writer = %s AND name = %s"
        with self._speaking() as connection:
            for name, length in lengths.items():
                connection.execute(query, (length, self._writer, name))
            connection.execute("COMMIT")

    def after_commit(self) -> None:
        """Nothing to do: the server maintains its log."""

    def rollback(self) -> None:
        """See `Ledger`."""
        if self._connection is not None and self._connection.info.transaction_status not in (
            TransactionStatus.IDLE,
            TransactionStatus.UNKNOWN,  # the connection is lost, and the transaction with it
        ):
            with self._speaking() as connection:
                connection.execute("ROLLBACK")

    def restore(self) -> str:
        """See `Ledger`. Nothing to do on a server."""
        return ""

    def close(self) -> None:
        """See `Ledger`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _speaking(self) -> Iterator[Connection]:
        if self._connection is None:
            raise RuntimeError("the database is not open")
        with translate_errors(self._url):
            yield self._connection


def _parts(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows in order, in parts of bounded size without duplicate keys: a statement may change a row only once."""
    part: list[Row] = []
    keys: set[tuple[str, str]] = set()
    size = 0
    for row in rows:
        key = (row[JOB], row[URL_KEY])
        if part and (key in keys or size >= _CHUNK_BYTES):
            yield part
            part, keys, size = [], set(), 0
        part.append(row)
        keys.add(key)
        size += len(row[TEXT])
    if part:
        yield part


def _write_links(connection: Connection, links: Mapping[Key, m.Outlinks]) -> None:
    """Replace the links of pages."""
    connection.execute(_UNLINK, columns(list(links)), prepare=True)
    rows = [(*page, url, to, anchor) for page, packed in links.items() for url, to, anchor in unpack_links(packed)]
    if rows:
        connection.execute(_LINK, columns(rows), prepare=True)
