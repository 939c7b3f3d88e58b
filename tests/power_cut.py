"""A disk that loses what was not synced: a power cut without the end of a process.

`Disk` replaces os.fsync and os.fdatasync. It keeps, of every synced file, its bytes at the last sync, and of every
synced directory, its names. `cut()` writes what a power cut would leave into another directory, as on a file system
that wrote nothing by itself: unsynced bytes, new names and renames are gone, and deleted names are back.

Files that other code than Python's syncs (SQLite, the native core) are named by `foreign`: they are copied as they are.
`calls` names what was synced, in order, relative to the tree; `mark()` adds an event of the test.
"""

from __future__ import annotations

import os
import shutil
import stat
from fnmatch import fnmatch
from pathlib import Path

import pytest


class Disk:
    """What a power cut would leave of a directory tree."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, foreign: tuple[str, ...] = ()) -> None:
        """Everything that is below `root` now counts as synced."""
        self.root = root
        self.foreign = foreign
        self.calls: list[str] = []
        self._bytes: dict[int, bytes] = {}
        """Inode → bytes at its last sync."""
        self._names: dict[Path, dict[str, int]] = {}
        """Directory → its names and their inodes at its last sync."""
        self._held: dict[int, int] = {}
        """Inode → a descriptor, so that its number is not given to another file."""
        for directory in (root, *(path for path in root.rglob("*") if path.is_dir())):
            self._remember(directory)
            for path in directory.iterdir():
                if path.is_file():
                    self._keep(os.open(path, os.O_RDONLY))
        patch.setattr(os, "fsync", self.sync)
        patch.setattr(os, "fdatasync", self.sync)

    def mark(self, event: str) -> None:
        """Put an event of the test among the calls."""
        self.calls.append(event)

    def sync(self, descriptor: int) -> None:
        """What os.fsync does here."""
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_relative_to(self.root):
            return
        self.mark(str(path.relative_to(self.root)))
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self._remember(path)
        else:
            self._keep(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY))

    def _keep(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if self._held.setdefault(found.st_ino, descriptor) != descriptor:
            os.close(descriptor)
        self._bytes[found.st_ino] = os.pread(self._held[found.st_ino], found.st_size, 0)

    def _remember(self, directory: Path) -> None:
        with os.scandir(directory) as entries:
            self._names[directory] = {entry.name: entry.inode() for entry in entries}

    def cut(self, target: Path) -> Path:
        """Write what is left of the tree into a new directory; returns that."""
        self._leave(self.root, target)
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
        return target

    def _leave(self, directory: Path, target: Path) -> None:
        target.mkdir()
        for path in directory.iterdir():
            if any(fnmatch(path.name, pattern) for pattern in self.foreign):
                shutil.copy2(path, target)
        for name, inode in self._names.get(directory, {}).items():
            if (directory / name).is_dir():
                self._leave(directory / name, target / name)
            elif not (target / name).exists():
                (target / name).write_bytes(self._bytes.get(inode, b""))


def order(calls: list[str], *wanted: str) -> bool:
    """Whether the calls contain these patterns one after the other, others between them."""
    rest = iter(calls)
    return all(any(fnmatch(call, pattern) for call in rest) for pattern in wanted)
