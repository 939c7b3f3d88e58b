"""The commit log on one machine: append-only segments shared by all partitions, and snapshots.

    DIR/00000001.log        header, then frames: length u32, CRC-32 u32, payload (a FrontierCommit as MessagePack)
    DIR/00000002.snapshot   header, then frames: FrontierSnapshots, then an empty frame as the end mark
    DIR/*.run               queues, hosts and seen URLs as of a snapshot; their owners write them, it names them

Snapshot N holds everything before segment N; recovery is the newest complete snapshot plus all segments from its number
on. A broken frame is the torn tail of a crash if no whole commit follows it anywhere: the tail is moved to a file
`*.log.cut-OFFSET` (zeros are only cut off). Damage anywhere else is refused, and nothing is changed (docs/adr/0040).
A frame is written with one write(), so a killed process loses nothing that was appended; `sync()` makes it survive a
power cut.
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
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.failpoints import reach
from nephila.native import KEY_VERSION

M = TypeVar("M")

log = logging.getLogger(__name__)

VERSION = 4
_MAGIC = b"NPHFRNT\x00"
_HEADER = _MAGIC + struct.pack("<II", VERSION, KEY_VERSION)
_FRAME = struct.Struct("<II")
_MAX_FRAME = 1 << 30
_PROLOGUE = re.compile(rb"(?=...[\x00-\x3f]....[\x93-\x9f\xdc])", re.DOTALL)
"""How the frame of a commit may begin: a length up to _MAX_FRAME, a checksum, an array of three fields or more."""

_encode = msgspec.msgpack.Encoder().encode
_commits = msgspec.msgpack.Decoder(FrontierCommit)
_snapshots = msgspec.msgpack.Decoder(FrontierSnapshot)


def frame(payload: bytes) -> bytes:
    """A payload with its length and checksum."""
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _frame_at(data: memoryview, offset: int) -> bytes | None:
    """The payload at an offset, or None when there is no whole, valid frame."""
    if offset + _FRAME.size > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, offset)
    start = offset + _FRAME.size
    if length > _MAX_FRAME or start + length > len(data):
        return None
    payload = bytes(data[start : start + length])
    return payload if zlib.crc32(payload) == checksum else None


def _sequence_at(data: memoryview, offset: int) -> tuple[int, int] | None:
    """(partition, sequence) of the commit whose MessagePack begins at an offset; None when none does. O(1)."""
    offset += 3 if data[offset] == 0xDC else 1
    found: list[int] = []
    for _ in range(3):  # partition, epoch, sequence: unsigned integers
        kind = data[offset] if offset < len(data) else 0xFF
        size = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}.get(kind, 0)
        if kind > 0x7F and not size:
            return None
        found.append(int.from_bytes(data[offset + 1 : offset + 1 + size], "big") if size else kind)
        offset += 1 + size
    follows = data[offset] if offset < len(data) else 0
    return (found[0], found[2]) if 0x90 <= follows <= 0x9F or follows in (0xDC, 0xDD) else None


def whole_commit_after(data: memoryview, offset: int, sequences: Mapping[int, int]) -> int:
    """Where the first whole commit after a broken frame begins, -1 when there is none.

    `sequences` has the last sequence read of each partition; a later commit has a higher one. Every offset is tried:
    the broken frame's own length is not to be trusted. O(bytes), some seconds for a segment of 64 MiB.
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
    """What to do about a damaged file of a frontier, as the end of an error's line."""
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
    """What a sound frame holds. Fields that a later program has added are passed over; a value it has added is not
    guessed at."""
    try:
        return decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise UserError(
            f"{path} says at byte {offset} what this program does not know ({error}); resume with the program version "
            "that wrote it"
        ) from None


def disk_error(error: OSError, path: Path) -> UserError:
    """An OSError while writing, in one line with the remedy."""
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
                break  # zeros inside the file read like its end mark
            return
        yield _decode(_snapshots, payload, path, offset)
        offset += _FRAME.size + len(payload)
    raise UserError(f"{path} is damaged at byte {offset}; {remedy(path.parent)}")


