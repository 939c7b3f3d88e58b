"""A Parquet dataset in a directory or an object store (`storage.dataset`), partitioned by job and day:

    job=shop/day=2026-11-22/1a2b3c4d-00000.parquet

One row per ended fetch, as in JSONL: of several rows of one (job, url_key) the one with the highest fetch_no is valid,
and a row without sha256 brought no copy. Rows wait in a spool. A segment of it becomes one object per job and day, with
the name of the segment: an upload that is repeated after a crash replaces the same object. An object appears completely
or not at all. While the store is unreachable, segments wait on the disk; each further segment and the next start try
again.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from nephila.kernel.runtime.errors import TemporaryError, UsageError, UserError
from nephila.kernel.runtime.failpoints import reach
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import COLUMNS, FETCHED_AT, JOB, TEXT, Row, RowBatch

from nephila_stores.formats.parquet_file import ParquetFile, require_arrow
from nephila_stores.remote.blobs import Blobs, open_blobs
from nephila_stores.remote.spool import Spool

log = logging.getLogger(__name__)

PROBE = "_nephila"
"""An object that is written at the start: the store is reachable and may be written to. Readers of datasets skip names
with an underscore."""
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
"""Day of a fetch without a time; readers of datasets take it as null."""
_SEGMENT_BYTES = 256 << 20
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[str | int]).decode


class Dataset:
    raw = False

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        if not config.dataset:
            raise UsageError(
                "the format dataset needs its place: set storage.dataset (NEPHILA_STORAGE__DATASET) to a directory or s3://bucket/path"
            )
        require_arrow()
        self._location = config.dataset
        self._store: Blobs = open_blobs(config.dataset)
        self._directory = config.directory
        self._limit = config.parquet_rows
        self._spool = Spool(config, ledger, "dataset")
        self._reached = False
        self._rows = 0
        self._days: set[str] = set()

    @property
    def lengths(self) -> Mapping[str, int]:
        return self._spool.lengths

    def open(self) -> None:
        """Segments of an earlier run are uploaded first."""
        if not self._reached:
            try:
                self._store.put(PROBE, b"")
            except TemporaryError as error:
                raise UserError(f"storage.dataset: {error}; check the place and its credentials") from error
            self._reached = True
        self._spool.open()
        self._rows, self._days = 0, set()
        for row in _rows(self._spool.file.path):
            self._count(row)
        self._publish()

    def stage(self, batch: RowBatch) -> None:
        buffer = bytearray()
        for row in batch.fetches():
            text = row[TEXT]
            values = [*row[: len(COLUMNS)]]
            values[TEXT] = text if isinstance(text, str) else str(text, "utf-8")
            buffer += _encode(values) + b"\n"
        if buffer:
            self._spool.append(buffer)
            for row in batch.fetches():
                self._count(row)

    def after_commit(self) -> None:
        """A segment ends at its number of rows or bytes, and with a second day."""
        self._spool.after_commit()
        if self._rows >= self._limit or self._spool.file.length >= _SEGMENT_BYTES or len(self._days) > 1:
            self._seal()
            self._publish()

    def rollback(self) -> None:
        """The count of rows is an estimate after a rollback."""
        self._spool.rollback()

    def restore(self) -> str:
        return self._spool.file.restore()

    def close(self) -> None:
        """Upload everything. Raises `UserError` if the store is unreachable; the next start tries again."""
        if not self._spool.is_open:
            return
        try:
            if self._spool.is_settled:
                self._seal()
                if not self._publish():
                    raise UserError(
                        f"storage.dataset: {self._location} is unreachable, {len(self._spool.sealed)} files wait in"
                        f" {self._directory}; run again with --resume"
                    )
        finally:
            self._spool.close()

    def _count(self, row: Row) -> None:
        self._rows += 1
        if row[FETCHED_AT]:
            self._days.add(row[FETCHED_AT][:10])

    def _seal(self) -> None:
        self._spool.seal()
        self._rows, self._days = 0, set()

    def _publish(self) -> bool:
        """Upload all sealed segments; False if the store is unreachable."""
        for segment in list(self._spool.sealed):
            try:
                self._upload(segment)
            except TemporaryError as error:
                log.warning("storage: %s; %d files of the dataset wait", error, len(self._spool.sealed))
                return False
            reach("dataset_uploaded")
            self._spool.delivered(segment)
        return True

    def _upload(self, segment: Path) -> None:
        """One object per job and day. Raises `TemporaryError`, `OSError`."""
        files: dict[str, tuple[Path, ParquetFile]] = {}
        stem = segment.stem.removeprefix("dataset-")
        try:
            with contextlib.ExitStack() as stack:
                for row in _rows(segment):
                    name = (
                        f"job={_UNSAFE.sub('_', row[JOB]) or '_'}/day={row[FETCHED_AT][:10] or NO_DAY}/{stem}.parquet"
                    )
                    if name not in files:
                        part = segment.with_suffix(f".{len(files)}.part")
                        files[name] = part, stack.enter_context(ParquetFile(part, left_out=("job",)))
                    files[name][1].extend((row,))
            for name, (part, _) in files.items():
                self._store.put(name, part)
        finally:
            for part, _ in files.values():
                part.unlink(missing_ok=True)


def _rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for line in file:
            yield tuple(_decode(line))
