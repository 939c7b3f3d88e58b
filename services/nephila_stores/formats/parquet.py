"""DIR/pages-00000.parquet …: the rows for analysis, read from what the database has committed.

A file covers the fetches committed since the previous file; the ledger stores the last one. A file is written under a
temporary name, synced, renamed and then registered. So a crash costs one file at most, and the next close writes it
again. A refetched URL is in a later file again: the row with the highest fetch_no is valid.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nephila.kernel.process.disk import sync_directory
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.append_file import refuse_unknown_file
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.rows import COLUMNS, RowBatch

from nephila_stores.formats.parquet_file import ParquetFile

_ROWS = f"""
SELECT {", ".join("pages." + name for name in COLUMNS)} FROM fetches CROSS JOIN pages
ON pages.job = fetches.job AND pages.url_key = fetches.url_key AND pages.fetch_no = fetches.fetch_no
WHERE fetches.id > ? AND fetches.id <= ? ORDER BY fetches.id
"""  # CROSS JOIN makes the history the outer loop: its order is the order in which the rows were appended


class Parquet:
    raw = False
    lengths: Mapping[str, int] = {}

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        if not isinstance(ledger, Sqlite):
            # A shared database also has rows of other writers, in an order other than that of their commits.
            raise UsageError("parquet files are written beside nephila.db only; use nephila export --format parquet")
        self._directory = config.directory
        self._rows_per_file = config.parquet_rows
        self._ledger = ledger
        self._pending = 0
        self._number = -1
        self._covered = 0

    def open(self) -> None:
        """The sink counts the rows that are in no file yet; they come with the next file."""
        query = "SELECT name, last_fetch FROM sinks WHERE name GLOB 'pages-*.parquet' ORDER BY name"
        for name, last_fetch in self._ledger.connection.execute(query):
            self._number = int(name.removeprefix("pages-").removesuffix(".parquet"))
            self._covered = last_fetch
        if self._number < 0:
            refuse_unknown_file(self._path(0))
        self._pending = self._last_fetch() - self._covered

    def stage(self, batch: RowBatch) -> None:
        """Nothing to do: the rows are first durable in the database."""
        self._pending += len(batch.rows) + len(batch.not_modified) + len(batch.copy_kept)

    def after_commit(self) -> None:
        """Write a file when there are enough rows. Raises `OSError`."""
        if self._pending >= self._rows_per_file:
            self._write()

    def rollback(self) -> None:
        self._pending = max(0, self._last_fetch() - self._covered)

    def restore(self) -> str:
        """No file is open between two flushes."""
        return ""

    def close(self) -> None:
        """Write the rows that are in no file yet. Raises `OSError`."""
        if self._pending:
            self._write()

    def _write(self) -> None:
        last = self._last_fetch()
        path = self._path(self._number + 1)
        part = path.with_name(path.name + ".part")
        try:
            with ParquetFile(part) as file:
                file.extend(self._ledger.connection.execute(_ROWS, (self._covered, last)))
            length = part.stat().st_size
            os.replace(part, path)
            sync_directory(self._directory)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        self._ledger.register(path.name, length, last)
        self._number += 1
        self._covered = last
        self._pending = 0

    def _last_fetch(self) -> int:
        (last,) = self._ledger.connection.execute("SELECT max(id) FROM fetches").fetchone()
        return int(last or 0)

    def _path(self, number: int) -> Path:
        return self._directory / f"pages-{number:05d}.parquet"
