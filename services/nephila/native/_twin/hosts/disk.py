"""Checkpoints of the twin: every one writes all of it as one run and one table; a restore reads all of it.

Invariant: files are only added until `cleanup`, so what the manifest before named stays as it was. The core merges its
runs by size instead, and reads URLs when they are wanted; the files are the same.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from nephila.native._twin.hosts import files, table, wire

Queues = list[tuple[int, list[tuple[int, bytes]]]]
"""(job, its (sort key, packed URL) in order)."""
Found = tuple[str, float | None, bytes, Queues]
"""(name, ready_at, blob, queues) of one host."""


class Directory:
    """The files of one store."""

    def __init__(self, path: str, read_only: bool) -> None:
        self._path = Path(path)
        self._named: set[str] | None = None
        self.read_only = read_only
        self.runs = 0
        self.run_bytes = 0
        self.written_bytes = 0

    def save(self, arrivals: int, hosts: Iterable[Found]) -> bytes:
        """Write a run and its table; the manifest. OSError when the disk refuses: then nothing has changed."""
        self._path.mkdir(parents=True, exist_ok=True)
        number = max((n for n, _ in files.numbers(self._path)), default=0) + 1
        rows: list[table.Row] = []
        run = table.Run(number, 0, 0)

        def write(file: BinaryIO) -> None:
            writer = files.RunWriter(file)
            rows.extend(_row(writer, host) for host in hosts)
            run.id, run.bytes = writer.id, writer.finish()

        path, table_path = files.path_of(self._path, number, "run"), files.path_of(self._path, number, "hosts")
        files.write(path, write)
        data = table.encode(table.Table(arrivals, [run], rows))
        try:
            files.write(table_path, lambda file: file.writelines([data]))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._named = {path.name, table_path.name}
        self.runs, self.run_bytes = 1, run.bytes
        self.written_bytes += run.bytes + len(data)
        return table.manifest(number, data)

    def load(self, manifest: bytes, add: Callable[[Found], None]) -> int:
        """Read all that a manifest names; the arrivals so far. ValueError for what is missing, foreign or damaged."""
        number, size, checksum = table.read_manifest(manifest)
        path = files.path_of(self._path, number, "hosts")
        data = _read(path)
        wire.check_head(path, data, wire.TABLE_MAGIC)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise wire.damaged(path, len(data))
        content = table.decode(path, data)
        paths = [files.path_of(self._path, run.number, "run") for run in content.runs]
        bodies = [_open(path, run) for path, run in zip(paths, content.runs, strict=True)]
        dead = [set(run.tombstones) for run in content.runs]
        reader = _Reader(paths, bodies, dead)
        for row in content.rows:
            add(reader.host(row))
        self._named = {path.name for path in (*paths, path)}
        self.runs, self.run_bytes = len(paths), sum(run.bytes for run in content.runs)
        return content.arrivals

    def cleanup(self) -> None:
        """Delete what the last save or load does not name; nothing when there was none, or when read-only."""
        if self.read_only or self._named is None:
            return
        for _, path in files.numbers(self._path):
            if path.name not in self._named:
                path.unlink(missing_ok=True)


def _row(writer: files.RunWriter, host: Found) -> table.Row:
    name, ready_at, state, queues = host
    blob = None
    if state:
        start = writer.at
        writer.add(0, state)
        blob = table.Place(0, start, writer.at - start)
    return table.Row(name, ready_at, blob, [(job, [_slice(writer, items)]) for job, items in queues])


def _slice(writer: files.RunWriter, items: list[tuple[int, bytes]]) -> table.Slice:
    start = writer.at
    for key, packed in items:
        writer.add(key, packed)
    return table.Slice(table.Place(0, start, writer.at - start), len(items), items[0][0])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; restore it from a backup") from None


def _open(path: Path, run: table.Run) -> files.Body:
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; restore it from a backup") from None
    files.check_run(path, data, run.bytes, run.id)
    return data


class _Reader:
    """Follows the places of a table into its runs."""

    def __init__(self, paths: list[Path], bodies: list[files.Body], dead: list[set[int]]) -> None:
        self._paths = paths
        self._bodies = bodies
        self._dead = dead

    def host(self, row: table.Row) -> Found:
        """Name, ready_at, blob and queues of a row."""
        blob = b"".join(data for _, data in self._alive(row.blob)) if row.blob else b""
        queues = [(job, sorted(item for part in slices for item in self._urls(part))) for job, slices in row.queues]
        return row.name, row.ready_at, blob, queues

    def _urls(self, part: table.Slice) -> list[tuple[int, bytes]]:
        items = self._alive(part.place)
        if len(items) != part.live or not items or items[0][0] != part.key:
            raise wire.damaged(self._paths[part.place.run], part.place.offset)
        return items

    def _alive(self, place: table.Place) -> list[tuple[int, bytes]]:
        path, body, dead = self._paths[place.run], self._bodies[place.run], self._dead[place.run]
        found = files.entries(path, body, place.offset, place.length)
        return [(key, data) for offset, key, data in found if offset not in dead]
