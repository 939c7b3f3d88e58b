"""Queues per host on SQLite and on RocksDB, for the bench of the host store: the same pushes, the same pops.

Durable as ours is: at a checkpoint, not at every page. Neither has a workbench or states here, which would cost more.
"""

import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol


class Rival(Protocol):
    """The operations of a rival."""

    def push_many(self, hosts: Sequence[int], job: int, orders: Sequence[int], packed: Sequence[bytes]) -> None:
        """Queue a page's URLs."""

    def pop(self, host: int, job: int) -> bytes | None:
        """The next URL of a host, taken out."""

    def checkpoint(self) -> Any:
        """Make it survive a power cut."""


class Sqlite:
    """One table in the order of its key; write-ahead log."""

    def __init__(self, directory: str) -> None:
        self._base = sqlite3.connect(Path(directory) / "queues.sqlite", isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA cache_size = -65536")
        self._base.execute(
            "CREATE TABLE queue (host INT, job INT, place INT, packed BLOB, PRIMARY KEY (host, job, place))"
            " WITHOUT ROWID"
        )
        self._base.execute("BEGIN")
        self._arrivals = 0

    def push_many(self, hosts: Sequence[int], job: int, orders: Sequence[int], packed: Sequence[bytes]) -> None:
        """Queue a page's URLs."""
        first, self._arrivals = self._arrivals, self._arrivals + len(hosts)
        rows = zip(hosts, orders, packed, strict=True)
        self._base.executemany(
            "INSERT INTO queue VALUES (?, ?, ?, ?)",
            [(host, job, order << 40 | first + n, url) for n, (host, order, url) in enumerate(rows)],
        )

    def pop(self, host: int, job: int) -> bytes | None:
        """The next URL of a host, taken out."""
        found = self._base.execute(
            "SELECT place, packed FROM queue WHERE host = ? AND job = ? ORDER BY place LIMIT 1", (host, job)
        ).fetchone()
        if found is None:
            return None
        self._base.execute("DELETE FROM queue WHERE host = ? AND job = ? AND place = ?", (host, job, found[0]))
        packed: bytes = found[1]
        return packed

    def checkpoint(self) -> None:
        """Commit and fsync."""
        self._base.execute("COMMIT")
        self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._base.execute("BEGIN")


class Rocks:
    """Keys of host, job and place; a pop is a seek and a delete."""

    def __init__(self, directory: str) -> None:
        from rocksdict import Options, Rdict, WriteBatch  # not a dependency: pip install rocksdict

        options = Options(raw_mode=True)
        options.create_if_missing(True)
        self._base, self._batch = Rdict(str(Path(directory) / "rocks"), options), WriteBatch
        self._arrivals = 0

    def push_many(self, hosts: Sequence[int], job: int, orders: Sequence[int], packed: Sequence[bytes]) -> None:
        """Queue a page's URLs."""
        batch = self._batch(raw_mode=True)
        for host, order, url in zip(hosts, orders, packed, strict=True):
            batch.put(struct.pack(">IHQ", host, job, order << 40 | self._arrivals), url)
            self._arrivals += 1
        self._base.write(batch)

    def pop(self, host: int, job: int) -> bytes | None:
        """The next URL of a host, taken out."""
        prefix = struct.pack(">IH", host, job)
        cursor = self._base.iter()
        cursor.seek(prefix)
        if not cursor.valid() or not cursor.key().startswith(prefix):
            return None
        key, packed = cursor.key(), bytes(cursor.value())
        self._base.delete(key)
        return packed

    def checkpoint(self) -> None:
        """Flush the memory tables and the log."""
        self._base.flush_wal(True)
        self._base.flush(True)


RIVALS: dict[str, Callable[[str], Rival]] = {"sqlite": Sqlite, "rocksdb": Rocks}
