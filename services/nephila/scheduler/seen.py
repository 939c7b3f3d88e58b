"""Seen: the URL-seen test of one job. A view of the commit log; what it writes is part of that log's snapshots.

A checkpoint writes the fingerprints that are new since the last one as an immutable sorted run, so that it costs what
is new and not what there is. Runs are merged into one when there are many; a restart loads them all.

    seen-JOB-NNNNNNNN.run   magic, version u32, CRC-32 u32 of the rest, fingerprints of 16 bytes
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final

import msgspec

from nephila.native import SeenSet

MAX_RUNS: Final = 8
_MAGIC: Final = b"NPHSEEN\0"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sII")
_decode_manifest = msgspec.msgpack.Decoder(list[str]).decode


class Seen:
    """A set of 16-byte fingerprints, asked in batches: one buffer per page instead of one call per link."""

    def __init__(self, directory: str, number: int) -> None:
        self._directory = Path(directory)
        self._prefix = f"seen-{number:05d}-"
        self._set = SeenSet()
        self._new = bytearray()
        self._runs: list[str] = []
        self._last = 0

    def missing(self, fingerprints: bytes) -> list[int]:
        """Indices of the records in the buffer that are not in the set, each fingerprint once."""
        return self._set.missing(fingerprints)

    def add(self, fingerprints: bytes) -> int:
        """Insert the records of the buffer; returns how many were new."""
        added = self._set.add(fingerprints)
        if added:
            self._new += fingerprints
        return added

    def __contains__(self, fingerprint: bytes) -> bool:
        return fingerprint in self._set

    def __len__(self) -> int:
        return len(self._set)

    def checkpoint(self) -> bytes:
        """Make what is new durable; returns the names of all runs, which the caller keeps. Runs of the checkpoint
        before stay until `cleanup`. Raises OSError. O(new), amortised O(log) rewrites of each fingerprint."""
        if self._new or len(self._runs) > MAX_RUNS:
            whole = len(self._runs) >= MAX_RUNS
            name = self._write(self._set.dump() if whole else bytes(self._new))
            self._runs = [name] if whole else [*self._runs, name]
            self._new.clear()
        return msgspec.msgpack.encode(self._runs)

    def _write(self, fingerprints: bytes) -> str:
        self._last += 1
        name = f"{self._prefix}{self._last:08d}.run"
        path = self._directory / name
        temporary = path.with_suffix(".tmp")
        try:
            with temporary.open("wb") as file:
                file.write(_HEADER.pack(_MAGIC, _VERSION, zlib.crc32(fingerprints)))
                file.write(fingerprints)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return name

    def restore(self, manifest: bytes) -> None:
        """Load the runs of a checkpoint. Raises ValueError that names the file and what is wrong with it."""
        self._runs = _decode_manifest(manifest)
        for name in self._runs:
            self._set.load(_read(self._directory / name))
            self._last = max(self._last, int(name.removesuffix(".run").rpartition("-")[2]))

    def cleanup(self) -> None:
        """Delete runs that the last checkpoint does not name."""
        for path in self._directory.glob(f"{self._prefix}*.run"):
            if path.name not in self._runs:
                path.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    if len(data) < _HEADER.size:
        raise ValueError(f"{path} is cut off")
    magic, version, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError(f"{path} is not a file of seen URLs")
    if version != _VERSION:
        raise ValueError(f"{path} was written in format {version}, this program reads {_VERSION}")
    fingerprints = data[_HEADER.size :]
    if len(fingerprints) % 16 or zlib.crc32(fingerprints) != checksum:
        raise ValueError(f"{path} is damaged")
    return fingerprints
