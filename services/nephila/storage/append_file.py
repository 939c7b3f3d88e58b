"""An append-only file whose committed length is stored in the ledger; on open it is truncated to that length.

Bytes beyond the committed length are left from a crash and are cut off. A file that is shorter has lost committed
bytes, and a file that the ledger does not know belongs to another crawl: both are refused and not changed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from nephila.kernel.member_names import is_file_name
from nephila.kernel.process.disk import sync_directory
from nephila.kernel.runtime.errors import UserError

_CHUNK: Final = 1 << 20


class AppendFile:
    def __init__(self, path: Path, committed: int, fsync: bool) -> None:
        """Open it at its `committed` length in bytes, which is stored in the ledger."""
        self.path = path
        self.length = self._committed = committed
        self._fsync = fsync
        size = path.stat().st_size if path.exists() else -1
        check_length(path, size, committed)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        if size < 0 and fsync:
            sync_directory(path.parent)
        elif size > committed:
            os.ftruncate(self._fd, committed)

    def append(self, data: bytes | bytearray) -> None:
        """Write all of it and make it durable. Raises `OSError` with the name of the file."""
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

    def after_commit(self) -> None:
        """The ledger has committed the current length."""
        self._committed = self.length

    def rollback(self) -> None:
        """Truncate the file to its committed length."""
        os.ftruncate(self._fd, self._committed)
        self.length = self._committed

    def restore(self) -> str:
        """If the file was deleted or replaced: write the committed bytes to its path again. Returns a message for
        people, empty if the file is in its place. Costs one `stat` then."""
        if self._fd < 0 or is_same_file(self.path, os.fstat(self._fd)):
            return ""

        def write(path: Path) -> None:
            with path.open("xb") as file:
                for offset in range(0, self._committed, _CHUNK):
                    file.write(os.pread(self._fd, min(_CHUNK, self._committed - offset), offset))
                file.flush()
                os.fsync(file.fileno())

        return write_back(self.path, write)

    def close(self) -> None:
        """Close the file; harmless when called again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def committed_lengths(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Name → committed length of the files of an output directory. Files are truncated to these lengths, so a name that
    leads out of the directory raises `UserError`: a database may come from somebody else."""
    lengths = dict(rows)
    outside = next((name for name in lengths if not is_file_name(name)), None)
    if outside is not None:
        raise UserError(
            f"the table sinks names {outside[:80]!r}, which is no file of an output directory: another program has "
            "written it; restore a backup, or start afresh in another directory with --out"
        )
    return lengths


def check_length(path: Path, size: int, committed: int) -> None:
    """Raise `UserError` if a file of `size` bytes (-1: no file) cannot hold the `committed` bytes."""
    if size < committed and not (size < 0 and committed == 0):
        state = "is gone" if size < 0 else f"has {size} bytes"
        raise UserError(
            f"{path} {state}, but {committed} were committed; put the file back, or start afresh in another"
            " directory with --out (nephila export still reads the database)"
        )


def is_same_file(path: Path, opened: os.stat_result) -> bool:
    """Whether the path still refers to the opened file."""
    try:
        return os.path.samestat(os.stat(path), opened)
    except OSError:
        return False


def write_back(path: Path, write: Callable[[Path], None], finish: Callable[[], None] = lambda: None) -> str:
    """Call `write` to restore a deleted file, at its path or, if another file has this path, at `NAME.rescued`.
    `finish` is called before the rename. Returns a message for people."""
    gone = not path.exists()
    target = path if gone else path.with_name(path.name + ".rescued")
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        write(part)
        finish()
        part.rename(target)
        sync_directory(path.parent)
    except (OSError, sqlite3.Error) as error:
        return (
            f"{path} was {'deleted' if gone else 'replaced'} while it was written to, and could not be saved ({error})"
        )
    return f"{path} was {'deleted' if gone else 'replaced'} while it was written to; all of it was saved as {target}"


def keep_tail(path: Path, committed: int) -> None:
    """Copy the bytes beyond the committed length to `NAME.cut-LENGTH`, before the file is truncated. Raises
    `OSError`."""
    with path.open("rb") as file, path.with_name(f"{path.name}.cut-{committed}").open("wb") as tail:
        file.seek(committed)
        shutil.copyfileobj(file, tail)
        tail.flush()
        os.fsync(tail.fileno())


def refuse_unknown_file(path: Path) -> None:
    """Raise `UserError` if a file exists that this crawl did not create."""
    if path.exists() and path.stat().st_size:
        raise UserError(f"{path} is there, but not of this crawl; move it away or choose another directory with --out")
