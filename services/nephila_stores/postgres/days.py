"""Tables of a PostgreSQL database partitioned by day (`partition_by`), and their retention.

`pages` and `fetches` have one partition per UTC day: of a page the day of its newest fetch, of a fetch its own day. A
refetch on another day moves the row. The table `page_keys` is not partitioned: it holds what a flush looks up of each
key, so a fetch counts once also after its partition was dropped. Invariant: a key has at most one row in `pages`; the
writer keeps it under the locks of the keys, because a unique index over all partitions does not exist.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from nephila.storage.changes import DEAD_LETTER
from nephila.storage.ledgers.contract import Key
from nephila.storage.rows import FETCH_NO, FETCHED_AT, JOB, SHA256, URL_KEY, Row, RowBatch
from psycopg import errors, sql

from nephila_stores.postgres.arrays import columns
from nephila_stores.postgres.link import Connection
from nephila_stores.postgres.schema import LOCKS
from nephila_stores.postgres.statements import DAY, arrays

log = logging.getLogger(__name__)

META: Final = "partition_by"
"""Row of the table meta; its value is "day"."""
_TABLES: Final = {"pages": ("job", "url_key"), "fetches": ("job", "url_key", "fetch_no")}
_DAY_OF_ROW: Final = "CASE fetched_at WHEN '' THEN current_date ELSE left(fetched_at, 10)::date END"
_KEY_COLUMNS: Final = "job, url_key, day, fetch_no, outcome, copy, text_hash, first_at, changed_at, gone, dead_letter"
_KEY_OF_PAGE: Final = (
    "job, url_key, day, fetch_no, outcome, sha256 <> '', text_hash, first_at, changed_at, change IN ('gone', 'moved'),"
    f" reason = '{DEAD_LETTER}'"
)
_OF_COPY: Final = ("text_hash", "first_at", "changed_at")
_KEYS: Final = (
    f"INSERT INTO page_keys ({_KEY_COLUMNS}) SELECT {_KEY_OF_PAGE} FROM pages"
    f" WHERE (job, url_key, day) IN (SELECT * FROM {arrays(('job', 'url_key', DAY))})"
    " ON CONFLICT (job, url_key) DO UPDATE SET day = excluded.day, fetch_no = excluded.fetch_no,"
    " outcome = excluded.outcome, gone = excluded.gone, dead_letter = excluded.dead_letter,"
    " copy = page_keys.copy OR excluded.copy, "
    + ", ".join(
        f"{name} = CASE WHEN excluded.copy OR NOT page_keys.copy THEN excluded.{name} ELSE page_keys.{name} END"
        for name in _OF_COPY
    )
)
_OLD: Final = f"{arrays(('job', 'url_key'))} AS old (job, key)"
_REMOVE: Final = (
    f"DELETE FROM pages USING {_OLD} WHERE pages.day = %s::date AND pages.job = old.job AND pages.url_key = old.key"
)
_MOVE: Final = (
    f"UPDATE pages SET day = new.day FROM {arrays(('job', 'url_key', DAY))} AS new (job, key, day)"
    " WHERE pages.day = %s::date AND pages.job = new.job AND pages.url_key = new.key"
)
_FORGET_DEAD: Final = (
    f"DELETE FROM fetches USING {_OLD} WHERE fetches.day = %s::date AND fetches.job = old.job"
    f" AND fetches.url_key = old.key AND fetches.reason = '{DEAD_LETTER}'"
)
_PARTITIONS: Final = (
    "SELECT tables.relname FROM pg_inherits JOIN pg_class AS tables ON tables.oid = inhrelid"
    " WHERE inhparent = %s::regclass ORDER BY 1"
)
_DETACHED: Final = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND NOT relispartition"
    " AND relnamespace = current_schema()::regnamespace AND relname ~ '^(pages|fetches)_[0-9]{8}$' ORDER BY 1"
)
_SATELLITES: Final = {"links": "from_key", "items": "url_key", "parts": "url_key", "waits": "url_key"} | {
    "previous": "url_key"
}
"""Tables with rows of pages → their column with the page's key."""


def is_partitioned(connection: Connection) -> bool:
    """Whether the tables are partitioned by day."""
    return connection.execute("SELECT 1 FROM meta WHERE name = %s", (META,)).fetchone() is not None


