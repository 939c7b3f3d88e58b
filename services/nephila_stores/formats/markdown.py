"""DIR/markdown/HOST/slug-KEY.md: one file per stored page, of its newest copy. The format: markdown_file.py.

Invariant: a file is complete or unchanged, and durable before the row of its page. The files of a flush are listed in
STAGED until its rows are committed. After a crash the next start removes those of pages without a stored copy: such a
page may end without a file now, as a near-copy does. Others are written again with the page. A page that is gone keeps
its last file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec
from nephila.kernel.member_names import is_member_name
from nephila.kernel.process.disk import sync_directory
from nephila.kernel.runtime.errors import UNREADABLE
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import JOB, SHA256, URL_KEY, RowBatch

from nephila_stores.formats.markdown_file import FOLDER, document, path_of, row_markdown

STAGED: Final = ".staged"
"""(job, url_key, file) of the files of a flush that is not committed, as JSON."""
PART: Final = ".part"
_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(list[tuple[str, str, str]]).decode


class Markdown:
    """The sink costs some five system calls and an fsync per page."""

    raw = False
    lengths: Mapping[str, int] = {}

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._directory = config.directory / FOLDER
        self._staged = self._directory / STAGED
        self._ledger = ledger
        self._fsync = config.fsync

    def open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        if self._fsync:
            sync_directory(self._directory.parent)
        self._remove_uncommitted()

    def stage(self, batch: RowBatch) -> None:
        pages = [(row, path_of(row)) for row in batch.rows if row[SHA256]]
        if not pages:
            return
        with self._staged.open("wb") as journal:
            journal.write(_encode([(row[JOB], row[URL_KEY], str(name)) for row, name in pages]))
            if self._fsync:
                journal.flush()
                os.fsync(journal.fileno())
        if self._fsync:
            sync_directory(self._directory)
        folders = set()
        for row, name in pages:
            path = self._directory / name
            if path.parent not in folders:
                path.parent.mkdir(exist_ok=True)
                folders.add(path.parent)
            part = path.with_suffix(PART)
            with part.open("wb") as file:
                file.write(document(row, row_markdown(row)))
                if self._fsync:
                    file.flush()
                    os.fsync(file.fileno())
            part.replace(path)
        if self._fsync and folders:
            for folder in (self._directory, *folders):
                sync_directory(folder)

    def after_commit(self) -> None:
        self._staged.unlink(missing_ok=True)

    def rollback(self) -> None:
        """The next start removes the files, or they are written again."""

    def restore(self) -> str:
        """No file stays open."""
        return ""

    def close(self) -> None:
        pass

    def _remove_uncommitted(self) -> None:
        """Remove the files of a flush that was not committed and whose pages have no stored copy."""
        try:
            staged = _read(self._staged.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, *UNREADABLE):
            staged = []  # cut by the crash: no file of this flush was written
        keys: dict[str, list[str]] = {}
        for job, key, _ in staged:
            keys.setdefault(job, []).append(key)
        stored = self._ledger.durable(keys)
        self._ledger.rollback()
        for job, key, name in staged:
            if not is_member_name(name):  # the journal may come from somebody else, and these files are deleted
                continue
            path = self._directory / name
            if not ((version := stored.get((job, key))) and version.copy):
                path.unlink(missing_ok=True)
            path.with_suffix(PART).unlink(missing_ok=True)
        self._staged.unlink()
