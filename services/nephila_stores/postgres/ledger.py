"""The ledger in PostgreSQL: the tables of nephila.db in a database that many writers share.

Invariant: what this database has committed is the state of the crawl. A flush is one transaction. It first takes the
locks of its keys' buckets (first byte of url_key) in ascending order. Two writers with overlapping keys, as during a
hand-over, therefore run one after the other and cannot deadlock, and what a flush reads of its keys stays valid until
it commits. One statement per batch writes each table, with one array per column as parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from nephila import __version__
from nephila.kernel import messages as m
from nephila.storage.append_file import committed_lengths
from nephila.storage.changes import ChangeRow, StoredVersion
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers import scheme_pages
from nephila.storage.ledgers.contract import RECENT_CHANGES, Key
from nephila.storage.ledgers.item_parts import complete, has_parts
from nephila.storage.ledgers.read_connection import Cursor, PostgresReadConnection
from nephila.storage.retention import retention_days
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
    STRUCTURE,
    TEXT,
    TEXT_HASH,
    URL_KEY,
    Row,
    RowBatch,
    item_rows,
    unpack_links,
)
from psycopg.pq import TransactionStatus

from nephila_stores.postgres.arrays import columns, int_array, register, text_array
from nephila_stores.postgres.days import Days, convert, is_partitioned
from nephila_stores.postgres.link import Connection, connect, translate_errors
from nephila_stores.postgres.schema import LOCKS, migrate
from nephila_stores.postgres.statements import arrays, statements

_CHUNK_BYTES = 16 * 1024 * 1024
"""Bytes of text in one statement; they are copied several times."""


_ANALYSE_AT = (1_000, 30_000)
"""Rows of this writer after which the tables are analysed: autovacuum comes a minute later, and until then the planner
takes tables for nearly empty. Beyond, autovacuum's own thresholds suffice."""
_ANALYSE = "ANALYZE {}, fetches, links, items, changes"

_PLAIN, _BY_DAY = statements(by_day=False), statements(by_day=True)
_ITEM_COLUMNS = ("job", "url_key", "rule", "rule_version", "ordinal", "data")
_LINK_COLUMNS = ("job", "from_key", "to_url", "to_key", "anchor")
_UNLINK = (
    "DELETE FROM links USING unnest(%s::text[], %s::text[]) AS old (job, key)"
    " WHERE links.job = old.job AND links.from_key = old.key"
)
_LINK = f"INSERT INTO links ({', '.join(_LINK_COLUMNS)}) SELECT * FROM {arrays(_LINK_COLUMNS)}"
_UNITEM = (
    "DELETE FROM items USING unnest(%s::text[], %s::text[]) AS old (job, key)"
    " WHERE items.job = old.job AND items.url_key = old.key"
)
_ITEM = f"INSERT INTO items ({', '.join(_ITEM_COLUMNS)}) SELECT * FROM {arrays(_ITEM_COLUMNS)}"
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LOCK = f"SELECT pg_advisory_xact_lock({LOCKS}, bucket::int) FROM unnest(%s::bigint[]) AS bucket"
_LOCK_CHANGES = f"SELECT pg_advisory_xact_lock({LOCKS}, -3)"
_CHANGES = f"INSERT INTO changes ({', '.join(ChangeRow._fields)}) SELECT * FROM {arrays(ChangeRow._fields)}"
_RECENT = (
    f"SELECT {', '.join(ChangeRow._fields)} FROM changes WHERE seq > (SELECT coalesce(max(seq), 0) FROM changes) - %s"
    " AND id = ANY (%s::text[]) ORDER BY seq"
)
_COPIES = (
    "SELECT job, url_key, title, text FROM pages WHERE (job, url_key) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
)
_ORIGINALS = "FROM pages WHERE job = %s AND simhash <> '' AND near_copy_of = '' AND sha256 <> ''"
"""Pages that are no near-copies."""
_SIMHASHES = 10_000
"""Simhashes that one exchange with the server brings."""
_LOCK_WAITS = f"SELECT pg_advisory_xact_lock({LOCKS}, -2)"
_REGISTER = (
    "INSERT INTO sinks VALUES (%s, %s, %s, %s) ON CONFLICT (writer, name) DO UPDATE SET length = excluded.length,"
    " last_fetch = excluded.last_fetch"
)
_of_fetch = itemgetter(JOB, URL_KEY, FETCH_NO, OUTCOME, REASON, STATUS, FETCHED_AT, BYTES, SHA256, CHANGE, TEXT_HASH)
_OUTCOMES = {name: m.Outcome(number) for number, name in enumerate(OUTCOMES)}


