"""An append-only file of lines in the output directory; its committed length is in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nephila.storage.append_file import AppendFile, refuse_unknown_file
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import RowBatch


class LineFile:
    """Base class of sinks that write one file of lines; they define `lines`. See `Sink`."""

    raw = False

    def __init__(self, config: StorageConfig, ledger: Ledger, name: str) -> None:
        self._name = name
        self._path: Path = config.directory / name
        self._fsync = config.fsync
        self._ledger = ledger
        self._file: AppendFile | None = None

    def lines(self, batch: RowBatch) -> bytearray:
        """The lines of a batch."""
        raise NotImplementedError

    def open(self) -> None:
        committed = self._ledger.sinks().get(self._name)
        if committed is None:
            refuse_unknown_file(self._path)
            self._ledger.register(self._name)
        self._file = AppendFile(self._path, committed or 0, self._fsync)

    @property
    def lengths(self) -> Mapping[str, int]:
        return {self._name: self._open_file.length}

    def stage(self, batch: RowBatch) -> None:
        if buffer := self.lines(batch):
            self._open_file.append(buffer)

    def after_commit(self) -> None:
        self._open_file.after_commit()

    def rollback(self) -> None:
        self._open_file.rollback()

    def restore(self) -> str:
        return self._open_file.restore()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def _open_file(self) -> AppendFile:
        if self._file is None:
            raise RuntimeError(f"{self._path} is not open")
        return self._file
