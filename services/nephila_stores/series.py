"""A series of numbered append-only files; the last one is written to. For sinks that store pages.

Invariant: the ledger stores the committed length of every file, and the name of a file before it is created. A file
that has reached its size is closed and the next one begins.
"""

from __future__ import annotations

from collections.abc import Mapping

from nephila.storage.append_file import AppendFile, check_length, refuse_unknown_file
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger


class FileSeries:
    """`<prefix>00000<suffix>` and so on, in the directory of the configuration; `stem` precedes the number in the names
    of new files."""

    def __init__(
        self, config: StorageConfig, ledger: Ledger, prefix: str, suffix: str, size_bytes: int, stem: str = ""
    ) -> None:
        self.total_bytes = 0
        """Total size of the series."""
        self._config = config
        self._ledger = ledger
        self._prefix, self._suffix, self._stem = prefix, suffix, stem
        self._size_bytes = size_bytes
        self._number = 0
        self._file: AppendFile | None = None

    def open(self) -> None:
        """Finished files are checked too, so that a lost one is noticed early."""
        sinks = self._ledger.sinks().items()
        lengths = {name: length for name, length in sinks if self._is_own(name)}
        last = max(lengths, default=None, key=self._number_of)
        for name, length in lengths.items():
            if name != last:
                path = self._config.directory / name
                check_length(path, path.stat().st_size if path.exists() else -1, length)
        self.total_bytes = sum(lengths.values())
        if last is None:
            self._open_file(0)
        else:
            self._number = self._number_of(last)
            self._file = AppendFile(self._config.directory / last, lengths[last], self._config.fsync)

    def committed_files(self) -> dict[str, int]:
        """Name → committed length of each file, in order."""
        lengths = [(name, length) for name, length in self._ledger.sinks().items() if self._is_own(name)]
        return dict(sorted(lengths, key=lambda entry: self._number_of(entry[0])))

    @property
    def name(self) -> str:
        """Name of the file that is written to."""
        return self.file.path.name

    @property
    def length(self) -> int:
        """Bytes of the file that is written to."""
        return self.file.length

    @property
    def lengths(self) -> Mapping[str, int]:
        return {self.name: self.length}

    def rotate(self) -> None:
        """Begin the next file if this one has reached its size; called before a batch is written."""
        if self.length >= self._size_bytes:
            self.file.close()
            self._open_file(self._number + 1)

    def append(self, data: bytes | bytearray) -> None:
        """Write all of it and make it durable. Raises `OSError`."""
        self.file.append(data)
        self.total_bytes += len(data)

    def after_commit(self) -> None:
        self.file.after_commit()

    def rollback(self) -> None:
        before = self.length
        self.file.rollback()
        self.total_bytes -= before - self.length

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _number_of(self, name: str) -> int:
        return int(self._serial_of(name))

    def _serial_of(self, name: str) -> str:
        return name.removeprefix(self._prefix).removesuffix(self._suffix).rpartition("-")[2]

    def _is_own(self, name: str) -> bool:
        return name.startswith(self._prefix) and name.endswith(self._suffix) and self._serial_of(name).isdecimal()

    def _open_file(self, number: int) -> None:
        # The ledger has the name before the file exists: after a crash its content is recognised as own and cut.
        name = f"{self._prefix}{self._stem}{number:05d}{self._suffix}"
        path = self._config.directory / name
        refuse_unknown_file(path)
        self._ledger.register(name)
        self._number = number
        self._file = AppendFile(path, 0, self._config.fsync)

    @property
    def file(self) -> AppendFile:
        if self._file is None:
            raise RuntimeError(f"no file {self._prefix}*{self._suffix} is open")
        return self._file


class SeriesBackend:
    """Base class of sinks that store pages in such files; they write in `stage`. See `Sink`."""

    raw = True

    def __init__(self, files: FileSeries) -> None:
        self._files = files

    def open(self) -> None:
        self._files.open()

    @property
    def lengths(self) -> Mapping[str, int]:
        return self._files.lengths

    def after_commit(self) -> None:
        self._files.after_commit()

    def rollback(self) -> None:
        self._files.rollback()

    def restore(self) -> str:
        """The sink restores the file that it writes to."""
        return self._files.file.restore()

    def close(self) -> None:
        self._files.close()
