"""One backup: a directory of files, and `backup.json` with the size and the SHA-256 of each.

    PLACE/2026-11-23T16-40-00Z/backup.json    written last
    PLACE/2026-11-23T16-40-00Z/files/...

Invariant: a directory without the ending `.part` is complete and durable; a backup that was interrupted has that ending
and is never read. Nothing in a finished backup is changed. A backup may come from somebody else: its names lead to
files below `files/` only, and a link, device or FIFO in it is refused.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from nephila import __version__
from nephila.kernel.member_names import is_member_name, open_member
from nephila.kernel.process.disk import sync_directory
from nephila.kernel.runtime.errors import UNREADABLE, UsageError, UserError

FORMAT: Final = 1
MANIFEST: Final = "backup.json"
FILES: Final = "files"
PART: Final = ".part"
_BLOCK: Final = 1 << 20


class SavedFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A file of a backup."""

    name: str
    """Path below `files/`."""
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, kw_only=True):
    """What `backup.json` holds."""

    format: int = FORMAT
    """Version of the backup's layout; another one is refused."""
    kind: str
    """directory (of `crawl` or `up`) or system (over Kafka)."""
    program: str = f"nephila {__version__}"
    taken_at: str
    """UTC, when the backup began."""
    source: str
    """The directory or the broker."""
    rows: str = ""
    """The database on a server whose dump is part of the backup, without its password."""
    files: list[SavedFile] = []

    @property
    def total_bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


