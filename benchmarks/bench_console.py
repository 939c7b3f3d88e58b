"""Server time of each screen of the console over a store of many rows.

    python -m benchmarks.bench_console [--rows 100000] [--repeats 5]

The store is made by SQL: stored pages of 3 KB on 1,000 hosts, 8 % of them failed, one fetch each; an item for every
tenth page. Requests pass the whole application, without a socket. The first request of a screen is printed beside the
median: it compiles the template, and the first look at the counts by reason reads fetches.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from nephila.native import parse_url
from nephila.storage.ledgers.schema import prepare
from nephila.storage.rows import COLUMNS

from tests.console.console_rig import console

SCREENS = (
    *("", "jobs", "jobs/news", "jobs/news/edit", "pages", "pages?outcome=failed", "pages?reason=http_404&job=news"),
    *(
        "pages?q=page+99",
        "pages?q=not-there",
        "page?url=http%3A%2F%2Fh7.test%2F7",
        "hosts",
        "items",
        "items?q=not-there",
    ),
    *("rules", "sites", "system"),
)
BATCH = 20_000
TEXT = "Rivers carry silt and gravel to the sea, and the delta grows by some metres each year. " * 34


def fill(directory: Path, rows: int) -> None:
    """Write the store."""
    values = dict.fromkeys(COLUMNS, "") | dict.fromkeys(("depth", "rule_version", "near_copy_bits"), 0)
    path = directory / "nephila.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        prepare(database, path, "bench")
        for start in range(0, rows, BATCH):
            pages, fetches, items = [], [], []
            for number in range(start, min(start + BATCH, rows)):
                url = f"http://h{number % 1000}.test/{number}"
                key = parse_url(url).fingerprint.hex()
                failed = number % 12 == 11
                at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_790_000_000 + number // 30))
                ended = ("failed", "http_404", 404) if failed else ("stored", "", 200)
                row = values | {"url": url, "url_key": key, "job": "news", "title": f"Page {number}", "fetched_at": at}
                row |= dict(zip(("outcome", "reason", "status"), ended, strict=True))
                row |= {"bytes": 3000, "fetch_no": number + 1, "text": "" if failed else TEXT, "meta": "{}"}
                pages.append(tuple(row[name] for name in COLUMNS))
                fetches.append(("news", key, number + 1, 1, *ended, at, 3000, "", "", "", ""))
                if number % 10 == 0:
                    items.append(("news", key, "shop", 1, 0, f'{{"name": "Thing {number}", "price": {number}}}'))
            database.execute("BEGIN")
            database.executemany(f"INSERT INTO pages VALUES ({', '.join('?' * len(COLUMNS))})", pages)
            names = "job, url_key, fetch_no, attempt, outcome, reason, status, fetched_at, bytes, sha256, change"
            marks = ", ".join("?" * 13)
            database.executemany(f"INSERT INTO fetches ({names}, text_hash, old_hash) VALUES ({marks})", fetches)
            database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", items)
            database.execute("COMMIT")


async def measure(directory: Path, repeats: int) -> None:
    """Print a line for each screen."""
    async with console(directory) as rig:
        browser = await rig.opened()
        rig.turning.cancel()
        print(f"{'screen':<40} {'first ms':>9} {'median ms':>10} {'CPU ms':>7} {'KB':>6}")
        for screen in SCREENS:
            times, cpu = [], []
            for _ in range(repeats + 1):
                began, cpu_began = time.perf_counter(), time.process_time()
                answer = await browser.get(f"/console/{screen}")
                times.append((time.perf_counter() - began) * 1000)
                cpu.append((time.process_time() - cpu_began) * 1000)
            if answer.status_code != 200:
                raise SystemExit(f"{screen}: status {answer.status_code}")
            median = statistics.median(times[1:])
            used = statistics.median(cpu[1:])
            size = len(answer.content) / 1024
            print(f"{'/' + screen:<40} {times[0]:>9.1f} {median:>10.1f} {used:>7.1f} {size:>6.1f}", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        fill(directory, given.rows)
        print(f"{given.rows:,} rows; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        asyncio.run(measure(directory, given.repeats))


if __name__ == "__main__":
    main()
