"""Records to durable rows: SQLite and PostgreSQL in one run, CPU of ours and of the server, and rows per second.

Each case writes the same records, 256 a flush, through the storage service's writer: rows made, what is durable asked,
one transaction, with the syncs that make it durable. SQLite's checkpoints are in it, and so is the server's at the end.
A server of the bench's own is started; its CPU is that of all its processes.
From the root: python -m benchmarks.bench_storage
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from nephila.kernel.messages import Outcome, Record
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer

from benchmarks import report
from benchmarks.web.prose import Prose
from tools.postgres import Server, binaries, version

FLUSH = 256
TEXTS = 64


@dataclass
class Cost:
    """µs of CPU per row, and rows per second of the clock."""

    ours_us: float
    server_us: float
    rows_s: float

    @property
    def total_us(self) -> float:
        """Ours and the server's."""
        return self.ours_us + self.server_us


Flushes = list[list[Record]]


def flushes(rows: int, text_bytes: int, seed: int) -> Flushes:
    """Records of new pages with text of about that size."""
    prose, source = Prose(seed), random.Random(seed)
    texts = [prose.text(max(2, text_bytes // 35)).encode()[:text_bytes] for _ in range(TEXTS)]
    records = [
        Record(
            job="job",
            url_key=source.randbytes(16),
            url=f"http://h{number % 100}.test/section/{number}.html",
            fetch_no=1,
            attempt=1,
            outcome=Outcome.STORED,
            status=200,
            depth=3,
            content_type="text/html",
            size_bytes=80_000,
            sha256=hashlib.sha256(b"%d" % number).digest(),
            title=f"A title of page {number}",
            text=texts[number % TEXTS],
            lang="en",
            etag=f'"{number:x}"',
            meta='{"description": "some words"}',
            fetched_at=1.7e9 + number,
        )
        for number in range(rows)
    ]
    return [records[start : start + FLUSH] for start in range(0, rows, FLUSH)]


def again(batches: Flushes) -> Flushes:
    """The same pages fetched again, with the same text."""
    return [
        [Record(**{**{n: getattr(one, n) for n in one.__struct_fields__}, "fetch_no": 2}) for one in batch]
        for batch in batches
    ]


def write(writer: Writer, batches: Flushes) -> None:
    """Flush after flush."""
    for batch in batches:
        writer.commit(batch, [None] * len(batch), [])
        writer.after_commit()


def measured(rows: int, work: Callable[[], None], server: Server | None) -> Cost:
    """Run it; the server's share is counted to the end of its checkpoint."""
    before = server.cpu_s() if server else 0.0
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    if server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
    after = server.cpu_s() if server else 0.0
    return Cost(cpu / rows * 1e6, (after - before) / rows * 1e6, rows / wall)


@contextmanager
def opened(server: Server | None, number: int = 0) -> Iterator[Writer]:
    """A writer into a new file, or into a database of the server."""
    with tempfile.TemporaryDirectory() as folder:
        url = server.dsn("bench") if server else ""
        writer = Writer(StorageConfig(directory=Path(folder), store=url, writer=f"w{number}"))
        writer.open()
        try:
            yield writer
        finally:
            writer.close()


def fresh(server: Server, compression: str = "") -> None:
    """An empty database; `compression` other than the one a crawl would choose."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bench")
        connection.execute("CREATE DATABASE bench TEMPLATE template0")
    if compression:
        with opened(server), psycopg.connect(server.dsn("bench"), autocommit=True) as connection:
            connection.execute(f"ALTER TABLE pages ALTER COLUMN text SET COMPRESSION {compression}")


def shards(server: Server, parts: Sequence[Flushes]) -> None:
    """Several writers at once, each with its own keys, as after `kubectl scale`."""

    def run(number: int, batches: Flushes) -> None:
        with opened(server, number) as writer:
            write(writer, batches)

    threads = [threading.Thread(target=run, args=part) for part in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_partition(batches: Flushes, count: int) -> list[Flushes]:
    """The records divided as the ring divides partitions: by the first bits of the key."""
    records = [one for batch in batches for one in batch]
    parts = [[one for one in records if one.url_key[0] * count // 256 == number] for number in range(count)]
    return [[part[start : start + FLUSH] for start in range(0, len(part), FLUSH)] for part in parts]


def series(name: str, server: Server | None, rows: int, text_bytes: int) -> dict[str, Cost]:
    """New rows, the same rows delivered again, the same pages fetched again."""
    batches = flushes(rows, text_bytes, 1)
    anew = again(batches)
    kb = f"{text_bytes / 1000:g} KB"
    with opened(server) as writer:
        return {
            f"{name}, new rows of {kb}": measured(rows, lambda: write(writer, batches), server),
            f"{name}, {kb}, delivered again": measured(rows, lambda: write(writer, batches), server),
            f"{name}, {kb}, fetched anew": measured(rows, lambda: write(writer, anew), server),
        }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_storage", description="Records to durable rows.")
    parser.add_argument("--rows", type=int, default=10_240)
    args = parser.parse_args()
    rows: int = args.rows
    found: dict[str, Cost] = {}
    server = Server(fsync=True)
    try:
        server.start()
        for text_bytes in (15_000, 1_500):
            found |= series("SQLite", None, rows, text_bytes)
            fresh(server)
            found |= series("PostgreSQL", server, rows, text_bytes)
        fresh(server, "pglz")
        batches = flushes(rows, 15_000, 1)
        with opened(server) as writer:
            found["PostgreSQL, new rows of 15 KB, pglz"] = measured(rows, lambda: write(writer, batches), server)
        for count in (2, 4):
            fresh(server)
            with opened(server):
                parts = by_partition(batches, count)
            found[f"PostgreSQL, 15 KB, {count} writers"] = measured(rows, lambda p=parts: shards(server, p), server)  # type: ignore[misc]
    finally:
        server.stop()
    head = ("case", "ours µs/row", "server µs/row", "together", "rows/s")
    print(report.table(head, [(n, c.ours_us, c.server_us, c.total_us, c.rows_s) for n, c in found.items()]))
    data = {
        "rows": rows,
        "server": version(binaries()),
        "versions": report.versions("psycopg", "psycopg-binary"),
        "cases": {name: {key: round(value, 1) for key, value in asdict(cost).items()} for name, cost in found.items()},
    }
    print(report.save("storage", data))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