def convert(connection: Connection) -> None:
    """Partition the tables of a database, with all rows, in one transaction. O(rows); the rows are copied."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, -1)", (LOCKS,))
        if is_partitioned(connection):
            return
        connection.execute("LOCK TABLE pages, fetches IN ACCESS EXCLUSIVE MODE")
        connection.execute("ALTER TABLE fetches ALTER COLUMN id DROP IDENTITY")
        connection.execute("CREATE SEQUENCE fetches_id")
        connection.execute("SELECT setval('fetches_id', coalesce((SELECT max(id) FROM fetches), 0) + 1, false)")
        for table, key in _TABLES.items():
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_plain")
            connection.execute(
                f"CREATE TABLE {table} (LIKE {table}_plain INCLUDING COMPRESSION INCLUDING STORAGE,"
                f" day date NOT NULL, PRIMARY KEY ({', '.join(key)}, day)) PARTITION BY RANGE (day)"
            )
        connection.execute("ALTER TABLE fetches ALTER COLUMN id SET DEFAULT nextval('fetches_id')")
        connection.execute("ALTER SEQUENCE fetches_id OWNED BY fetches.id")
        connection.execute(
            'CREATE TABLE page_keys (job text COLLATE "C" NOT NULL, url_key text COLLATE "C" NOT NULL,'
            " day date NOT NULL, fetch_no bigint NOT NULL, outcome text NOT NULL, copy boolean NOT NULL,"
            " text_hash text NOT NULL, first_at text NOT NULL, changed_at text NOT NULL, gone boolean NOT NULL,"
            " dead_letter boolean NOT NULL,"
            " PRIMARY KEY (job, url_key))"
        )
        for table in _TABLES:
            days = connection.execute(f"SELECT DISTINCT ({_DAY_OF_ROW})::text FROM {table}_plain").fetchall()
            for (day,) in days:
                _create(connection, table, day)
            connection.execute(f"INSERT INTO {table} SELECT *, {_DAY_OF_ROW} FROM {table}_plain")
            connection.execute(f"DROP TABLE {table}_plain")
        connection.execute(f"INSERT INTO page_keys ({_KEY_COLUMNS}) SELECT {_KEY_OF_PAGE} FROM pages")
        connection.execute("INSERT INTO meta VALUES (%s, 'day')", (META,))


def _create(connection: Connection, table: str, day: str) -> None:
    # ATTACH locks out no reader or writer of the other days; CREATE … PARTITION OF does.
    name = f"{table}_{day.replace('-', '')}"
    connection.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
    bounds = sql.SQL("FOR VALUES FROM ({0}::date) TO ({0}::date + 1)").format(sql.Literal(day))
    connection.execute(sql.SQL("ALTER TABLE {} ATTACH PARTITION {} ").format(_name(table), _name(name)) + bounds)


def _name(table: str) -> sql.Identifier:
    return sql.Identifier(table)


class Days:
    """The partitions of an open database. `maintenance` opens a second connection, since a flush may be running on the
    first one."""

    def __init__(self, connection: Connection, retention_days: int) -> None:
        self._retention_days = retention_days
        self._stored: dict[Key, tuple[str, int, bool]] = {}
        self._existing: set[str] = set()
        self._drop_due = bool(retention_days)
        (self._today,) = connection.execute("SELECT current_date::text").fetchone() or ("",)
        self._read(connection)

    def begin(self) -> None:
        """A flush begins."""
        self._stored.clear()

    def found(self, key: Key, day: str, fetch_no: int, is_dead_letter: bool) -> None:
        """The stored row of a key in this flush."""
        self._stored[key] = day, fetch_no, is_dead_letter

    def of_fetch(self, row: Row) -> str:
        """The day of a fetch; a row without a time belongs to the newest day seen."""
        return str(row[FETCHED_AT])[:10] or self._today

    def of_pages(self, batch: RowBatch) -> dict[Key, str]:
        """The new day of each page of a batch: that of its newest fetch."""
        newest: dict[Key, Row] = {}
        for row in batch.fetches():
            key = (row[JOB], row[URL_KEY])
            stored = newest.get(key)
            if stored is None or row[FETCH_NO] >= stored[FETCH_NO]:
                newest[key] = row
        timed = [row[FETCHED_AT][:10] for row in newest.values() if row[FETCHED_AT]]
        self._today = max([self._today, *timed])
        return {key: self.of_fetch(row) for key, row in newest.items()}

    def missing(self, batch: RowBatch, pages: Mapping[Key, str]) -> list[str]:
        """Days without a partition."""
        return sorted({*pages.values(), *map(self.of_fetch, batch.fetches())} - self._existing)

    def create(self, connection: Connection, days: Iterable[str]) -> None:
        """Create the partitions of these days."""
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, -1)", (LOCKS,))
            self._read(connection)
            for day in set(days) - self._existing:
                for table in _TABLES:
                    _create(connection, table, day)
        self._existing |= set(days)
        self._drop_due = bool(self._retention_days)

    def with_old_day(self, keys: Iterable[Key]) -> list[tuple[str, str, str]]:
        """The keys with the days of their stored rows; keys without a stored row are left out."""
        return [(*key, self._stored[key][0]) for key in keys if key in self._stored]

    def move(self, connection: Connection, batch: RowBatch, pages: Mapping[Key, str]) -> None:
        """Move the stored rows of a batch to their new days; a row that is replaced as a whole is removed."""
        replaced = {(row[JOB], row[URL_KEY]) for row in batch.rows if row[SHA256]}
        removed: dict[str, list[Key]] = {}
        moved: dict[str, list[tuple[str, str, str]]] = {}
        dead: dict[str, list[Key]] = {}
        numbers = {(row[JOB], row[URL_KEY], row[FETCH_NO]) for row in batch.fetches()}
        for key, (day, fetch_no, is_dead_letter) in self._stored.items():
            new = pages.get(key)
            if new is None:
                continue
            if is_dead_letter and (*key, fetch_no) in numbers:
                dead.setdefault(day, []).append(key)
            if new == day:
                continue
            if key in replaced:
                removed.setdefault(day, []).append(key)
            else:
                moved.setdefault(day, []).append((*key, new))
        for day, keys in dead.items():
            connection.execute(_FORGET_DEAD, (*columns(keys), day), prepare=True)
        for day, keys in removed.items():
            connection.execute(_REMOVE, (*columns(keys), day), prepare=True)
        for day, targets in moved.items():
            connection.execute(_MOVE, (*columns(targets), day), prepare=True)

    def write_keys(self, connection: Connection, pages: Mapping[Key, str]) -> None:
        """Update `page_keys` from the rows of these pages."""
        if pages:
            connection.execute(_KEYS, columns([(*key, day) for key, day in pages.items()]), prepare=True)

    @property
    def drop_due(self) -> bool:
        """Whether partitions may be older than the retention: after the start, and when a new day has begun."""
        return self._drop_due

    def drop_old(self, connection: Connection) -> None:
        """Drop the partitions that are older than the retention, with the links and items of their pages.

        First the partition is detached, so no writer moves a row out of it. Rows of other tables go only if the page
        has no newer row. A stop in between is completed by the next call.
        """
        self._drop_due = False
        (oldest,) = connection.execute(
            "SELECT to_char(current_date - %s::int, 'YYYYMMDD')", (self._retention_days,)
        ).fetchone() or ("",)
        connection.execute(
            "DELETE FROM changes WHERE at < to_char(current_date - %s::int, 'YYYY-MM-DD')", (self._retention_days,)
        )
        connection.execute("SET lock_timeout = '5s'")
        for table in _TABLES:
            for (name,) in connection.execute(_PARTITIONS, (table,)).fetchall():
                if name.rpartition("_")[2] >= oldest:
                    continue
                try:
                    connection.execute(sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(_name(table), _name(name)))
                except errors.LockNotAvailable:
                    log.warning("storage: %s is in use by a long query; it is dropped later", name)
                    self._drop_due = True
                    return
        for (name,) in connection.execute(_DETACHED).fetchall():
            with connection.transaction():
                if name.startswith("pages_"):
                    _delete_satellites(connection, name)
                connection.execute(sql.SQL("DROP TABLE {}").format(_name(name)))
            log.info("storage: dropped %s, older than %d days", name, self._retention_days)
        self._read(connection)

    def _read(self, connection: Connection) -> None:
        names = [{name for (name,) in connection.execute(_PARTITIONS, (table,))} for table in _TABLES]
        both = {name.removeprefix("pages_") for name in names[0]} & {name.removeprefix("fetches_") for name in names[1]}
        self._existing = {f"{day[:4]}-{day[4:6]}-{day[6:]}" for day in both}


def _delete_satellites(connection: Connection, name: str) -> None:
    for table, key in _SATELLITES.items():
        connection.execute(
            sql.SQL(
                "DELETE FROM {table} USING {old} AS old WHERE {table}.job = old.job AND {table}.{key} = old.url_key"
                " AND NOT EXISTS (SELECT 1 FROM page_keys WHERE page_keys.job = old.job"
                " AND page_keys.url_key = old.url_key AND page_keys.day > old.day)"
            ).format(table=_name(table), old=_name(name), key=_name(key))
        )
