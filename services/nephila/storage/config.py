"""Settings of the storage service."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nephila.kernel.runtime.config import Positive
from nephila.kernel.topics import DEFAULT_PARTITIONS


class StorageConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written where, and how often."""

    directory: Path
    """Where nephila.db and the files lie; made when it does not exist."""

    formats: tuple[str, ...] = ("sqlite",)
    """Names from `BACKENDS`; a ledger (sqlite, or postgres with `store`) is always on."""

    store: str = ""
    """postgresql://user@host:5432/database of the rows; empty: nephila.db in `directory`."""

    writer: str = ""
    """Name of this writer, under which a database that others write to as well keeps the lengths of its files."""

    archive: str = ""
    """Part of the names of WARC files, such as the job and when it began: archives of many crawls may lie together."""

    partitions: Positive = DEFAULT_PARTITIONS
    """Partitions of the keyed topics, the same everywhere; the receipt of a dead record is sent by it."""

    patience_s: float = 300.0
    """Seconds a database that was there and is gone is waited for before the run fails; 0 = for ever."""

    wait_at_start: bool = False
    """A database that is away when the service starts is waited for as well, not ready meanwhile. Over Kafka; in one
    program a person is there to hear of it."""

    batch_rows: Positive = 256
    """Rows that start a flush: one fsync and a few statements are shared by as many pages."""

    batch_bytes: Positive = 16 * 1024 * 1024
    """Bytes of text and bodies that start a flush, so that pages of 10 MB do not pile up 256 deep."""

    flush_interval_s: float = 0.25
    """Seconds after the first waiting record until a flush starts: how long an ended URL waits for its receipt."""

    credits: Positive = 2048
    """Records taken from the bus and not yet durable: the memory bound, 0.5 s at 4,000 pages/s."""

    raw_credits: Positive = 8192
    """Raw pages held until their record comes; above `credits`, as a page is seen before it is parsed."""

    fsync: bool = True
    """False leaves durability to the operating system: a power cut may lose the last seconds. For tests and benches."""

    wal_bytes: int = 16 * 1024 * 1024
    """Bytes of write-ahead log after which it is copied into the database; a small log stays in the CPU's cache."""

    check_bytes: int = 1_000_000_000
    """Size of nephila.db up to which all its pages are checked before it is opened, some seconds for the largest; of a
    larger one only the small tables."""

    warc_bytes: int = 1_000_000_000
    """Bytes after which a WARC file is closed and the next begun (the usual size of the field)."""

    raw_bytes: int = 1_000_000_000
    """Bytes after which a file of bodies (format raw) is closed and the next begun."""

    raw_total_bytes: int = 100_000_000_000
    """Bytes of all such files, packed; of pages beyond only their heads are kept, and the log says so. 0 = no limit."""

    raw_wait_s: float = 60.0
    """Seconds a raw page waits for its record before it is written without: over a broker another member may have
    taken the record."""

    parquet_rows: Positive = 50_000
    """Rows of a Parquet file; it is written between two flushes, so a larger file is a longer pause."""