def write_snapshot(file: BinaryIO, states: Iterable[FrontierSnapshot]) -> None:
    """What `read_snapshot` reads."""
    file.write(_HEADER)
    for state in states:
        file.write(frame(_encode(state)))
        reach("snapshot")
    file.write(frame(b""))


class CommitLog:
    """One writer per directory (the caller holds the directory's lock)."""

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

    def segments(self) -> list[int]:
        """Numbers of the log segments, rising."""
        return sorted(int(p.stem) for p in self.directory.glob("*.log") if p.stem.isdigit())

    def snapshots(self) -> list[int]:
        """Numbers of the complete snapshots, rising."""
        return sorted(int(p.stem) for p in self.directory.glob("*.snapshot") if p.stem.isdigit())

    @property
    def exists(self) -> bool:
        """Whether there is anything to recover."""
        return bool(self.segments() or self.snapshots())

    def recover(self) -> Iterator[FrontierSnapshot | FrontierCommit]:
        """Everything that was committed, oldest first; cuts a torn tail. Raises `UserError` for damage."""
        snapshots, segments = self.snapshots(), self.segments()
        first = snapshots[-1] if snapshots else 1
        if snapshots:
            for state in read_snapshot(self.directory / f"{first:08d}.snapshot"):
                self._sequences.update((position.partition, position.sequence) for position in state.partitions)
                yield state
        live = [n for n in segments if n >= first]
        if snapshots and not live:  # it is made before its snapshot has its name
            raise UserError(f"{self.directory / f'{first:08d}.log'} is missing; {remedy(self.directory)}")
        for expected, number in enumerate(live, first):
            path = self.directory / f"{number:08d}.log"
            if number != expected:
                raise UserError(f"{self.directory / f'{expected:08d}.log'} is missing; {remedy(self.directory)}")
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
        # An empty payload is no commit: it is how the zeros read that a power cut leaves behind the last whole frame.
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
        """Cut a torn tail off. What is not zeros goes into a file of its own, durable before the log is cut."""
        if self.read_only:
            return
        tail = bytes(data[length:])
        if tail.strip(b"\0"):
            kept = path.with_name(f"{path.name}.cut-{length}")
            try:
                with kept.open("wb") as file:
                    file.write(tail)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise disk_error(error, kept) from None
            log.warning(
                "%s ended in %d bytes of an unfinished commit; they were moved to %s", path, len(tail), kept.name
            )
        os.truncate(path, length)

    def open(self) -> None:
        """Open the newest segment for appending, or the first. Call after `recover()`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for leftover in self.directory.glob("*.tmp"):
            leftover.unlink()
        numbers = self.segments() or self.snapshots()
        self._open_segment(numbers[-1] if numbers else 1)

    def _open_segment(self, number: int) -> None:
        path = self.directory / f"{number:08d}.log"
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
            self._sync_directory()

    def append(self, commits: Iterable[FrontierCommit]) -> None:
        """Write commits in one call; all or nothing stays. Raises `UserError` when the disk refuses."""
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
        """Make what was appended survive a power cut; may be called from another thread."""
        os.fdatasync(self._fd)

    def snapshot(self, states: Iterable[FrontierSnapshot]) -> None:
        """Start a new segment, write the state before it, then delete what that makes redundant.

        `states` must be the state after everything appended so far. A crash at any point leaves the older snapshot and
        all segments after it, which say the same.
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
        self._sync_directory()
        self._delete_before(number)

    def _delete_before(self, number: int) -> None:
        for old in self.segments():
            if old < number:
                (self.directory / f"{old:08d}.log").unlink()
        for old in self.snapshots():
            if old < number:
                (self.directory / f"{old:08d}.snapshot").unlink()

    def _sync_directory(self) -> None:
        fd = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Make everything durable and let go of the file."""
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1
