"""Run files: queued URLs and state blobs as framed entries, immutable once they have their name.

    queue-NNNNNNNN.run     head, zero u32, id u64, entries, end
    entry                  CRC-32 u32 of what follows, length u32, sort key u64 (0 for a blob), data
    end                    "NPHQEND\\0", entries u64, bytes of the file u64, id u64, CRC-32 u32 of the end

Invariant: a file is written under another name, fsynced and renamed, so a whole name means a whole file. What in a run
is still alive is not said here but in the table.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from nephila.native._twin.hosts import wire

ENTRY = struct.Struct("<IIQ")
_REST = struct.Struct("<IQ")
_START = struct.Struct("<IQ")
START = wire.HEAD + _START.size
_END = struct.Struct("<8sQQQ")
END = _END.size + 4
Body = bytes | mmap.mmap


def path_of(directory: Path, number: int, kind: str) -> Path:
    """The name of a file; `kind` is "run" or "hosts"."""
    return directory / f"queue-{number:08d}.{kind}"


def numbers(directory: Path) -> list[tuple[int, Path]]:
    """All files of a store, with the number in their name."""
    found = []
    for path in directory.glob("queue-*"):
        digits = path.name[6:].partition(".")[0]
        if path.name.endswith((".run", ".hosts", ".tmp")) and digits.isdecimal():
            found.append((int(digits), path))
    return sorted(found)


def write(path: Path, body: Callable[[BinaryIO], None]) -> None:
    """Write a file that is there wholly or not at all, and survives a power cut. OSError when the disk refuses."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            body(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RunWriter:
    """Appends entries to a run; `finish` ends it. `at` is where the next entry begins."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.id = int.from_bytes(os.urandom(8), "little")
        self.at = START
        self.entries = 0
        file.write(wire.head(wire.RUN_MAGIC) + _START.pack(0, self.id))

    def add(self, key: int, data: bytes) -> None:
        """One entry."""
        rest = _REST.pack(len(data), key)
        self._file.write(struct.pack("<I", zlib.crc32(data, zlib.crc32(rest))) + rest)
        self._file.write(data)
        self.at += ENTRY.size + len(data)
        self.entries += 1

    def finish(self) -> int:
        """Write the end; the bytes of the file."""
        size = self.at + END
        self._file.write(wire.seal(_END.pack(wire.RUN_END, self.entries, size, self.id)))
        return size


def check_run(path: Path, data: Body, size: int, identity: int) -> None:
    """ValueError unless this is the run of `size` bytes with this id."""
    wire.check_head(path, data[: wire.HEAD], wire.RUN_MAGIC)
    if len(data) != size or size < START + END:
        raise wire.damaged(path, len(data))
    end = _END.unpack(wire.unseal(path, data[size - END : size]))
    if end[0] != wire.RUN_END or end[2] != size or not _START.unpack_from(data, wire.HEAD)[1] == end[3] == identity:
        raise ValueError(f"{path} belongs to another host store; restore it from a backup")


def entries(path: Path, data: Body, offset: int, length: int) -> Iterator[tuple[int, int, bytes]]:
    """(offset, sort key, data) of the entries in a stretch; ValueError when one is damaged or ends beyond it."""
    end = offset + length
    while offset < end:
        if end - offset < ENTRY.size:
            raise wire.damaged(path, offset)
        checksum, size, key = ENTRY.unpack_from(data, offset)
        start = offset + ENTRY.size
        if size > end - start or zlib.crc32(data[offset + 4 : start + size]) != checksum:
            raise wire.damaged(path, offset)
        yield offset, key, data[start : start + size]
        offset = start + size
