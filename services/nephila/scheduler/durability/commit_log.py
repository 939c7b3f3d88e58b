"""The commit log on one machine: append-only segments shared by all partitions, and snapshots.

    DIR/00000001.log        header, then frames: length u32, CRC-32 u32, payload (a FrontierCommit as MessagePack)
    DIR/00000002.snapshot   header, then frames: FrontierSnapshots, then an empty frame as the end mark
    DIR/*.run               queues, hosts and seen URLs; their owners write them, the snapshot names them

Snapshot N contains everything before segment N. Recovery reads the newest complete snapshot and all segments from its
number on. A broken frame is the torn tail of a crash if no whole commit follows it. The tail is moved to a file
`*.log.cut-OFFSET` (zeros are only cut off). Damage anywhere else is refused, and nothing changes (docs/adr/0007). A
frame is written with one write(), so a killed process loses nothing; `sync()` makes it survive a power cut.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from nephila.kernel.messages import FrontierCommit, FrontierSnapshot
from nephila.kernel.process.disk import sync_directory
from nephila.kernel.runtime.errors import UNREADABLE, UserError
from nephila.kernel.runtime.failpoints import reach
from nephila.native import KEY_VERSION

M = TypeVar("M")

log = logging.getLogger(__name__)

VERSION = 1
_MAGIC = b"NPHFRNT\x00"
_HEADER = _MAGIC + struct.pack("<II", VERSION, KEY_VERSION)
_FRAME = struct.Struct("<II")
_MAX_FRAME = 1 << 30
_PROLOGUE = re.compile(rb"(?=...[\x00-\x3f]....[\x93-\x9f\xdc])", re.DOTALL)
"""Possible start of a commit's frame: a length up to _MAX_FRAME, a checksum, an array of three fields or more."""

_encode = msgspec.msgpack.Encoder().encode
_commits = msgspec.msgpack.Decoder(FrontierCommit)
_snapshots = msgspec.msgpack.Decoder(FrontierSnapshot)


def frame(payload: bytes) -> bytes:
    """A payload with its length and checksum."""
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _frame_at(data: memoryview, offset: int) -> bytes | None:
    """The payload at an offset, or None without a whole, valid frame."""
    if offset + _FRAME.size > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, offset)
    start = offset + _FRAME.size
    if length > _MAX_FRAME or start + length > len(data):
        return None
    payload = bytes(data[start : start + length])
    return payload if zlib.crc32(payload) == checksum else None


def frames(data: bytes) -> Iterator[bytes]:
    """The payloads of frames, one after the other. Raises `UserError` for a broken one."""
    view, offset = memoryview(data), 0
    while offset < len(data):
        payload = _frame_at(view, offset)
        if payload is None:
            raise UserError(f"a frame at byte {offset} of {len(data)} is damaged")
        yield payload
        offset += _FRAME.size + len(payload)


def whole_frames(data: bytes) -> Iterator[bytes]:
    """The payloads of frames up to the first one that is broken."""
    view, offset = memoryview(data), 0
    while (payload := _frame_at(view, offset)) is not None:
        yield payload
        offset += _FRAME.size + len(payload)


def _sequence_at(data: memoryview, offset: int) -> tuple[int, int] | None:
    """(partition, sequence) of the commit whose MessagePack starts at an offset; None without one. O(1)."""
    offset += 3 if data[offset] == 0xDC else 1
    header: list[int] = []
    for _ in range(3):  # partition, epoch, sequence: unsigned integers
        kind = data[offset] if offset < len(data) else 0xFF
        size = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}.get(kind, 0)
        if kind > 0x7F and not size:
            return None
        header.append(int.from_bytes(data[offset + 1 : offset + 1 + size], "big") if size else kind)
        offset += 1 + size
    follows = data[offset] if offset < len(data) else 0
    return (header[0], header[2]) if 0x90 <= follows <= 0x9F or follows in (0xDC, 0xDD) else None


def whole_commit_after(data: memoryview, offset: int, sequences: Mapping[int, int]) -> int:
    """Where the first whole commit after a broken frame starts, -1 for none.

    `sequences` has the last sequence read of each partition; a later commit has a higher one. Every offset is tried,
    because the length in the broken frame may be wrong. O(bytes), some seconds for a segment of 64 MiB.
    """
    for match in _PROLOGUE.finditer(data, offset + 1):
        at = match.start()
        if _FRAME.unpack_from(data, at)[0] > len(data) - at - _FRAME.size:
            continue
        numbers = _sequence_at(data, at + _FRAME.size)
        if numbers is None or not 0 < numbers[1] - sequences.get(numbers[0], 0) <= len(data):
            continue
        if _frame_at(data, at):
            return at
    return -1


