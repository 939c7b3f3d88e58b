"""The tables of nephila.db, their versions, and read-only access to them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from nephila.kernel.runtime.errors import UserError
from nephila.native import KEY_VERSION
from nephila.storage.faults import cannot_open, damaged, read_fault
from nephila.storage.rows import STORED_COLUMNS

DATABASE = "nephila.db"
READ_CACHE_KB = 16_000
"""Memory of a connection that reads. A walk in the order of a key reads each page once, not once per row."""
SCHEMA_VERSION = 1
ROWS = "rows:"
"""Prefix of the names in `meta` under which each job's number of rows in `pages` is."""
ADD_ROWS = (
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value"
)

INTEGERS = {"status", "depth", "bytes", "fetch_no", "rule_version", "near_copy_bits"}
"""Columns of `pages` that hold numbers,"""
BLOBS = {"structure"}
"""and those that hold bytes; all others are text."""

CHANGES = (
    "CREATE TABLE changes (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at TEXT NOT NULL,"
    " job TEXT NOT NULL, url_key TEXT NOT NULL, fetch_no INTEGER NOT NULL, change TEXT NOT NULL, url TEXT NOT NULL,"
    " title TEXT NOT NULL, fetched_at TEXT NOT NULL, old_hash TEXT NOT NULL, text_hash TEXT NOT NULL,"
    " diff TEXT NOT NULL)"
)
"""The change feed (storage/changes.py). `seq` rises in the order of commits and is never used twice; `id` depends on
job, URL and fetch. Without an index on `id`: rows are appended, and a look-up by id is rare."""

# A rowid table: rows of 10 KB are appended, and only the small key index is written at random positions
# (docs/adr/0006).
SECOND_PAGES = (
    "CREATE TABLE parts (job TEXT NOT NULL, url_key TEXT NOT NULL, rule TEXT NOT NULL,"
    " rule_version INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (job, url_key))",
    "CREATE TABLE waits (job TEXT NOT NULL, url_key TEXT NOT NULL, ordinal INTEGER NOT NULL,"
    " name TEXT NOT NULL, url TEXT NOT NULL, to_key TEXT NOT NULL, PRIMARY KEY (job, url_key, ordinal, name))",
    "CREATE INDEX waits_to ON waits (job, to_key)",
)
"""Items that wait for a second page (item_parts.py): `parts` holds items of second pages, `waits` the missing parts.
A wait stays after its part has arrived, because a newer part may come."""
FINDS = (
    "CREATE TABLE finds (job TEXT NOT NULL, url_key TEXT NOT NULL, platform TEXT NOT NULL,"
    " PRIMARY KEY (job, url_key, platform))"
)
"""Which platforms of keyword schemes lead to a content page."""
HISTORY = "substr(url_key, 9, 8)"
"""The part of a key that the index of `fetches` has: 32 bits of the URL's own hash. A whole key costs a third more to
write, and this one leads to one URL in nearly all cases (docs/adr/0006)."""
HISTORY_INDEX = f"CREATE INDEX fetches_of ON fetches ({HISTORY})"
"""For the fetches of one URL. PostgreSQL has the key of the table for it."""
PREVIOUS = (
    "CREATE TABLE previous (job TEXT NOT NULL, url_key TEXT NOT NULL, fetch_no INTEGER NOT NULL,"
    " changed_at TEXT NOT NULL, fetched_at TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY (job, url_key))"
)
"""The previous text of each changed page (versions.py)."""


def _kind(name: str) -> str:
    return "INTEGER" if name in INTEGERS else "BLOB" if name in BLOBS else "TEXT"


TABLES = (
    "CREATE TABLE pages ("
    + ", ".join(f"{name} {_kind(name)} NOT NULL" for name in STORED_COLUMNS)
    + ", PRIMARY KEY (job, url_key))",
    "CREATE TABLE fetches (id INTEGER PRIMARY KEY, job TEXT NOT NULL, url_key TEXT NOT NULL, fetch_no INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, status INTEGER NOT NULL,"
    " fetched_at TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, change TEXT NOT NULL,"
    " text_hash TEXT NOT NULL, old_hash TEXT NOT NULL)",
    "CREATE TABLE links (job TEXT NOT NULL, from_key TEXT NOT NULL, to_url TEXT NOT NULL, to_key TEXT NOT NULL,"
    " anchor TEXT NOT NULL)",
    "CREATE INDEX links_from ON links (job, from_key)",
    "CREATE TABLE items (job TEXT NOT NULL, url_key TEXT NOT NULL, rule TEXT NOT NULL, rule_version INTEGER NOT NULL,"
    " ordinal INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (job, url_key, rule, ordinal))",
    "CREATE TABLE sinks (name TEXT PRIMARY KEY, length INTEGER NOT NULL, last_fetch INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    *SECOND_PAGES,
    PREVIOUS,
    CHANGES,
    FINDS,
    HISTORY_INDEX,
)


