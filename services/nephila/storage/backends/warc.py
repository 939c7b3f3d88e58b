"""DIR/nephila-00000.warc.gz …: requests and responses as they were on the wire (WARC 1.1, one gzip member a record).

Rows without a page leave nothing here. A file that has reached `warc_bytes` is closed and the next begun; each begins
with a warcinfo record. The committed length of every file stands in the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from nephila.storage.backends.files import AppendFile, check_length, refuse_foreign
from nephila.storage.backends.warc_records import gzip_member, page_records, warc_date, warcinfo
from nephila.storage.config import StorageConfig
from nephila.storage.ledger import Ledger
from nephila.storage.rows import Batch

log = logging.getLogger(__name__)

_PREFIX, _SUFFIX = "nephila-", ".warc.gz"


class Warc:
    """See `Backend`."""

    raw = True

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._config = config
        self._ledger = ledger
        self._number = 0
        self._file: AppendFile | None = None

    def open(self) -> None:
        """See `Backend`; finished files are looked at as well, as a lost one should be known early."""
        known = {name: length for name, length in self._ledger.sinks().items() if name.endswith(_SUFFIX)}
        last = max(known, default=None)
        for name, length in known.items():
            if name != last:
                path = self._path(name)
                check_length(path, path.stat().st_size if path.exists() else -1, length)
        if last is None:
            self._begin(0)
        else:
            self._number = int(last.removeprefix(_PREFIX).removesuffix(_SUFFIX))
            self._file = AppendFile(self._path(last), known[last], self._config.fsync)

    @property
    def lengths(self) -> Mapping[str, int]:
        """See `Backend`."""
        file = self._open_file
        return {file.path.name: file.length}

    def stage(self, batch: Batch) -> None:
        """See `Backend`."""
        if not batch.pages:
            return
        if self._open_file.length >= self._config.warc_bytes:
            self._open_file.close()
            self._begin(self._number + 1)
        buffer = bytearray()
        if self._open_file.length == 0:
            buffer += gzip_member(warcinfo(self._open_file.path.name, warc_date(batch.pages[0])))
        for page in batch.pages:
            for record in page_records(page):
                buffer += gzip_member(record)
        self._open_file.append(buffer)

    def committed(self) -> None:
        """See `Backend`."""
        self._open_file.committed()

    def rollback(self) -> None:
        """See `Backend`."""
        self._open_file.rollback()

    def close(self) -> None:
        """See `Backend`."""
        if self._file is not None:
            self._file.close()

    def _begin(self, number: int) -> None:
        # Known to the ledger before it exists: whatever a crash leaves in it is recognised as ours and cut.
        name = f"{_PREFIX}{number:05d}{_SUFFIX}"
        refuse_foreign(self._path(name))
        self._ledger.register(name)
        self._number = number
        self._file = AppendFile(self._path(name), 0, self._config.fsync)

    def _path(self, name: str) -> Path:
        return self._config.directory / name

    @property
    def _open_file(self) -> AppendFile:
        if self._file is None:
            raise RuntimeError("no WARC file is open")
        return self._file
