"""A read-only connection to the rows in nephila.db or PostgreSQL, and the order in which tables are read.

Queries use `:name` for values and are valid for SQLite and PostgreSQL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.extensions import extension
from nephila.storage.faults import read_fault
from nephila.storage.ledgers.schema import DATABASE, check_pages, connect_readonly
from nephila.storage.source import Source, addresses, display_name, each, require_driver

CHECK_BYTES: Final = 1_000_000_000
"""Maximum size of a nephila.db that is checked before an export (some seconds for 1 GB)."""
_VALUE = re.compile(r"(?<!:):(\w+)")


def only_jobs(column: str, jobs: Collection[str] | None) -> tuple[str, dict[str, str]]:
    """A condition that a row is of one of these jobs, beginning with AND, and its values; empty for None."""
    if jobs is None:
        return "", {}
    values = {f"job{number}": job for number, job in enumerate(jobs)}
    return f" AND {column} IN ({', '.join(f':{name}' for name in values) or 'NULL'})", values


class NoTables(UserError):
    """A database on a server that no crawl has written to."""


class Cursor(Protocol):
    """Rows of an answer."""

    @property
    def description(self) -> Sequence[Any] | None:
        """One tuple per column, which begins with the name."""

    def fetchone(self) -> Any:
        """The next row or None."""

    def fetchall(self) -> list[Any]:
        """All remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the rows."""


class Walk(NamedTuple):
    """How a table is read in chunks: each chunk begins after the last key."""

    columns: tuple[str, ...]
    start: tuple[Any, ...]


class ReadConnection:
    """Read access to nephila.db; rows come in the order in which they were first stored."""

    walk = Walk(("rowid",), (-1,))

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        """The result of a query; each query is a transaction of its own."""
        cursor: Cursor = self._connection.execute(query, values)
        return cursor


class PostgresReadConnection(ReadConnection):
    """Read access to a database on a server; rows come in the order of job and key, which is the order of the index."""

    walk = Walk(("job", "url_key"), ("", ""))

    def execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        return super().execute(_VALUE.sub(r"%(\1)s", query.replace("%", "%%")), values)


@contextmanager
def open_for_reading(source: Source, *, check: bool = False) -> Iterator[ReadConnection]:
    """A connection for the duration of the block. `check`: the pages of a nephila.db up to CHECK_BYTES are checked
    first, since a damaged page may hide rows. Raises `UserError` in one line: no database, a damaged or foreign one,
    another version."""
    with _postgres(source) if isinstance(source, str) else _sqlite(source, check=check) as connection:
        yield connection


@contextmanager
def open_each(source: Source, *, check: bool = False) -> Iterator[list[ReadConnection]]:
    """A connection to each of the places that the rows are at, in the order of `shard_of`. See `open_for_reading`."""
    with ExitStack() as stack:
        yield [stack.enter_context(open_for_reading(part, check=check)) for part in each(source)]


@contextmanager
def _sqlite(directory: Path, *, check: bool) -> Iterator[ReadConnection]:
    connection = connect_readonly(directory)
    try:
        if check:
            check_pages(connection, directory / DATABASE, CHECK_BYTES)
        yield ReadConnection(connection)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise read_fault(error, directory / DATABASE) from error
    finally:
        connection.close()


@contextmanager
def _postgres(url: str) -> Iterator[ReadConnection]:
    if len(addresses(url)) > 1:
        raise UserError(f"the rows are on several servers; name one of them: {display_name(url)}")
    require_driver()
    with extension("postgres-reading")(url) as connection:
        yield PostgresReadConnection(connection)
