"""An append-only file whose committed length stands in the ledger; on open it is cut to exactly that length.

A longer file ends in what a crash left: it is cut. A shorter one has lost committed bytes, and a file that the ledger
does not know belongs to somebody else: both are refused and left as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

from nephila.kernel.errors import UserError


class AppendFile:
    """One open append-only file."""

    def __init__(self, path: Path, committed: int, fsync: bool) -> None:
        """Open it at its `committed` length in bytes, which the ledger already knows."""
        self.path = path
        self.length = self._committed = committed
        self._fsync = fsync
        size = path.stat().st_size if path.exists() else -1
        check_length(path, size, committed)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        if size < 0 and fsync:
            sync_directory(path.parent)
        elif size > committed:
            os.ftruncate(self._fd, committed)

    def append(self, data: bytes | bytearray) -> None:
        """Write all of it and make it durable. Raises `OSError`, which names the file."""
        try:
            view = memoryview(data)
            while view:
                written = os.write(self._fd, view)
                self.length += written
                view = view[written:]
            if self._fsync:
                os.fsync(self._fd)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def committed(self) -> None:
        """The ledger has committed the present length."""
        self._committed = self.length

    def rollback(self) -> None:
        """Cut the file back to what the ledger has committed."""
        os.ftruncate(self._fd, self._committed)
        self.length = self._committed

    def close(self) -> None:
        """Close the file; harmless when called again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def check_length(path: Path, size: int, committed: int) -> None:
    """Raise `UserError` when the file of `size` bytes (-1: none) cannot hold the `committed` ones."""
    if size < committed and not (size < 0 and committed == 0):
        found = "is gone" if size < 0 else f"has {size} bytes"
        raise UserError(
            f"{path} {found}, but {committed} were committed; put the file back, or start afresh in another"
            " directory with --out (nephila export still reads the database)"
        )


def refuse_foreign(path: Path) -> None:
    """Raise `UserError` when there is a file that this crawl has not begun."""
    if path.exists() and path.stat().st_size:
        raise UserError(f"{path} is there, but not of this crawl; move it away or choose another directory with --out")


def sync_directory(directory: Path) -> None:
    """Make new names in it durable, which the sync of a file does not."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
