"""Senders give data with their URLs, which the frontier cannot hold: a table of SQLite beside the commit log maps job
and URL key to the data.

Invariants: a row is committed before its URL is in the log, and deleted after the end of its URL is in the log; so a
URL in the log has its row after any kill. A row whose URL never came into the log is replaced with its URL.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nephila.kernel.runtime.errors import UserError

NAME = "requests.db"


class RequestStore:
    """Every method is O(log n)."""

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
        """Sets and commits."""
        self._database.execute("INSERT OR REPLACE INTO requests VALUES(?, ?, ?)", (job, url_key, data))

    def get(self, job: str, url_key: bytes) -> bytes | None:
        """Returns None without such a row, as after a power cut."""
        row = self._database.execute("SELECT data FROM requests WHERE job = ? AND url_key = ?", (job, url_key))
        values: tuple[bytes] | None = row.fetchone()
        return values[0] if values is not None else None

    def delete(self, job: str, url_keys: list[bytes]) -> None:
        """Deletes and commits."""
        self._database.execute("BEGIN")
        rows = ((job, key) for key in url_keys)
        self._database.executemany("DELETE FROM requests WHERE job = ? AND url_key = ?", rows)
        self._database.execute("COMMIT")

    def sync(self) -> None:
        """Makes everything committed survive a power cut."""
        self._database.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def close(self) -> None:
        self._database.close()