def remedy(directory: Path) -> str:
    """The remedy for a damaged frontier file, as the end of an error line."""
    return (
        f"restore it from a backup, or remove {directory}: --resume then begins at the seeds again and keeps all rows"
    )


def _check_header(path: Path, data: bytes) -> None:
    if data[: len(_MAGIC)] != _MAGIC or len(data) < len(_HEADER):
        raise UserError(
            f"{path} is not a frontier file of nephila, or its first bytes are damaged; {remedy(path.parent)}"
        )
    version, keys = struct.unpack_from("<II", data, len(_MAGIC))
    if version != VERSION:
        raise UserError(
            f"{path} was written in frontier format {version}, this program reads {VERSION}; "
            "resume with the program version that wrote it"
        )
    if keys != KEY_VERSION:
        raise UserError(
            f"{path} has URL keys of version {keys}, this program makes version {KEY_VERSION}; resume with the program "
            "version that wrote it"
        )


def _decode(decoder: msgspec.msgpack.Decoder[M], payload: bytes, path: Path, offset: int) -> M:
    """The content of a sound frame. Unknown fields of a newer program are skipped; an unknown value is an error."""
    try:
        return decoder.decode(payload)
    except UNREADABLE as error:
        raise UserError(
            f"{path} has at byte {offset} a value that this program does not know ({error}); "
            "resume with the program version that wrote it"
        ) from None


