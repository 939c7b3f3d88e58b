"""The table of hosts of one checkpoint, and the manifest that names it. Layouts: ../../README.md.

Invariant: `decode(encode(table)) == table`; everything that is alive in the runs is reached from here, once.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nephila.native._twin.hosts import wire

_ID = struct.Struct("<Q")
_AT = struct.Struct("<d")
_SCHEDULED, _BLOB = 1, 2
_ARRIVAL_BYTES = 5
_MANIFEST = struct.Struct("<IQI")
_MANY = 2**32 - 1


@dataclass(slots=True)
class Run:
    """A run file that the table refers to, and the offsets in it of entries that were taken out of order."""

    number: int
    bytes: int
    id: int
    tombstones: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Place:
    """Where something lies: index of the run, byte offset, bytes with their entry headers."""

    run: int
    offset: int
    length: int


@dataclass(slots=True)
class Slice:
    """What one queue has in one run: `live` URLs, the first of them with sort key `key`."""

    place: Place
    live: int
    key: int


@dataclass(slots=True)
class Row:
    """One host."""

    name: str
    ready_at: float | None
    blob: Place | None
    queues: list[tuple[int, list[Slice]]]


@dataclass(slots=True)
class Table:
    """All of a checkpoint."""

    arrivals: int
    runs: list[Run]
    rows: list[Row]


class _Places:
    """Places as distances from the end of the one before in the same run: one or two bytes instead of five."""

    def __init__(self, runs: int) -> None:
        self._ends = [0] * runs

    def encode(self, place: Place) -> bytes:
        distance = place.offset - self._ends[place.run]
        self._ends[place.run] = place.offset + place.length
        return wire.varint(place.run) + wire.zigzag(distance) + wire.varint(place.length)

    def decode(self, data: wire.Cursor, runs: list[Run]) -> Place:
        run = data.varint(len(runs) - 1)
        offset = self._ends[run] + data.zigzag()
        length = data.varint(runs[run].bytes)
        if offset < 0 or offset + length > runs[run].bytes:
            raise ValueError(offset)
        self._ends[run] = offset + length
        return Place(run, offset, length)


def encode(table: Table) -> bytes:
    """The bytes of the table's file. O(hosts + slices)."""
    places = _Places(len(table.runs))
    out = [wire.head(wire.TABLE_MAGIC), wire.varint(table.arrivals), wire.varint(len(table.runs))]
    for run in table.runs:
        out += [wire.varint(run.number), wire.varint(run.bytes), _ID.pack(run.id), *_rising(run.tombstones)]
    out.append(wire.varint(len(table.rows)))
    for row in table.rows:
        out += _row(row, places)
    return wire.seal(b"".join(out))


def _rising(offsets: list[int]) -> Iterator[bytes]:
    yield wire.varint(len(offsets))
    last = 0
    for offset in offsets:
        yield wire.varint(offset - last)
        last = offset


def _row(row: Row, places: _Places) -> Iterator[bytes]:
    name = row.name.encode()
    flags = (_SCHEDULED if row.ready_at is not None else 0) | (_BLOB if row.blob else 0)
    yield wire.varint(len(name)) + name + bytes([flags])
    if row.ready_at is not None:
        yield _AT.pack(row.ready_at)
    if row.blob:
        yield places.encode(row.blob)
    yield wire.varint(len(row.queues))
    for job, slices in row.queues:
        yield wire.varint(job) + wire.varint(len(slices))
        for part in slices:
            yield places.encode(part.place) + wire.varint(part.live) + wire.varint(part.key >> 40)
            yield (part.key & (1 << 40) - 1).to_bytes(_ARRIVAL_BYTES, "little")


def decode(path: Path, data: bytes) -> Table:
    """The inverse of `encode`. ValueError for another version, a wrong checksum, or what cannot be."""
    wire.check_head(path, data, wire.TABLE_MAGIC)
    cursor = wire.Cursor(path, wire.unseal(path, data), wire.HEAD)
    arrivals = cursor.varint(1 << 39)
    runs = [_decode_run(cursor) for _ in range(cursor.varint(_MANY))]
    places = _Places(len(runs))
    try:
        rows = [_decode_row(cursor, places, runs) for _ in range(cursor.varint(_MANY))]
    except ValueError:
        raise wire.damaged(path, cursor.at) from None
    cursor.end()
    return Table(arrivals, runs, rows)


def _decode_run(cursor: wire.Cursor) -> Run:
    run = Run(cursor.varint(_MANY), cursor.varint(), _ID.unpack(cursor.take(8))[0])
    last = 0
    for _ in range(cursor.varint(run.bytes)):
        last += cursor.varint(run.bytes)
        run.tombstones.append(last)
    return run


def _decode_row(cursor: wire.Cursor, places: _Places, runs: list[Run]) -> Row:
    name = cursor.take(cursor.varint(65535)).decode()
    flags = cursor.take(1)[0]
    ready_at = _AT.unpack(cursor.take(8))[0] if flags & _SCHEDULED else None
    if ready_at is not None and math.isnan(ready_at):
        raise ValueError(ready_at)
    blob = places.decode(cursor, runs) if flags & _BLOB else None
    queues = []
    for _ in range(cursor.varint(65536)):
        job = cursor.varint(0xFFFFFFFF)
        queues.append((job, [_decode_slice(cursor, places, runs) for _ in range(cursor.varint(len(runs)))]))
    return Row(name, ready_at, blob, queues)


def _decode_slice(cursor: wire.Cursor, places: _Places, runs: list[Run]) -> Slice:
    place = places.decode(cursor, runs)
    live = cursor.varint(_MANY)
    key = cursor.varint((1 << 24) - 1) << 40 | int.from_bytes(cursor.take(_ARRIVAL_BYTES), "little")
    return Slice(place, live, key)


def manifest(number: int, data: bytes) -> bytes:
    """What a checkpoint returns: number, length and checksum of its table."""
    return wire.seal(wire.head(wire.MANIFEST_MAGIC) + _MANIFEST.pack(number, len(data), zlib.crc32(data)))


def read_manifest(data: bytes) -> tuple[int, int, int]:
    """(number, bytes, CRC-32) of the table. ValueError for anything that is no manifest of this version."""
    wire.check_head("the manifest of the host store", data, wire.MANIFEST_MAGIC)
    body = wire.unseal("the manifest of the host store", data)
    if len(body) != wire.HEAD + _MANIFEST.size:
        raise wire.damaged("the manifest of the host store", len(body))
    number, size, checksum = _MANIFEST.unpack_from(body, wire.HEAD)
    return number, size, checksum
