"""The files of one partition: its local directory, and its snapshots in the blob store.

    DIR/p0007/E-X/manifest        content of the directory, written last (FrontierManifest as protobuf)
    DIR/p0007/E-X/snapshot-N      state after commit N; names the runs beside it
    frontier/p0007/eE/NAME        the same files as objects, under the epoch E of the sender
    frontier/p0007/manifests/E-N  written last: it names the objects; the newest counts

Every takeover uses its own directory (epoch E, attempt X), because the previous one may still be written to. Files that
are needed again are linked, not copied.

Invariants: a manifest is written only when all commits up to its sequence are in the log, so state that ran ahead of
the log is never restored. An object is deleted only when neither of the two newest manifests names it, because a member
that was overtaken may have started from the older one. All calls block; they run on a thread.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from nephila.kernel.layout import Layout
from nephila.kernel.member_names import is_file_name
from nephila.kernel.messages import FrontierBirth, FrontierFile, FrontierManifest, FrontierSnapshot
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UserError
from nephila.scheduler.durability.commit_log import disk_error, write_snapshot
from nephila_stores.remote.blobs import Blobs

from nephila_cluster.kafka.wire import CODECS

_CODEC = CODECS[FrontierManifest]
_KEPT = (".run", ".hosts")
_tries = itertools.count()
MANIFEST = "manifest"


def snapshot_name(sequence: int) -> str:
    """File name of the state after a commit."""
    return f"snapshot-{sequence}"


def lock(root: Path) -> int:
    """Lock a directory against other schedulers while the returned file is open. Raises `UserError`."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        fd = os.open(root / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise disk_error(error, root) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise UserError(
            f"{root} is used by another scheduler; give each scheduler its own directory (scheduler: directory)"
        ) from None
    return fd


class StaleLayoutError(TemporaryError):
    """The system has more partitions than this member knows of yet."""


