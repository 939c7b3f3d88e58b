"""The tables of nephila.db and who may open them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nephila.kernel.errors import UserError
from nephila.native import KEY_VERSION
from nephila.storage.faults import sqlite_fault, unopened
from nephila.storage.rows import COLUMNS

DATABASE = "nephila.db"
SCHEMA_VERSION = 1


INTEGERS = {"status", "depth", "bytes", "fetch_no", "rule_version"}
"""Columns of `pages` that hold numbers; all others are text."""

# A rowid table: rows of 10 KB are appended one after the other, and only the small key index is written at random
# (docs/adr/0006). `fetches` has no index at all: what is written is new by construction.
TABLES = (
    "CREATE TABLE pages ("
    + ", ".join(f"{name} {'INTEGER' if name in INTEGERS else 'TEXT'} NOT NULL" for name in COLUMNS)
    + ", PRIMARY KEY (job, url_key))",
    "CREATE TABLE fetches (id INTEGER PRIMARY KEY, job TEXT NOT NULL, url_key TEXT NOT NULL, fetch_no INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, status INTEGER NOT NULL,"
    " fetched_at TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL)",
    "CREATE TABLE links (job TEXT NOT NULL, from_key TEXT NOT NULL, to_url TEXT NOT NULL, to_key TEXT NOT NULL,"
    " anchor TEXT NOT NULL)",
    "CREATE INDEX links_from ON links (job, from_key)",
    "CREATE TABLE items (job TEXT NOT NULL, url_key TEXT NOT NULL, rule TEXT NOT NULL, rule_version INTEGER NOT NULL,"
    " ordinal INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (job, url_key, rule, ordinal))",
    "CREATE TABLE sinks (name TEXT PRIMARY KEY, length INTEGER NOT NULL, last_fetch INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)


def create(connection: sqlite3.Connection, created_by: str) -> None:
    """Make the tables in one transaction: a database has all of them or none."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in TABLES:
        connection.execute(statement)
    connection.executemany(
        "INSERT INTO meta VALUES (?, ?)",
        [("schema_version", str(SCHEMA_VERSION)), ("key_version", str(KEY_VERSION)), ("created_by", created_by)],
    )
    connection.execute("COMMIT")


def check(connection: sqlite3.Connection, path: Path) -> bool:
    """True when the tables are there, False for an empty database; `UserError` for anything that is not ours."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names:
        return False
    if "meta" not in names or "pages" not in names:
        raise UserError(f"{path} is a database of another program; choose another directory with --out")
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    for what, ours in (("schema_version", SCHEMA_VERSION), ("key_version", KEY_VERSION)):
        theirs = meta.get(what, "none")
        if theirs != str(ours):
            raise UserError(
                f"{path} has {what} {theirs} (written by {meta.get('created_by', 'unknown')}), this program needs"
                f" {ours}; use the program that wrote it, or choose another directory with --out"
            )
    return True


def connect_readonly(directory: Path) -> sqlite3.Connection:
    """A connection that changes no data, to the database of a finished or running crawl. Raises `UserError`."""
    path = directory / DATABASE
    if not path.is_file():
        raise UserError(f"no database at {path}; is {directory} the output directory of a crawl?")
    # mode=rw first: the last connection to leave tidies the write-ahead log and its index away, which one in mode=ro
    # may not. Where neither can keep its index in the directory, the file is read as it is, if there is no log.
    modes = ["mode=rw", "mode=ro"] + ([] if path.with_name(DATABASE + "-wal").exists() else ["immutable=1"])
    for mode in modes:
        try:
            return _connect(path, mode)
        except sqlite3.Error as error:
            if mode == modes[-1] or not unopened(error):
                raise UserError(str(sqlite_fault(error, path)).replace("cannot write", "cannot read")) from None
    raise AssertionError("unreachable")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=30)
    try:
        connection.execute("PRAGMA query_only = ON")
        if not check(connection, path):
            raise UserError(f"{path} is empty: no crawl has written to it yet")
    except BaseException:
        connection.close()
        raise
    return connection
