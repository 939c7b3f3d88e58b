"""The ledger contract: the database whose commit makes the results of fetches durable.

    open → (durable → stage → commit → after_commit | rollback)* → close

`durable` begins a flush; `commit` or `rollback` ends it. No other writer changes these keys in between. Methods raise
`UserError` (with its subclass `StoreLost`), or `sqlite3.Error` if the database is a file. After a `StoreLost` only
`close` and `open` are allowed; then the result of an unfinished commit is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from nephila.storage.changes import ChangeRow, StoredVersion
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.rows import RowBatch

RECENT_CHANGES = 100_000
"""More than the records that all members of a system have received and not acknowledged."""
Key = tuple[str, str]
"""(job, url_key in hex)"""


class Ledger(Protocol):
    """Rows, history, links, and the committed lengths of all append-only files."""

    path: Path
    """The database file, or the directory of the files whose lengths it stores."""

    @property
    def reading(self) -> ReadConnection:
        """The database for queries of rows, within the transaction of `durable` or without one."""

    def examine(self, ended: Mapping[str, int]) -> None:
        """Before `open`, without any change: raise `UserError` if the database is damaged, or has fewer rows of a job
        than `ended` states."""

    def last_fetches(self) -> dict[str, int]:
        """Job → highest fetch number of its rows. O(rows)."""

    def open(self) -> None:
        """Open or create the database. Raises `UserError` in one line."""

    def durable(self, keys_by_job: Mapping[str, Iterable[str]]) -> dict[Key, StoredVersion]:
        """The stored version of each wanted key that has a row."""

    def copies(self, keys: Iterable[Key]) -> dict[Key, tuple[str, bytes]]:
        """Title and text of the stored copy of each key. Called between `durable` and `stage`."""

    def simhashes(self, job: str) -> Iterable[tuple[str, str]]:
        """(url_key, simhash in hex) of all pages of a job that are no near-copies, in the order of their fetches."""

    def pages_by_prefix(self, job: str, prefix: str) -> Iterable[tuple[str, str, str]]:
        """(url_key, URL, simhash in hex) of those whose url_key begins with `prefix`."""

    def recorded_changes(self, ids: Collection[str]) -> list[ChangeRow]:
        """Those of these changes that are among the last `RECENT_CHANGES`, in order. O(RECENT_CHANGES)."""

    def sinks(self) -> dict[str, int]:
        """Name → committed length in bytes of each append-only file that this writer has created."""

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """Store a file name, in a transaction of its own. Called before the file is created, so that a crash leaves no
        unknown file."""

    def stage(self, batch: RowBatch) -> None:
        """Write the rows."""

    def commit(self, lengths: Mapping[str, int]) -> None:
        """Commit rows and file lengths together."""

    def after_commit(self) -> None:
        """Maintenance after the receipts."""

    def rollback(self) -> None:
        """Undo what was staged; no effect if nothing was staged."""

    def restore(self) -> str: ...

    def close(self) -> None:
        """Close it; no effect if it is not open."""