def disk_error(error: OSError, path: Path) -> UserError:
    """An OSError of a write, as one line with the remedy."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(f"disk full while writing {path}; free space and run again with --resume")
    return UserError(f"cannot write {path}: {error.strerror}; run again with --resume once it is writable")


def read_snapshot(path: Path) -> Iterator[FrontierSnapshot]:
    """The states of a snapshot. Raises `UserError` for damage."""
    data = memoryview(path.read_bytes())
    _check_header(path, bytes(data[: len(_HEADER)]))
    offset = len(_HEADER)
    while (payload := _frame_at(data, offset)) is not None:
        if not payload:
            if offset + _FRAME.size < len(data):
                break  # zeros inside the file look like its end mark
            return
        yield _decode(_snapshots, payload, path, offset)
        offset += _FRAME.size + len(payload)
    raise UserError(f"{path} is damaged at byte {offset}; {remedy(path.parent)}")


def write_snapshot(file: BinaryIO, states: Iterable[FrontierSnapshot]) -> None:
    """Write what `read_snapshot` reads."""
    file.write(_HEADER)
    for state in states:
        file.write(frame(_encode(state)))
        reach("snapshot")
    file.write(frame(b""))


class CommitLog:
    """One writer per directory (the caller holds the lock of the directory)."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self.directory = directory
        self.read_only = read_only
        self.size = 0
        """Bytes in the current segment."""
        self._fd = -1
        self._segment = 0
        self._path = directory
        self._sequences: dict[int, int] = {}
        """Partition → sequence of the last commit that was recovered."""

    def segment(self, number: int) -> Path:
        """The file of a segment."""
        return self.directory / f"{number:08d}.log"

    def segments(self) -> list[int]:
        """Numbers of the log segments, ascending."""
        return sorted(int(p.stem) for p in self.directory.glob("*.log") if p.stem.isdigit())

    def snapshots(self) -> list[int]:
        """Numbers of the complete snapshots, ascending."""
        return sorted(int(p.stem) for p in self.directory.glob("*.snapshot") if p.stem.isdigit())

    @property
    def exists(self) -> bool:
        """Whether there is anything to recover."""
        return bool(self.segments() or self.snapshots())

    def recover(self) -> Iterator[FrontierSnapshot | FrontierCommit]:
        """All committed changes, oldest first; cuts a torn tail. Raises `UserError` for damage."""
        snapshots, segments = self.snapshots(), self.segments()
        first = snapshots[-1] if snapshots else 1
        if snapshots:
            for state in read_snapshot(self.directory / f"{first:08d}.snapshot"):
                self._sequences.update((position.partition, position.sequence) for position in state.partitions)
                yield state
        live = [n for n in segments if n >= first]
        if snapshots and not live:  # a segment is created before its snapshot is renamed
            raise UserError(f"{self.segment(first)} is missing; {remedy(self.directory)}")
        for expected, number in enumerate(live, first):
            path = self.segment(number)
            if number != expected:
                raise UserError(f"{self.segment(expected)} is missing; {remedy(self.directory)}")
            reach("restore")
            yield from self._read_segment(path, last=number == live[-1])

    def _read_segment(self, path: Path, last: bool) -> Iterator[FrontierCommit]:
        data = memoryview(path.read_bytes())
        if last and len(data) < len(_HEADER) and _HEADER.startswith(bytes(data)):
            if not self.read_only:
                os.truncate(path, 0)
            return
        _check_header(path, bytes(data[: len(_HEADER)]))
        offset = len(_HEADER)
        # Zeros that a power cut leaves behind the last frame look like an empty payload, which is no commit.
        while payload := _frame_at(data, offset):
            commit = _decode(_commits, payload, path, offset)
            self._sequences[commit.partition] = commit.sequence
            yield commit
            offset += _FRAME.size + len(payload)
        if offset == len(data):
            return
        if not last:
            raise UserError(f"{path} is damaged at byte {offset} of {len(data)}; {remedy(self.directory)}")
        after = whole_commit_after(data, offset, self._sequences)
        if after >= 0:
            raise UserError(
                f"{path} is damaged at byte {offset} of {len(data)}: commits from byte {after} on are whole; "
                f"{remedy(self.directory)}"
            )
        self._cut(path, data, offset)

    def _cut(self, path: Path, data: memoryview, length: int) -> None:
        """Cut off a torn tail. Unless it is all zeros, it is first saved durably in a file of its own."""
        if self.read_only:
            return
        tail = bytes(data[length:])
        if tail.strip(b"\0"):
            aside = path.with_name(f"{path.name}.cut-{length}")
            try:
                with aside.open("wb") as file:
                    file.write(tail)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise disk_error(error, aside) from None
            log.warning(
                "%s ended in %d bytes of an unfinished commit; they were moved to %s", path, len(tail), aside.name
            )
        os.truncate(path, length)

    def open(self) -> None:
        """Open the newest segment for appending, or the first. After `recover()`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for leftover in self.directory.glob("*.tmp"):
            leftover.unlink()
        numbers = self.segments() or self.snapshots()
        self._open_segment(numbers[-1] if numbers else 1)

    def _open_segment(self, number: int) -> None:
        path = self.segment(number)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise disk_error(error, path) from None
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._segment, self._path = fd, number, path
        self.size = os.fstat(fd).st_size
        if self.size == 0:
            self._write(_HEADER)
            sync_directory(self.directory)

    def append(self, commits: Iterable[FrontierCommit]) -> None:
        """Write commits in one call, all or none. Raises `UserError` when the disk refuses."""
        reach("frontier_commit_before")
        self._write(b"".join([frame(_encode(commit)) for commit in commits]))
        reach("frontier_commit_after")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        done = 0
        try:
            while done < len(view):
                done += os.write(self._fd, view[done:])
        except OSError as error:
            os.ftruncate(self._fd, self.size)
            raise disk_error(error, self._path) from None
        self.size += done

    def sync(self) -> None:
        """Make all appended commits survive a power cut; may be called from another thread."""
        os.fdatasync(self._fd)

    def snapshot(self, states: Iterable[FrontierSnapshot]) -> None:
        """Start a new segment, write the state before it, then delete the older files.

        `states` must be the state after all appended commits. After a crash at any point, the older snapshot and all
        segments after it are still there, and hold the same state.
        """
        number = self._segment + 1
        self.sync()
        target = self.directory / f"{number:08d}.snapshot"
        temporary = target.with_suffix(".tmp")
        try:
            with temporary.open("wb") as file:
                write_snapshot(file, states)
                file.flush()
                os.fsync(file.fileno())
            self._open_segment(number)
            temporary.rename(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise disk_error(error, target) from None
        sync_directory(self.directory)
        self._delete_before(number)

    def _delete_before(self, number: int) -> None:
        for old in self.segments():
            if old < number:
                self.segment(old).unlink()
        for old in self.snapshots():
            if old < number:
                (self.directory / f"{old:08d}.snapshot").unlink()

    def close(self) -> None:
        """Make everything durable and close the file."""
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1