def create(connection: sqlite3.Connection, created_by: str) -> None:
    """Create the tables in one transaction: a database has all of them or none."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in TABLES:
        connection.execute(statement)
    connection.executemany(
        "INSERT INTO meta VALUES (?, ?)",
        [("schema_version", str(SCHEMA_VERSION)), ("key_version", str(KEY_VERSION)), ("created_by", created_by)],
    )
    connection.execute("COMMIT")


def prepare(connection: sqlite3.Connection, path: Path, created_by: str) -> None:
    """Create the tables in an empty database. Raises `UserError` for an unusable database, `sqlite3.Error`."""
    if not holds_tables(connection, path):
        create(connection, created_by)


def holds_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """True for a database of this version, False for an empty one; raises `UserError` for others."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if number:
        # This program never sets it, so that a later one can.
        raise UserError(
            f"{path} has user_version {number}, this program needs 0: a later version wrote it; use the program that"
            " wrote it, or choose another directory with --out"
        )
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names:
        return False
    if "meta" not in names or "pages" not in names:
        raise UserError(f"{path} is a database of another program; choose another directory with --out")
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    for what, needed in (("schema_version", SCHEMA_VERSION), ("key_version", KEY_VERSION)):
        theirs = meta.get(what, "none")
        if theirs != str(needed):
            raise UserError(
                f"{path} has {what} {theirs} (written by {meta.get('created_by', 'unknown')}), this program needs"
                f" {needed}; use the program that wrote it, or choose another directory with --out"
            )
    return True


def examined(path: Path, ended: Mapping[str, int]) -> dict[str, int]:
    """Number of rows of each job of `ended` as the last commit counted them, after a check of the small tables and of
    the newest page of each table. Raises `UserError`, `sqlite3.Error`. O(tables + jobs), whatever the size.

    A kill or a power cut damages no page: each is in the write-ahead log with a checksum until it is synced. Such a log
    that is lost or damaged leaves fewer rows than URLs have ended. A file that is shorter than its pages is refused by
    SQLite. `check_whole` finds a page that changed on its disk.
    """
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
        if not holds_tables(connection, path):
            return {}
        for table in ("sinks", "meta"):
            _require_ok(connection, path, f"integrity_check({table})")
        for table in ("pages", "fetches", "links", "items", "changes"):
            connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()
        query = "SELECT name FROM sinks WHERE last_fetch > length AND name NOT GLOB 'pages-*.parquet'"
        for (name,) in connection.execute(query):
            raise UserError(damaged(path, f"the committed length of {name} is wrong"))
        names = {f"{ROWS}{job}": job for job in ended}
        counts = connection.execute("SELECT name, value FROM meta WHERE name GLOB ?", (f"{ROWS}*",))
        return {names[name]: int(number) for name, number in counts if name in names}


def check_pages(connection: sqlite3.Connection, path: Path, check_bytes: int) -> None:
    """Raise `UserError` if a page of the database is damaged; a file larger than `check_bytes` is not checked.
    O(bytes), some 400 MB/s from the page cache."""
    if path.stat().st_size <= check_bytes:
        _require_ok(connection, path, "quick_check(1)")


def check_whole(directory: Path) -> None:
    """Raise `UserError` if a page is damaged, or an index does not fit its table. O(bytes), some 60 MB/s."""
    path = directory / DATABASE
    try:
        with contextlib.closing(connect_readonly(directory)) as connection:
            _require_ok(connection, path, "integrity_check(1)")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise read_fault(error, path) from error


def recount(path: Path) -> None:
    """Count the rows of each job again, after somebody deleted some. O(rows)."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM meta WHERE name GLOB ?", (f"{ROWS}*",))
        counts = connection.execute("SELECT job, count(*) FROM pages GROUP BY job").fetchall()
        connection.executemany(ADD_ROWS, [(f"{ROWS}{job}", number) for job, number in counts])
        connection.execute("COMMIT")


def _require_ok(connection: sqlite3.Connection, path: Path, check: str) -> None:
    (verdict,) = connection.execute(f"PRAGMA {check}").fetchone()
    if verdict != "ok":
        raise UserError(damaged(path, " ".join(verdict.removeprefix("*** in database main ***").split())))


def connect_readonly(directory: Path) -> sqlite3.Connection:
    """A connection to the database of a finished or running crawl that changes no data. Raises `UserError`."""
    path = directory / DATABASE
    if not path.is_file():
        raise UserError(f"no database at {path}; is {directory} the output directory of a crawl?")
    # mode=rw first: the last connection to close removes the write-ahead log and its index, which mode=ro cannot do. If
    # neither can write the index into the directory, the file is read as immutable, provided there is no log.
    modes = ["mode=rw", "mode=ro"] + ([] if path.with_name(DATABASE + "-wal").exists() else ["immutable=1"])
    for mode in modes:
        try:
            return _connect(path, mode)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if mode == modes[-1] or isinstance(error, UnicodeDecodeError) or not cannot_open(error):
                raise read_fault(error, path) from None
    raise AssertionError("unreachable")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=30)
    try:
        if not holds_tables(connection, path):
            raise UserError(f"{path} is empty: no crawl has written to it yet")
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = {-READ_CACHE_KB}")
    except BaseException:
        connection.close()
        raise
    return connection
