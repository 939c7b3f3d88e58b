"""DIR/markdown/HOST/slug-KEY.md: a file per stored page, of its newest copy; what is in it: `storage.markdown`.

Invariant: a file is whole or as it was, and durable before the row of its page is. One whose row was not committed in
the end is written again with the page. What is gone keeps its last file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from nephila.storage.append_file import sync_directory
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import JOB, SHA256, URL_KEY, Batch
from nephila.storage.sinks.markdown_file import FOLDER, document, path_of


class Markdown:
    """See `Backend`. A system call or five per page, and a sync."""

    raw = False
    lengths: Mapping[str, int] = {}

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._directory = config.directory / FOLDER
        self._fsync = config.fsync

    def open(self) -> None:
        """See `Backend`."""
        self._directory.mkdir(parents=True, exist_ok=True)

    def stage(self, batch: Batch) -> None:
        """See `Backend`."""
        folders = set()
        for row in batch.rows:
            if not row[SHA256]:
                continue
            path = self._directory / path_of(row)
            if path.parent not in folders:
                path.parent.mkdir(exist_ok=True)
                folders.add(path.parent)
            text = batch.markdown.get((row[JOB], row[URL_KEY]), b"").decode("utf-8", "replace")
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                file.write(document(row, text))
                if self._fsync:
                    file.flush()
                    os.fsync(file.fileno())
            part.replace(path)
        if self._fsync and folders:
            for folder in (self._directory, *folders):
                sync_directory(folder)

    def after_commit(self) -> None:
        """See `Backend`."""

    def rollback(self) -> None:
        """See `Backend`; files are written again."""

    def restore(self) -> str:
        """See `Backend`; no file is kept open."""
        return ""

    def close(self) -> None:
        """See `Backend`."""
