"""The ledger contract: the database whose commit is what makes a fetch have happened.

    open → (durable → stage → commit → after_commit | rollback)* → close

`durable` begins a flush and `commit` or `rollback` ends it: between the two nobody else writes these keys. Methods
raise `UserError`, `StoreLost` among them, or `sqlite3.Error` where the database is a file; after a `StoreLost` only
`close` and `open` may be called, and what a commit under way has come to is known after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from nephila.storage.changes import StoredVersion
from nephila.storage.rows import Batch

Key = tuple[str, str]
"""(job, url_key in hex)"""


class Ledger(Protocol):
    """Rows, history, links, and the committed lengths of all append-only files."""

    path: Path
    """The file, or the directory of the files it keeps the lengths of."""

    def examine(self, ended: Mapping[str, int]) -> None:
        """Before `open`, changing nothing: raise `UserError` when the database is damaged, or when it has fewer rows
        of a job than URLs of it have ended."""

    def last_fetches(self) -> dict[str, int]:
        """Job → highest fetch number of its rows. Reads all rows."""

    def open(self) -> None:
        """Open or make the database. Raises `UserError` in one line for every reason not to."""

    def durable(self, wanted: Mapping[str, Iterable[str]]) -> dict[Key, StoredVersion]:
        """Of the keys of each job what stands of those that have a row."""

    def copy_hash(self, job: str, key: str) -> bytes:
        """The mark of a copy that was stored without one."""

    def sinks(self) -> dict[str, int]:
        """Name → committed length in bytes of every append-only file ever begun by this writer."""

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """Say that a file is ours, in a transaction of its own: before it is made, so that a crash leaves no orphan."""

    def stage(self, batch: Batch) -> None:
        """Write the rows."""

    def commit(self, lengths: Mapping[str, int]) -> None:
        """Commit rows and file lengths together."""

    def after_commit(self) -> None:
        """Upkeep behind the receipts."""

    def rollback(self) -> None:
        """Undo what was staged; harmless when nothing was begun."""

    def restore(self) -> str:
        """See `Backend.restore`."""

    def close(self) -> None:
        """Close it; harmless when it is not open."""
