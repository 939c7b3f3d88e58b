"""A disk that loses what was not synced: a power cut in one process.

`Disk` replaces os.fsync and os.fdatasync. It keeps, of every synced file, its bytes at the last sync, and of every
synced directory, its names. `cut()` puts a directory tree back to that state, as after a power cut on a file system that wrote nothing by itself:
unsynced bytes, new names and renames are gone, and deleted names are back.

Files that other code than Python's syncs (SQLite, the native core) are given by `foreign`: they stay as they are.
`calls` names what was synced, in order, relative to the tree; `mark()` adds an event of the test to it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest


@dataclass
class Disk:
    """What of a directory tree would be there after a power cut now."""

    root: Path
    foreign: tuple[str, ...] = ()
    """Patterns of file names that stay as they are."""
    calls: list[str] = field(default_factory=list)
    _bytes: dict[int, bytes] = field(default_factory=dict)
    """Inode → bytes at its last sync."""
    _names: dict[Path, dict[str, int]] = field(default_factory=dict)
    """Directory → its names and their inodes at its last sync."""
    _held: dict[int, int] = field(default_factory=dict)
    """Inode → a descriptor, so that the number is not given to another file."""

    def install(self, patch: pytest.MonkeyPatch) -> Disk:
        """Take the place of the system's syncs."""
        patch.setattr(os, "fsync", self.sync)
        patch.setattr(os, "fdatasync", self.sync)
        self._remember(self.root)
        return self

    def mark(self, event: str) -> None:
        """Put an event of the test among the calls."""
        self.calls.append(event)

    def sync(self, descriptor: int) -> None:
        """What os.fsync does here."""
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_relative_to(self.root):
            return
        self.calls.append(str(path.relative_to(self.root)))
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self._remember(path)
            return
        found = os.fstat(descriptor)
        own = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
        if self._held.setdefault(found.st_ino, own) != own:
            os.close(own)
        self._bytes[found.st_ino] = os.pread(self._held[found.st_ino], found.st_size, 0)

    def _remember(self, directory: Path) -> None:
        self._names[directory] = {entry.name: entry.inode() for entry in os.scandir(directory)}

    def cut(self) -> None:
        """Cut the power: nothing of the process may run on."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._restore(self.root)
        self._held.clear()
        self._bytes.clear()
        self._names.clear()
        for directory in [self.root, *(path for path in self.root.rglob("*") if path.is_dir())]:
            self._remember(directory)
            for path in (entry for entry in directory.iterdir() if entry.is_file()):
                found = path.stat()
                self._held[found.st_ino] = os.open(path, os.O_RDONLY)
                self._bytes[found.st_ino] = path.read_bytes()

    def _restore(self, directory: Path) -> None:
        kept = self._names.get(directory, {})
        for entry in list(os.scandir(directory)):
            if any(fnmatch(entry.name, pattern) for pattern in self.foreign):
                continue
            if entry.is_dir():
                self._restore(Path(entry.path))
                if entry.name not in kept and not any(os.scandir(entry.path)):
                    os.rmdir(entry.path)
            else:
                os.unlink(entry.path)
        for name, inode in kept.items():
            path = directory / name
            if not path.exists():  # a file; foreign ones and directories that stay are there
                path.write_bytes(self._bytes.get(inode, b""))


def order(calls: list[str], *wanted: str) -> bool:
    """Whether the calls contain these patterns one after the other, others between them."""
    rest = iter(calls)
    return all(any(fnmatch(call, pattern) for call in rest) for pattern in wanted)