class SnapshotStore:
    """Directory and objects of one partition. Without `blobs`, snapshots stay local and the log is never truncated."""

    def __init__(self, root: Path, partition: int, layout: Layout, blobs: Blobs | None, epoch: int = 0) -> None:
        self.partition = partition
        self.layout = layout
        self.leases_until = 0.0
        """Leases of the parent partition end by then, if this one was split from it."""
        self.is_part = False
        """The partition was split, and no snapshot since then is stored."""
        self._root = root / f"p{partition:04d}"
        self._name = (epoch, next(_tries))
        self.directory = self._root / f"{epoch}-{self._name[1]}"
        self.blobs = blobs
        self.dropped = False
        """The partition is lost: work in progress must not become visible."""
        self._objects: dict[str, str] = {}
        """File → object with its content."""
        self._prefix = _prefix(partition)
        self._parts_stored = False

    # ---- beginning

    def prepare(self) -> FrontierManifest | None:
        """Fill the directory with the newest snapshot, local or from the blob store; None when there is none. Raises
        `UserError`, and `TemporaryError` while the blob store cannot be reached."""
        old, here = self._here()
        there = self.newest_object()
        newest = here
        if there is not None and (here is None or _rank(there) > _rank(here)):
            newest = there
        try:
            if newest is not None:
                self._fetch(newest, old, here)
            self._remove_others()
        except FileNotFoundError as error:
            raise TemporaryError(f"{error.filename} has just been removed") from None
        except OSError as error:
            raise disk_error(error, self.directory) from None
        self._objects = {file.name: file.object for file in newest.files if file.object} if newest is not None else {}
        self.leases_until = newest.leases_until if newest is not None else 0.0
        return newest

    def prepare_part(self, birth: FrontierBirth) -> FrontierManifest | None:
        """Fill the directory of a new partition with the newest snapshot of its parent before the split; None when the
        blob store has none. Raises as `prepare`."""
        if self.blobs is None:
            return None
        try:
            for name in reversed(self.blobs.names(f"{_prefix(birth.parent)}/manifests")):
                manifest = self._decode(self.blobs.get(name), name, birth.parent)
                if manifest.partitions < birth.partitions and manifest.offset <= birth.offset:
                    for file in manifest.files:
                        self._write(file.name, self.blobs.get(file.object))
                    return manifest
        except OSError as error:
            raise disk_error(error, self.directory) from None
        return None

    def _here(self) -> tuple[Path, FrontierManifest | None]:
        """The newest complete directory of an earlier takeover, and its manifest."""
        best: tuple[Path, FrontierManifest | None] = self._root, None
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            try:
                manifest = self._decode((folder / MANIFEST).read_bytes(), str(folder / MANIFEST))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise disk_error(error, folder) from None
            # A directory with missing files does not count.
            whole = all(_size(folder / file.name) == file.size_bytes for file in manifest.files)
            if whole and (best[1] is None or _rank(manifest) > _rank(best[1])):
                best = folder, manifest
        return best

    def newest_object(self) -> FrontierManifest | None:
        """The manifest of the newest snapshot in the blob store. Raises `TemporaryError`, `UserError`."""
        names = self._manifests()
        if not names or self.blobs is None:
            return None
        return self._decode(self.blobs.get(names[-1]), names[-1])

    def _manifests(self) -> list[str]:
        return self.blobs.names(f"{self._prefix}/manifests") if self.blobs is not None else []

    def _decode(self, data: bytes, where: str, partition: int = -1) -> FrontierManifest:
        """The manifest of a partition; -1: this one. One from before a growth has fewer partitions."""
        number = self.partition if partition < 0 else partition
        try:
            manifest: FrontierManifest = _CODEC.decode(data)
        except PermanentError as error:
            raise UserError(f"{where} is damaged ({error}); remove it to continue with an older one") from None
        outside = next((file.name for file in manifest.files if not is_file_name(file.name)), None)
        if outside is not None:
            raise UserError(f"{where} names {outside[:80]!r}, which is no file of a snapshot; remove it")
        if manifest.partition == number and manifest.partitions > self.layout.count:
            raise StaleLayoutError(f"{where} is of {manifest.partitions} partitions, and {self.layout.count} are known")
        if manifest.partition != number or manifest.partitions not in self._counts():
            raise UserError(
                f"{where} is of partition {manifest.partition} of {manifest.partitions}, not {number} of "
                f"{self.layout.count}; give each system its own directory and blob store"
            )
        return manifest

    def _counts(self) -> list[int]:
        """Numbers of partitions that the system may have had."""
        base = self.layout.base
        return [base << bit for bit in range((self.layout.count // base).bit_length())]

    def _fetch(self, newest: FrontierManifest, old: Path, here: FrontierManifest | None) -> None:
        """Fill the directory: link files of the directory before, fetch the rest from the blob store."""
        same = {(file.name, file.object) for file in here.files} if here is not None else set()
        self.directory.mkdir(parents=True, exist_ok=True)
        for file in newest.files:
            if newest is here or (file.object and (file.name, file.object) in same):
                _link(old / file.name, self.directory / file.name)
            elif self.blobs is not None:
                self._write(file.name, self.blobs.get(file.object))
        self._write(MANIFEST, _CODEC.encode(newest))

    def _remove_others(self) -> None:
        """Delete directories of earlier takeovers; a writer that still uses one does not count."""
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            if _named(folder) < self._name:
                shutil.rmtree(folder, ignore_errors=True)

    def _write(self, name: str, data: bytes) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / name
        part = path.with_name(name + ".tmp")
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)

    # ---- a snapshot

    def write_state(self, states: Iterable[FrontierSnapshot], sequence: int) -> None:
        """Write the state after a commit that may not be in the log yet; no manifest names it. Raises `UserError`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / snapshot_name(sequence)
        try:
            with path.open("wb") as file:
                write_snapshot(file, states)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise disk_error(error, path) from None

    def commit(self, epoch: int, sequence: int, offset: int, now: float) -> FrontierManifest:
        """Write the manifest of a state whose commits are in the log: from now on the directory starts with it. Raises
        `UserError`."""
        state = snapshot_name(sequence)
        try:
            with (self.directory / state).open("rb") as file:
                os.fsync(file.fileno())
            names = [state, *(path.name for path in self.directory.iterdir() if path.suffix in _KEPT)]
            self._objects = {name: self._objects[name] for name in names if name in self._objects}
            manifest = self._manifest(names, epoch, sequence, offset, now)
            self._write(MANIFEST, _CODEC.encode(manifest))
            for path in self.directory.glob("snapshot-*"):
                if path.name != state:
                    path.unlink()
        except OSError as error:
            raise disk_error(error, self.directory) from None
        return manifest

    def _manifest(self, names: Iterable[str], epoch: int, sequence: int, offset: int, now: float) -> FrontierManifest:
        files = [FrontierFile(n, self._objects.get(n, ""), _size(self.directory / n)) for n in sorted(names)]
        return FrontierManifest(
            self.partition, self.layout.count, epoch, sequence, offset, files, now, self.leases_until
        )

    def upload(self, manifest: FrontierManifest) -> bool:
        """Copy a snapshot to the blob store, its manifest last; False when the partition was lost meanwhile. Raises
        `TemporaryError`."""
        assert self.blobs is not None
        for file in manifest.files:
            if not file.object:
                file.object = f"{self._prefix}/e{manifest.epoch}/{file.name}"
                if self.dropped:
                    return False
                self.blobs.put(file.object, self.directory / file.name)
        if self.dropped:
            return False
        for file in manifest.files:
            self._objects[file.name] = file.object
        data = self._put_manifest(manifest)
        try:
            self._write(MANIFEST, data)
        except OSError as error:
            raise disk_error(error, self.directory) from None
        return True

    def has_all_parts(self) -> bool:
        """Whether each partition that was split from this one has a snapshot of its own: until then it begins with the
        files and the log of this one, from before the split. Raises `TemporaryError`."""
        assert self.blobs is not None
        if not self._parts_stored:
            parts = [number for number in range(self.layout.count) if self.partition in self.layout.lineage(number)[1:]]
            self._parts_stored = all(self.blobs.names(f"{_prefix(number)}/manifests") for number in parts)
        return self._parts_stored

    def put_object(self, manifest: FrontierManifest, folder: Path) -> None:
        """Put a snapshot into the blob store, from a folder with its files. Raises `TemporaryError`."""
        assert self.blobs is not None
        for file in manifest.files:
            file.object = f"{self._prefix}/e{manifest.epoch}/{file.name}"
            self.blobs.put(file.object, folder / file.name)
        self._put_manifest(manifest)

    def _put_manifest(self, manifest: FrontierManifest) -> bytes:
        assert self.blobs is not None
        data: bytes = _CODEC.encode(manifest)
        self.blobs.put(f"{self._prefix}/manifests/{manifest.epoch:020d}-{manifest.sequence:020d}", data)
        return data

    def delete_redundant(self, manifest: FrontierManifest) -> int:
        """Delete objects that only snapshots older than the previous one need; returns how many. Nothing is deleted
        after a later owner has sent a snapshot. Raises `TemporaryError`."""
        assert self.blobs is not None
        names = self._manifests()
        newest = self._decode(self.blobs.get(names[-1]), names[-1])
        if self.dropped or newest.epoch != manifest.epoch:
            return 0
        needed = set(names[-2:])
        for name in names[-2:]:
            needed.update(file.object for file in self._decode(self.blobs.get(name), name).files)
        old = [name for name in self.blobs.names(self._prefix) if name not in needed]
        self.blobs.delete(old)
        return len(old)


def _prefix(partition: int) -> str:
    return f"frontier/p{partition:04d}"


def _named(folder: Path) -> tuple[int, int]:
    epoch, _, tried = folder.name.partition("-")
    return (int(epoch), int(tried)) if epoch.isdigit() and tried.isdigit() else (-1, -1)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # a file system that has no links
        shutil.copyfile(source, target)


def _rank(manifest: FrontierManifest) -> tuple[int, int]:
    return manifest.epoch, manifest.sequence


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