class _TranslatedConnection(PostgresReadConnection):
    """Queries for callers outside of this class."""

    def __init__(self, connection: Connection, url: str) -> None:
        super().__init__(connection)
        self._url = url

    def execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        """Raises `StoreLost`, `UserError`."""
        with translate_errors(self._url):
            return super().execute(query, values)


class Postgres:
    """One connection, used by the writer's thread."""

    def __init__(self, config: StorageConfig) -> None:
        self.path = config.directory
        self._url = config.store
        self._writer = config.writer
        self._fsync = config.fsync
        self._by_day = bool(config.partition_by)
        self._retention_days = retention_days(config)
        self._connection: Connection | None = None
        self._days: Days | None = None
        self._statements = _PLAIN
        self._written = 0
        self._analyse_at = list(_ANALYSE_AT)

    @property
    def reading(self) -> PostgresReadConnection:
        with self._speaking() as connection:
            return _TranslatedConnection(connection, self._url)

    def examine(self, ended: Mapping[str, int]) -> None:
        """The server checks its own pages, and other users may have deleted rows."""

    def last_fetches(self) -> dict[str, int]:
        query = f"SELECT job, max(fetch_no) FROM {'page_keys' if self._days is not None else 'pages'} GROUP BY job"
        with self._speaking() as connection:
            return dict(connection.execute(query).fetchall())

    def open(self) -> None:
        """Tables that are missing are created."""
        self._connection = connection = connect(self._url, fsync=self._fsync)
        try:
            register(connection)
            with translate_errors(self._url):
                migrate(connection, self._url, f"nephila {__version__}")
                self._open_days(connection)
        except BaseException:
            self.close()
            raise

    def _open_days(self, connection: Connection) -> None:
        # The layout belongs to the database: a writer without the setting writes partitions too.
        if self._by_day:
            convert(connection)
        elif not is_partitioned(connection):
            return
        self._days = Days(connection, self._retention_days)
        self._statements = _BY_DAY
        self._drop_old()

    def durable(self, keys_by_job: Mapping[str, Iterable[str]]) -> dict[Key, StoredVersion]:
        """The transaction begins here and waits for other holders of these buckets."""
        keys = {job: list(of_job) for job, of_job in keys_by_job.items()}
        buckets = sorted({int(key[:2], 16) for of_job in keys.values() for key in of_job})
        versions: dict[Key, StoredVersion] = {}
        days = self._days
        if days is not None:
            days.begin()
        with self._speaking() as connection:
            connection.execute(_BEGIN)
            connection.execute(_LOCK, (int_array(buckets),), prepare=True)
            for job, of_job in keys.items():
                cursor = connection.execute(self._statements.durable, (job, text_array(of_job)), prepare=True)
                for key, fetch_no, outcome, copy, copy_hash, first_at, changed_at, is_away, is_dead, *day in cursor:
                    versions[job, key] = StoredVersion(
                        *(fetch_no, _OUTCOMES[outcome], copy, bytes.fromhex(copy_hash)),
                        *(first_at, changed_at, is_away, is_dead),
                    )
                    if days is not None:
                        days.found((job, key), day[0], fetch_no, is_dead)
        return versions

    def copies(self, keys: Iterable[Key]) -> dict[Key, tuple[str, bytes]]:
        """Reads in the transaction of `durable`."""
        with self._speaking() as connection:
            rows = connection.execute(_COPIES, columns(list(keys)))
            return {(job, key): (title, text.encode()) for job, key, title, text in rows}

    def simhashes(self, job: str) -> Iterable[tuple[str, str]]:
        """Reads in the transaction of `durable`."""
        with self._speaking() as connection, connection.cursor("simhashes") as cursor:
            cursor.itersize = _SIMHASHES
            yield from cursor.execute(f"SELECT url_key, simhash {_ORIGINALS} ORDER BY fetch_no", (job,))

    def pages_by_prefix(self, job: str, prefix: str) -> Iterable[tuple[str, str, str]]:
        query = f"SELECT url_key, url, simhash {_ORIGINALS} AND url_key >= %s AND url_key < %s"
        with self._speaking() as connection:
            return connection.execute(query, (job, prefix, prefix + "g"), prepare=True).fetchall()

    def recorded_changes(self, ids: Collection[str]) -> list[ChangeRow]:
        with self._speaking() as connection:
            rows = connection.execute(_RECENT, (RECENT_CHANGES, text_array(list(ids))))
            return [ChangeRow(*row) for row in rows]

    def sinks(self) -> dict[str, int]:
        """Lengths of the files of this writer only, by the name in the configuration."""
        with self._speaking() as connection:
            rows = connection.execute("SELECT name, length FROM sinks WHERE writer = %s", (self._writer,)).fetchall()
        return committed_lengths(rows)

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """The write uses a connection of its own, since a flush may be running on the other one."""
        with translate_errors(self._url), connect(self._url, fsync=self._fsync) as connection:
            connection.execute(_REGISTER, (self._writer, name, length, last_fetch))

    def stage(self, batch: RowBatch) -> None:
        attempt_and_old_hash = batch.attempt_and_old_hash
        self._written += len(batch.rows)
        days, statements = self._days, self._statements
        pages = days.of_pages(batch) if days is not None else {}
        if days is not None and (missing := days.missing(batch, pages)):
            # Before this transaction locks a table; on a connection of its own, because other writers need them too.
            with translate_errors(self._url), connect(self._url, fsync=self._fsync) as other:
                days.create(other, missing)
        # By fetch: a batch may contain a dead letter and its replayed record; the later one counts.
        fetches = {(row[JOB], row[URL_KEY], row[FETCH_NO]): row for row in batch.fetches()}
        history = [
            _of_fetch(row)
            + attempt_and_old_hash[row[JOB], row[FETCH_ID]]
            + ((days.of_fetch(row),) if days is not None else ())
            for row in fetches.values()
        ]
        with self._speaking() as connection:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                connection.execute(_BEGIN)
            database = PostgresReadConnection(connection)
            completing = has_parts(database, batch)
            if completing:
                # Before the first row: of two flushes with a part and the item that waits for it, one sees the rows of
                # the other.
                connection.execute(_LOCK_WAITS, prepare=True)
            changed = dict.fromkeys(batch.changed)
            if before := list(changed) if days is None else days.with_old_day(changed):
                connection.execute(statements.keep_previous, columns(before), prepare=True)
            if days is not None:
                days.move(connection, batch, pages)
            for statement, rows in (
                (statements.upsert, batch.rows),
                (statements.not_modified, batch.not_modified),
                (statements.copy_kept, batch.copy_kept),
            ):
                for part in _parts(rows):
                    of_rows = [text_array([pages[row[JOB], row[URL_KEY]] for row in part])] if pages else []
                    connection.execute(statement, [*columns(part), *of_rows], prepare=True)
            if days is not None:
                days.write_keys(connection, pages)
            if history:
                connection.execute(statements.history, columns(history), prepare=True)
            if batch.links:
                _write_links(connection, {(job, key): links for job, key, links in batch.links})
            if batch.items:
                connection.execute(_UNITEM, columns(list(batch.items)), prepare=True)
                if rows := item_rows(batch.items):
                    connection.execute(_ITEM, columns(rows), prepare=True)
            if completing:
                complete(database, batch)
            if batch.finds or batch.evaluated or batch.reports:
                scheme_pages.write(database, batch)
            if batch.changes:
                # The last lock of a flush, held to its commit: so changes become visible in the order of `seq`, and a
                # reader that continues behind the last one misses none.
                connection.execute(_LOCK_CHANGES, prepare=True)
                connection.execute(_CHANGES, columns(batch.changes), prepare=True)

    def commit(self, lengths: Mapping[str, int]) -> None:
        query = "UPDATE sinks SET length = %s WHERE writer = %s AND name = %s"
        with self._speaking() as connection:
            for name, length in lengths.items():
                connection.execute(query, (length, self._writer, name))
            connection.execute("COMMIT")

    def after_commit(self) -> None:
        """Drop old partitions when a new day has begun, analyse young tables; the server maintains its log."""
        if self._analyse_at and self._written >= self._analyse_at[0]:
            self._analyse_at = [rows for rows in self._analyse_at if rows > self._written]
            with self._speaking() as connection:
                connection.execute(_ANALYSE.format("pages" if self._days is None else "pages, page_keys"))
        self._drop_old()

    def _drop_old(self) -> None:
        if self._days is not None and self._days.drop_due:
            with translate_errors(self._url), connect(self._url, fsync=self._fsync) as connection:
                self._days.drop_old(connection)

    def rollback(self) -> None:
        if self._connection is not None and self._connection.info.transaction_status not in (
            TransactionStatus.IDLE,
            TransactionStatus.UNKNOWN,  # the connection is lost, and the transaction with it
        ):
            with self._speaking() as connection:
                connection.execute("ROLLBACK")

    def restore(self) -> str:
        """A server needs no restore."""
        return ""

    def close(self) -> None:
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
        size += len(row[TEXT]) + len(row[STRUCTURE])
    if part:
        yield part


def _write_links(connection: Connection, links: Mapping[Key, m.Outlinks]) -> None:
    """Replace the links of pages."""
    connection.execute(_UNLINK, columns(list(links)), prepare=True)
    rows = [(*page, url, to, anchor) for page, packed in links.items() for url, to, anchor in unpack_links(packed)]
    if rows:
        connection.execute(_LINK, columns(rows), prepare=True)
