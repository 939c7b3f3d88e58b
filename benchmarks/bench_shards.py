"""Rows over three PostgreSQL servers, one of them killed twice: every row once, the feed whole.

The writer is the real one of the storage service; records come in flushes of 256 and are given again until a flush is
durable, as the service does. A second writer repeats the last tenth, as after a hand-over. Autovacuum is on.

    python -m benchmarks.bench_shards [--rows 1000000] [--save]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from nephila.kernel import messages as m
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.read.changes import feed
from nephila.storage.source import shard_of
from nephila.storage.writer import Writer

from benchmarks.report import save, table
from tools.postgres import Server

FLUSH = 256
WORDS = [hashlib.md5(b"%d" % number).hexdigest()[: 3 + number % 7] for number in range(4000)]
SETTINGS = ("autovacuum=on", "shared_buffers=256MB")


def records(first: int, count: int) -> list[m.Record]:
    """Stored pages of 2.5 KB of text on hosts of a hundred pages."""
    found = []
    for number in range(first, first + count):
        rng = random.Random(number)
        text = " ".join(rng.choices(WORDS, k=400)).encode()
        host = hashlib.md5(b"h%d" % (number // 100)).digest()[:4]
        found.append(
            m.Record(
                job="bench",
                url_key=host + hashlib.md5(b"%d" % number).digest()[:12],
                url=f"http://h{number // 100}.test/p/{number}.html",
                outcome=m.Outcome.STORED,
                status=200,
                content_type="text/html",
                size_bytes=len(text),
                sha256=hashlib.sha256(text).digest(),
                text_hash=hashlib.sha256(text).digest()[:8],
                title=f"Page {number}",
                text=text,
                fetched_at=1.8e9 + number / 100,
                fetch_no=1,
                attempt=1,
                meta="{}",
            )
        )
    return found


def flushes(rows: int) -> Iterator[list[m.Record]]:
    """All records in flushes."""
    for first in range(0, rows, FLUSH):
        yield records(first, min(FLUSH, rows - first))


def write(store: str, rows: int, directory: Path, kills: dict[int, Server]) -> dict[str, float]:
    """Write all rows; before these flushes a server is killed, and started again after a second."""
    writer = Writer(StorageConfig(directory=directory, formats=("postgres",), store=store, writer="bench"))
    writer.open()
    lost, spent, began = 0, 0.0, time.monotonic()
    down: tuple[float, Server] | None = None
    longest = 0.0
    for number, batch in enumerate(flushes(rows)):
        if number in kills:
            kills[number].kill()
            down = (time.monotonic() + 1.0, kills[number])
        cpu, at = time.process_time(), time.monotonic()
        while True:
            try:
                writer.commit(batch, [None] * len(batch), [])
                break
            except StoreLost:
                lost += 1
                time.sleep(0.1)
            if down is not None and time.monotonic() > down[0]:
                down[1].start()
                down = None
        spent += time.process_time() - cpu
        longest = max(longest, time.monotonic() - at)
    wall = time.monotonic() - began
    for batch in flushes(rows // 10):  # another member has the same records
        writer.commit(batch, [None] * len(batch), [])
    writer.close()
    return {"wall_s": wall, "writer_cpu_s": spent, "lost_flushes": lost, "longest_flush_s": longest}


def check(servers: list[Server], rows: int) -> dict[str, Any]:
    """Rows, history and changes of all servers, and the merged feed."""
    totals: Counter[str] = Counter()
    per_server, wrong, sizes = [], 0, []
    for number, server in enumerate(servers):
        with psycopg.connect(server.dsn()) as connection:
            for name in ("pages", "fetches", "changes"):
                (count,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,)
                totals[name] += count
                if name == "pages":
                    per_server.append(count)
            prefixes = connection.execute("SELECT DISTINCT substr(url_key, 1, 8) FROM pages").fetchall()
            wrong += sum(shard_of(one, len(servers)) != number for (one,) in prefixes)
            (size,) = connection.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
            sizes.append(size)
    began = time.monotonic()
    store, position, seen = " ".join(server.dsn() for server in servers), "", set()
    repeated = 0
    while (page := feed(store, since=position, limit=20_000)).rows:
        position = page.next
        for row in page.rows:
            repeated += row.change.id in seen
            seen.add(row.change.id)
    return {
        **totals,
        "rows_per_server": per_server,
        "hosts_on_the_wrong_server": wrong,
        "changes_in_feed": len(seen),
        "repeated_in_feed": repeated,
        "feed_position": position,
        "feed_s": time.monotonic() - began,
        "bytes_per_row": sum(sizes) / rows,
    }


def run(count: int, rows: int, kill: bool) -> dict[str, Any]:
    """One system."""
    servers = [Server(settings=SETTINGS) for _ in range(count)]
    try:
        for server in servers:
            server.start()
        total = rows // FLUSH
        kills = {total // 3: servers[-1], 2 * total // 3: servers[-1]} if kill else {}
        with tempfile.TemporaryDirectory() as directory:
            found = write(" ".join(server.dsn() for server in servers), rows, Path(directory), kills)
        return {"servers": count, "rows": rows, "kills": len(kills), **found, **check(servers, rows)}
    finally:
        for server in servers:
            server.stop()


def main() -> None:
    """Run three servers with kills, and a tenth of the rows on one and on three without."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    tenth = options.rows // 10
    found = [run(1, tenth, False), run(3, tenth, False), run(3, options.rows, True)]
    head = [
        "servers",
        "rows",
        "kills",
        "rows/s",
        "writer CPU-ms/row",
        "pages",
        "fetches",
        "feed",
    ]
    print(
        table(
            head,
            [
                [
                    *(one["servers"], one["rows"], one["kills"], one["rows"] / one["wall_s"]),
                    *(1e3 * one["writer_cpu_s"] / one["rows"],),
                    *(one["pages"], one["fetches"], one["changes_in_feed"]),
                ]
                for one in found
            ],
        )
    )
    killed = found[-1]
    print({name: value for name, value in killed.items() if name not in ("pages", "fetches")})
    exact = all(one["pages"] == one["fetches"] == one["changes_in_feed"] == one["rows"] for one in found)
    exact = exact and not killed["repeated_in_feed"] and not killed["hosts_on_the_wrong_server"]
    print(f"every row once, every change once in the feed: {exact}; load {os.getloadavg()[0]:.1f}")
    if options.save:
        print(save("shards", {"runs": found, "exact": exact}))
    if not exact:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
