"""The run files of a trie and the manifest that names them: layouts in ../core/src/trie/run.rs and home.rs.

Invariant: a file that a manifest given out since the last `cleanup` names is never changed or removed.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

_RUN, _MANIFEST = b"NEPHSEEN", b"NEPHTRIE"
_VERSION = 1
_HEAD = struct.Struct("<8sII")
_FOOT = struct.Struct("<QQQII8s")
_MANIFEST_HEAD = struct.Struct("<8sIQI")
_PAGE = 4096
_MOST_RUNS = 8

Ranges = Sequence[tuple[bytes, bytes]]


class Stamp(NamedTuple):
    """What a run file is known by."""

    number: int
    keys: int
    removed: int
    ranges: int
    crc: int


_STAMP = struct.Struct("<QQQQI")


def _pages(data: bytes) -> list[bytes]:
    return [data[at : at + _PAGE] for at in range(0, len(data), _PAGE)]


def _apart(ranges: Ranges) -> list[tuple[bytes, bytes]]:
    """The same ranges, sorted and apart from each other."""
    out: list[tuple[bytes, bytes]] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(last, out[-1][1]))
        else:
            out.append((first, last))
    return out


class Runs:
    """The files of one name in a directory, oldest first."""

    def __init__(self, directory: str, name: str) -> None:
        os.makedirs(directory, exist_ok=True)
        self.directory, self.name = directory, name
        self.files: list[Stamp] = []
        self._named: set[int] = set()
        self._kept: set[int] = set()
        self._next = max(self._there(), default=0) + 1

    def _path(self, number: int) -> Path:
        return Path(self.directory) / f"seen-{self.name}-{number:08}.run"

    def _there(self) -> list[int]:
        pattern = re.compile(rf"seen-{re.escape(self.name)}-([0-9]{{8,}})\.run")
        found = (pattern.fullmatch(file) for file in os.listdir(self.directory))
        return [int(match[1]) for match in found if match]

    def write(self, keys: list[bytes], removed: list[bytes], ranges: Ranges) -> None:
        """Write a new newest run; where many are there, all become one."""
        self.files.append(self._write(keys, removed, ranges))
        if len(self.files) <= _MOST_RUNS:
            return
        united = self._write(sorted(self._read_all(self.files)), [], [])
        for stamp in self.files:
            if stamp.number not in self._kept:
                self._path(stamp.number).unlink()
        self.files = [united]

    def _write(self, keys: list[bytes], removed: list[bytes], ranges: Ranges) -> Stamp:
        number = self._next
        self._next += 1
        apart = _apart(ranges)
        parts = [b"".join(keys), b"".join(removed), b"".join(chain.from_iterable(apart))]
        pages = [page for part in parts for page in _pages(part)]
        table = b"".join(page[:16] + struct.pack("<I", crc32(page)) for page in pages)
        stamp = Stamp(number, len(keys), len(removed), len(apart), crc32(table))
        foot = _FOOT.pack(*stamp[1:], _VERSION, _RUN)
        with open(self._path(number), "xb") as file:
            file.write(b"".join([_HEAD.pack(_RUN, _VERSION, 0), *parts, table, foot]))
            file.flush()
            os.fsync(file.fileno())
        return stamp

    def _read(self, stamp: Stamp) -> tuple[list[bytes], list[bytes], list[tuple[bytes, bytes]]]:
        path = self._path(stamp.number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ValueError(f"{path}: missing") from None
        sizes = [16 * stamp.keys, 16 * stamp.removed, 32 * stamp.ranges]
        rows = sum(-(-size // _PAGE) for size in sizes)
        size = _HEAD.size + sum(sizes) + 20 * rows + _FOOT.size
        if len(data) != size:
            raise ValueError(f"{path}: torn: {len(data)} bytes, not {size}")
        foot = _FOOT.unpack(data[-_FOOT.size :])
        if foot[5] != _RUN:
            raise ValueError(f"{path}: not a run of the trie")
        if foot[4] != _VERSION:
            raise ValueError(f"{path}: version {foot[4]}, this program reads {_VERSION}")
        table = data[size - _FOOT.size - 20 * rows : size - _FOOT.size]
        if foot[:4] != stamp[1:] or crc32(table) != stamp.crc:
            raise ValueError(f"{path}: wrong checksum of its table")
        parts, at, row = [], _HEAD.size, 0
        for length in sizes:
            part = data[at : at + length]
            for page in _pages(part):
                if struct.unpack_from("<I", table, 20 * row + 16)[0] != crc32(page):
                    raise ValueError(f"{path}: wrong checksum at byte {at}")
                row, at = row + 1, at + len(page)
            parts.append([part[i : i + 16] for i in range(0, length, 16)])
        bounds = parts[2]
        return parts[0], parts[1], list(zip(bounds[::2], bounds[1::2], strict=True))

    def _read_all(self, stamps: list[Stamp]) -> set[bytes]:
        there: set[bytes] = set()
        for stamp in stamps:
            keys, removed, ranges = self._read(stamp)
            if ranges:
                there = {key for key in there if not any(first <= key <= last for first, last in ranges)}
            there.difference_update(removed)
            there.update(keys)
        return there

    def manifest(self, count: int) -> bytes:
        """Make the directory durable (the files are) and name the runs."""
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._named = {stamp.number for stamp in self.files}
        self._kept |= self._named
        head = _MANIFEST_HEAD.pack(_MANIFEST, _VERSION, count, len(self.files))
        body = head + b"".join(_STAMP.pack(*stamp) for stamp in self.files)
        return body + struct.pack("<I", crc32(body))

    def open(self, manifest: bytes) -> set[bytes]:
        """The keys that the runs of a manifest hold."""
        count, stamps = self._parse(manifest)
        there = self._read_all(stamps)
        if len(there) != count:
            raise ValueError(f"manifest of the trie: {count} keys, its runs have {len(there)}")
        self.files = stamps
        self._named = {stamp.number for stamp in stamps}
        self._kept = set(self._named)
        self._next = max([self._next - 1, *self._named]) + 1
        return there

    @staticmethod
    def _parse(manifest: bytes) -> tuple[int, list[Stamp]]:
        if len(manifest) < _MANIFEST_HEAD.size + 4 or manifest[:8] != _MANIFEST:
            raise ValueError("manifest of the trie: not one")
        _, version, count, runs = _MANIFEST_HEAD.unpack_from(manifest)
        if version != _VERSION:
            raise ValueError(f"manifest of the trie: version {version}, this program reads {_VERSION}")
        body, end = manifest[:-4], struct.unpack("<I", manifest[-4:])[0]
        if crc32(body) != end or len(body) != _MANIFEST_HEAD.size + runs * _STAMP.size:
            raise ValueError("manifest of the trie: wrong checksum")
        return count, [Stamp(*row) for row in _STAMP.iter_unpack(body[_MANIFEST_HEAD.size :])]

    def cleanup(self) -> int:
        """Remove the files that neither the last manifest nor the trie needs; returns how many."""
        used = {stamp.number for stamp in self.files} | self._named
        gone = [number for number in self._there() if number not in used]
        for number in gone:
            self._path(number).unlink()
        self._kept = set(self._named)
        return len(gone)
