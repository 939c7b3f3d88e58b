"""What senders gave with their URLs, by job and URL key: a table of SQLite beside the commit log.

Invariants: a row is committed before its URL is in the log, and deleted after the end of its URL is in the log; so a
URL in the log has its row after any kill. A row whose URL never came into the log is replaced with its URL.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nephila.kernel.runtime.errors import UserError

NAME = "requests.db"


class RequestStore:
    """The table. Every method is O(log n)."""

    def __init__(self, directory: Path) -> None:
        try:
            self._database = sqlite3.connect(directory / NAME, isolation_level=None)
            self._database.executescript(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                "CREATE TABLE IF NOT EXISTS requests(job TEXT, url_key BLOB, data BLOB, PRIMARY KEY(job, url_key))"
                " WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise UserError(f"cannot open {directory / NAME}: {error}") from None

    def put(self, job: str, url_key: bytes, data: bytes) -> None:
        """Set and commit."""
        self._database.execute("INSERT OR REPLACE INTO requests VALUES(?, ?, ?)", (job, url_key, data))

    def get(self, job: str, url_key: bytes) -> bytes | None:
        """None when there is no such row, as after a power cut."""
        row = self._database.execute("SELECT data FROM requests WHERE job = ? AND url_key = ?", (job, url_key))
        found: tuple[bytes] | None = row.fetchone()
        return found[0] if found is not None else None

    def delete(self, job: str, url_keys: list[bytes]) -> None:
        """Delete and commit."""
        self._database.execute("BEGIN")
        rows = ((job, key) for key in url_keys)
        self._database.executemany("DELETE FROM requests WHERE job = ? AND url_key = ?", rows)
        self._database.execute("COMMIT")

    def sync(self) -> None:
        """Everything committed survives a power cut."""
        self._database.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def close(self) -> None:
        """Close the file."""
        self._database.close()
