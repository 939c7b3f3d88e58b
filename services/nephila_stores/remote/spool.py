"""DIR/<kind>-<id>-00000.spool …: committed data that waits for delivery to another system.

A sink appends to the last segment; the lengths are committed with the rows. A sealed segment does not change. When it
is delivered, the ledger stores length 0 for it and the file is removed. Invariant: after a crash each segment is
present with exactly its committed bytes, so a repeated delivery has the same content and the same names. The id is
drawn once per spool: deliveries of two crawls never have the same names.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from pathlib import Path

from nephila.storage.append_file import AppendFile, check_length
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger


class Spool:
    """The segments of one sink."""

    def __init__(self, config: StorageConfig, ledger: Ledger, kind: str) -> None:
        self.sealed: list[Path] = []
        """Segments that are complete and not delivered, oldest first."""
        self._directory = config.directory
        self._fsync = config.fsync
        self._ledger = ledger
        self._kind = kind
        self._name = re.compile(rf"{kind}-([0-9a-f]{{8}})-([0-9]{{5,}})\.spool")
        self._id = ""
        self._number = 0
        self._file: AppendFile | None = None
        self._staged = False

    @property
    def name(self) -> str:
        """The part of its files' names that is its own."""
        return f"{self._kind}-{self._id}"

    @property
    def is_open(self) -> bool:
        """Whether it is open."""
        return self._file is not None

    @property
    def is_settled(self) -> bool:
        """Whether everything in it is committed."""
        return not self._staged

    @property
    def file(self) -> AppendFile:
        """The segment that is written to."""
        if self._file is None:
            raise RuntimeError(f"no segment of {self._kind} is open")
        return self._file

    @property
    def lengths(self) -> Mapping[str, int]:
        return {self.file.path.name: self.file.length}

    def open(self) -> None:
        """Restore the committed segments; delivered ones are removed. Raises `UserError`, `OSError`."""
        self._staged = False
        lengths = {int(match[2]): length for match, length in self._known()}
        self.sealed = []
        if not lengths:
            self._id = uuid.uuid4().hex[:8]
            self._begin(0)
            return
        last = max(lengths)
        for number in sorted(lengths.keys() - {last}):
            path = self._path(number)
            if lengths[number]:
                check_length(path, path.stat().st_size if path.exists() else -1, lengths[number])
                self.sealed.append(path)
            else:
                path.unlink(missing_ok=True)
        self._number = last
        self._file = AppendFile(self._path(last), lengths[last], self._fsync)

    def append(self, data: bytes | bytearray) -> None:
        """Write all of it and make it durable. Raises `OSError`."""
        self._staged = True
        self.file.append(data)

    def after_commit(self) -> None:
        self.file.after_commit()
        self._staged = False

    def rollback(self) -> None:
        self.file.rollback()
        self._staged = False

    def seal(self) -> None:
        """Begin the next segment; everything is committed. No effect on an empty one."""
        if self.file.length:
            old = self.file
            self._begin(self._number + 1)
            old.close()
            self.sealed.append(old.path)

    def delivered(self, path: Path) -> None:
        """Remove a sealed segment that was delivered."""
        self._ledger.register(path.name)
        path.unlink(missing_ok=True)
        self.sealed.remove(path)

    def close(self) -> None:
        """Close the segment that is written to."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _known(self) -> list[tuple[re.Match[str], int]]:
        matches = [(self._name.fullmatch(name), length) for name, length in self._ledger.sinks().items()]
        segments = [(match, length) for match, length in matches if match is not None]
        if segments:
            self._id = segments[0][0][1]
        return segments

    def _begin(self, number: int) -> None:
        # The ledger has the name before the file exists.
        path = self._path(number)
        self._ledger.register(path.name)
        self._file = AppendFile(path, 0, self._fsync)
        self._number = number

    def _path(self, number: int) -> Path:
        return self._directory / f"{self.name}-{number:05d}.spool"
