"""A connection that only reads, to wherever the rows are, and in which order it walks through them.

Queries are written with `:name` for values and understood by SQLite and PostgreSQL alike.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from nephila.kernel.runtime.errors import UserError
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledgers.schema import DATABASE, connect_readonly
from nephila.storage.source import Source, display_name, require_driver

_VALUE = re.compile(r"(?<!:):(\w+)")

_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
_PG_TABLE = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = :name"


class NoTables(UserError):
    """A database on a server that no crawl has written to."""


class Cursor(Protocol):
    """Rows of an answer."""

    @property
    def description(self) -> Sequence[Any] | None:
        """A tuple per column; its name comes first."""

    def fetchone(self) -> Any:
        """The next row or None."""

    def fetchall(self) -> list[Any]:
        """All that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Row by row."""


class Walk(NamedTuple):
    """How a table is read a few rows at a time: each time those behind the last key."""

    columns: tuple[str, ...]
    start: tuple[Any, ...]


class ReadConnection:
    """Read access to nephila.db; rows come in the order in which they were first stored."""

    walk = Walk(("rowid",), (-1,))

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        """The answer to a query; each is a transaction of its own."""
        cursor: Cursor = self._connection.execute(query, values)
        return cursor

    def has_table(self, name: str) -> bool:
        """Whether a table is there that earlier programs did not make."""
        return self.execute(_TABLE, {"name": name}).fetchone() is not None


class PostgresReadConnection(ReadConnection):
    """Read access to a database on a server; rows come in the order of job and key, which its index has."""

    walk = Walk(("job", "url_key"), ("", ""))

    def execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        """See `Reading.execute`."""
        return super().execute(_VALUE.sub(r"%(\1)s", query.replace("%", "%%")), values)

    def has_table(self, name: str) -> bool:
        """See `Reading.has_table`."""
        return self.execute(_PG_TABLE, {"name": name}).fetchone() is not None


@contextmanager
def open_for_reading(source: Source) -> Iterator[ReadConnection]:
    """Access that ends with the block. Raises `UserError` in one line: nothing there, not ours, another version."""
    with _postgres(source) if isinstance(source, str) else _sqlite(source) as found:
        yield found


@contextmanager
def _sqlite(directory: Path) -> Iterator[ReadConnection]:
    connection = connect_readonly(directory)
    try:
        yield ReadConnection(connection)
    except sqlite3.Error as error:
        raise sqlite_fault(error, directory / DATABASE) from error
    finally:
        connection.close()


@contextmanager
def _postgres(url: str) -> Iterator[ReadConnection]:
    require_driver()
    from nephila.storage.ledgers.postgres_link import connect, translate_errors
    from nephila.storage.ledgers.postgres_schema import version

    connection = connect(url, readonly=True)
    try:
        with translate_errors(url):
            if not version(connection, url):
                raise NoTables(f"{display_name(url)} has no tables of nephila: no crawl has written to it yet")
            yield PostgresReadConnection(connection)
    finally:
        connection.close()
