"""Small tables of this program: in DIR/webhooks.db, or beside the rows in the database on a server.

Every use is one transaction; after an error the next one opens another connection. A power cut may lose the last
transactions of webhooks.db. Queries are valid for SQLite and PostgreSQL. Raises `UserError` in one line.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from nephila.storage.faults import sqlite_fault
from nephila.storage.source import Source, addresses, require_driver

FILE: Final = "webhooks.db"
_VALUE: Final = re.compile(r"(?<!:):(\w+)")


class Database:
    """The tables and their connection."""

    def __init__(self, source: Source, tables: Sequence[str]) -> None:
        """`tables`: statements that create what is missing. Of several servers the first one has the tables."""
        self.source = source if isinstance(source, Path) else addresses(source)[0]
        self._tables = tables
        self._lock = threading.Lock()
        self._connection: Any = None

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        with self._lock:
            self._drop()

    @contextmanager
    def open(self) -> Iterator[Any]:
        """A function that executes statements, in one transaction."""
        transaction = self._postgres(self.source) if isinstance(self.source, str) else self._sqlite(self.source)
        with self._lock:
            try:
                with transaction as execute:
                    yield execute
            except BaseException:
                self._drop()
                raise

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _sqlite(self, directory: Path) -> Iterator[Any]:
        path = directory / FILE
        try:
            if self._connection is None:
                with suppress(OSError):  # `connect` says why
                    path.touch(mode=0o600)  # headers of webhooks may be secret
                self._connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                for statement in self._tables:
                    self._connection.execute(statement)
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection.execute
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise sqlite_fault(error, path) from error

    @contextmanager
    def _postgres(self, url: str) -> Iterator[Any]:
        require_driver()
        from nephila_stores.postgres.link import connect, translate_errors

        def execute(query: str, values: Mapping[str, Any]) -> Any:
            return self._connection.execute(_VALUE.sub(r"%(\1)s", query), values)

        if self._connection is None:
            self._connection = connect(url)
            with translate_errors(url):
                for statement in self._tables:
                    self._connection.execute(statement)
        with translate_errors(url), self._connection.transaction():
            yield execute
