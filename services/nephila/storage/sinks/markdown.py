"""DIR/markdown/HOST/slug-KEY.md: one file per stored page, of its newest copy. The format: markdown_file.py.

Invariant: a file is complete or unchanged, and durable before the row of its page. A file whose row was not committed
is written again with the page. A page that is gone keeps its last file.
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
    """See `Sink`. Some five system calls and an fsync per page."""

    raw = False
    lengths: Mapping[str, int] = {}

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._directory = config.directory / FOLDER
        self._fsync = config.fsync

    def open(self) -> None:
        """See `Sink`."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if self._fsync:
            sync_directory(self._directory.parent)

    def stage(self, batch: Batch) -> None:
        """See `Sink`."""
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
        """See `Sink`."""

    def rollback(self) -> None:
        """See `Sink`. The files are written again."""

    def restore(self) -> str:
        """See `Sink`. No file stays open."""
        return ""

    def close(self) -> None:
        """See `Sink`."""