class Archive:
    """A backup while it is written. The file that is added last is the state at the latest time."""

    def __init__(self, folder: Path, kind: str, source: str, now: float) -> None:
        """Raises `UserError` when there is a backup of this second, or nothing can be written."""
        name = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(now))
        self.path = folder / name
        self.manifest = Manifest(
            kind=kind, taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)), source=source
        )
        self._part = folder / (name + PART)
        if self.path.exists() or self._part.exists():
            raise UserError(f"{self.path} exists already; repeat the command")
        try:
            (self._part / FILES).mkdir(parents=True)
        except OSError as error:
            raise _refused(self._part, error) from None

    def target(self, name: str) -> Path:
        """The path at which another program writes a file of the backup; `added` must follow. Raises `UserError` for a
        name that leads outside."""
        if not is_member_name(name):
            raise UserError(f"{name[:80]!r} is no name of a file in a backup; see nephila check")
        path = self._part / FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def added(self, name: str) -> None:
        """Another program has written this file. Raises `UserError`."""
        path = self.target(name)
        digest, size = hashlib.sha256(), 0
        try:
            with path.open("r+b") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
                    size += len(block)
                os.fsync(file.fileno())
        except OSError as error:
            raise _refused(path, error) from None
        self._note(name, size, digest.hexdigest())

    def add(self, name: str, source: Path, length: int | None = None) -> None:
        """Copy a file, or its first `length` bytes. Raises `FileNotFoundError` when it is gone, `UserError` when it is
        shorter than `length` or the place refuses."""
        with source.open("rb") as file:
            self.write(name, lambda target: _copy(file, target, length, source))

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """A file with what `write` writes. Raises `UserError`."""
        path = self.target(name)
        try:
            with path.open("wb") as file:
                hashed = _Hashed(file)
                write(hashed)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _refused(path, error) from None
        self._note(name, hashed.size, hashed.digest.hexdigest())

    def _note(self, name: str, size: int, digest: str) -> None:
        self.manifest.files = [file for file in self.manifest.files if file.name != name]
        self.manifest.files.append(SavedFile(name=name, bytes=size, sha256=digest))

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Take out files by their names: they are added again."""
        for file in self.manifest.files:
            if unwanted(file.name):
                (self._part / FILES / file.name).unlink(missing_ok=True)
        self.manifest.files = [file for file in self.manifest.files if not unwanted(file.name)]

    def finish(self) -> Path:
        """Make it complete; returns where it is. Raises `UserError`."""
        try:
            data = msgspec.json.format(msgspec.json.encode(self.manifest), indent=2) + b"\n"
            with (self._part / MANIFEST).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            for folder in [self._part, *(path for path in self._part.rglob("*") if path.is_dir())]:
                sync_directory(folder)
            self._part.rename(self.path)
            sync_directory(self.path.parent)
        except OSError as error:
            raise _refused(self._part, error) from None
        return self.path

    def abandon(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self._part, ignore_errors=True)


class _Hashed:
    """Writes to a file and counts what it writes."""

    def __init__(self, file: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self.size = 0
        self._file = file

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)


def _copy(source: BinaryIO, target: BinaryIO, length: int | None, path: Path) -> None:
    left = os.fstat(source.fileno()).st_size if length is None else length
    while left:
        block = source.read(min(left, _BLOCK))
        if not block:
            raise UserError(f"{path} lacks {left:,} of its {length:,} committed bytes; see nephila check")
        target.write(block)
        left -= len(block)


def read_manifest(path: Path) -> Manifest:
    """The manifest of a backup. Raises `UserError`."""
    try:
        with open_member(path, MANIFEST) as file:
            manifest = msgspec.json.decode(file.read(), type=Manifest)
    except FileNotFoundError:
        state = "an unfinished backup" if path.name.endswith(PART) else "no backup"
        raise UserError(f"{path} is {state}: it has no {MANIFEST}{_newest(path)}") from None
    except OSError as error:
        raise UserError(f"cannot read {path / MANIFEST}: {_cause(error)}") from None
    except UNREADABLE as error:
        raise UserError(f"{path / MANIFEST} is damaged ({error}); use another backup") from None
    if manifest.format != FORMAT:
        raise UserError(
            f"{path} was written in backup format {manifest.format}, this program reads {FORMAT}; restore it with "
            f"{manifest.program}"
        )
    outside = next((file.name for file in manifest.files if not is_member_name(file.name)), None)
    if outside is not None:
        raise UserError(
            f"{path / MANIFEST} names {outside[:80]!r}, which is no file of a backup: somebody else has written it; "
            "nothing was restored"
        )
    return manifest


def _newest(folder: Path) -> str:
    backups = finished(folder)
    return f"; the newest backup in it is {backups[-1]}" if backups else ""


def verify(path: Path, manifest: Manifest) -> None:
    """Read every file and compare it with the manifest. O(bytes). Raises `UserError`."""
    for saved in manifest.files:
        digest = hashlib.sha256()
        with open_file(path, saved.name) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        if digest.hexdigest() != saved.sha256:
            raise UserError(f"{path / FILES / saved.name} is damaged: its checksum is wrong; use another backup")


@contextlib.contextmanager
def open_file(path: Path, name: str) -> Iterator[BinaryIO]:
    """A file of a backup, open for reading. Raises `UserError`, also for a link."""
    try:
        with open_member(path / FILES, name) as file:
            yield file
    except OSError as error:
        raise UserError(f"cannot read {path / FILES / name}: {_cause(error)}; use another backup") from None


def copy_to(path: Path, saved: SavedFile, target: Path) -> None:
    """Copy a file out of a backup, durably. Raises `UserError`."""
    with open_file(path, saved.name) as source:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as copy:
                shutil.copyfileobj(source, copy, _BLOCK)
                copy.flush()
                os.fsync(copy.fileno())
        except OSError as error:
            raise _refused(target, error) from None


def finished(folder: Path) -> list[Path]:
    """Complete backups in a place, oldest first."""
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}") if not path.parent.name.endswith(PART))


def rows_beside(path: Path) -> Path:
    """The dump of the rows that another program has put beside a backup, after it."""
    return path.with_name(f"{path.name}.rows.dump")


def keep_newest(folder: Path, keep: int) -> list[Path]:
    """Delete all but the newest backups, and those that were interrupted; returns what was deleted. Raises
    `UsageError` for fewer than one."""
    if keep < 1:
        raise UsageError(f"--keep {keep} would delete the new backup as well; 1 is the least")
    gone = finished(folder)[:-keep] + [path for path in folder.glob(f"*Z{PART}") if path.is_dir()]
    for path in gone:
        rows_beside(path).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
    return gone


def _cause(error: OSError) -> str:
    """A link is the cause where opening without links fails with ELOOP or, for a folder, ENOTDIR."""
    return "it is a link" if error.errno in (errno.ELOOP, errno.ENOTDIR) else str(error.strerror)


def _refused(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {path}: {error.strerror}")
