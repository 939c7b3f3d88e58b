"""Server time and size of each screen of the console over a store of many rows and a queue on many hosts.

    python -m benchmarks.bench_console [--rows 100000] [--hosts 10000] [--repeats 5] [--keep DIR]

Rows are those of `benchmarks.stored_rows`, on HOSTS hosts, with their search index; a paused job has a queued URL on
each of them. `--keep`: rows and index are made there, or taken from there, and copied for the run. Requests pass
the whole application, without a socket. The first request of a screen is printed beside the median: it compiles the
template, and the first look at the counts by reason reads fetches. Screens above 200 ms or 300 KB are marked.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from nephila.storage.ledgers.schema import DATABASE
from nephila_control.job_types import SEED_BATCH, AddSeeds, ApplyJob
from nephila_stores.search.search import make_index
from nephila_stores.search.sqlite_index import SEARCH_DATABASE

from benchmarks.stored_rows import COMMON, make, url_of
from tests.console.console_rig import ConsoleRig, console
from tests.control.documents import document

WHERE = quote('[["price","above","5"],["name","filled",""]]')
MOST_MS, MOST_KB = 200, 300


def screens(rows: int, hosts: int) -> list[str]:
    """Addresses below /console."""
    page = f"page?job=bench&url={quote(url_of(rows - 2, hosts), safe='')}"
    return [
        *("", "jobs", "jobs/many", "jobs/many/edit", "jobs/many/exclude?re=h9", "hosts", "hosts?q=h77"),
        *("hosts/h77.queue.test", "jobs/many?tab=pages", "jobs/many?tab=hosts", "jobs/many?tab=errors"),
        *("pages", "pages?outcome=failed", "pages?reason=http_404&job=bench", "pages?q=not-there&in=url"),
        *(f"pages?q={COMMON}", "pages?q=unique77", "pages?q=page-77&in=url"),
        *(f"{page}&tab={tab}" for tab in ("text", "links", "items", "history", "metadata")),
        *("items", "items?q=not-there", "items?job=bench&sort=-price", f"items?where={WHERE}"),
        *("audit", "audit/first", "rules", "sites"),
        *("system", "system/settings", "system/network", "system/webhooks", "log", "studio"),
    ]


async def queue(rig: ConsoleRig, hosts: int) -> None:
    """A URL on each host."""
    job = document("many", paused=True, scope={"mode": "any"}, seeds=["http://h0.queue.test/"])
    await rig.control.apply_job(ApplyJob(job=job))
    for start in range(0, hosts, SEED_BATCH):
        urls = [f"http://h{number}.queue.test/" for number in range(start, min(start + SEED_BATCH, hosts))]
        await rig.control.add_seeds(AddSeeds(name="many", urls=urls))


async def measure(directory: Path, rows: int, hosts: int, repeats: int) -> None:
    """Print a line for each screen."""
    async with console(directory) as rig:
        browser = await rig.opened()
        began = time.perf_counter()
        await queue(rig, hosts)
        print(f"queue of {hosts:,} hosts made in {time.perf_counter() - began:.1f} s")
        rig.turning.cancel()
        print(f"{'screen':<48} {'first ms':>9} {'median ms':>10} {'CPU ms':>7} {'KB':>6}")
        for screen in screens(rows, hosts):
            times, cpu = [], []
            for _ in range(repeats + 1):
                began, cpu_began = time.perf_counter(), time.process_time()
                answer = await browser.get(f"/console/{screen}")
                times.append((time.perf_counter() - began) * 1000)
                cpu.append((time.process_time() - cpu_began) * 1000)
            if answer.status_code != 200:
                print(f"/{screen}: status {answer.status_code}", flush=True)
                continue
            median = statistics.median(times[1:])
            used = statistics.median(cpu[1:])
            size = len(answer.content) / 1024
            mark = " <<" if used > MOST_MS or size > MOST_KB else ""
            shown = f"/{screen}"[:47]
            print(f"{shown:<48} {times[0]:>9.1f} {median:>10.1f} {used:>7.1f} {size:>6.1f}{mark}", flush=True)


def prepared(directory: Path, rows: int, hosts: int, keep: Path | None) -> None:
    """Rows and index in an empty directory."""
    place = keep or directory
    if not (place / DATABASE).exists():
        make(place, rows, hosts)
    for _ in make_index(place):
        pass
    for name in (DATABASE, SEARCH_DATABASE) if keep else ():
        shutil.copyfile(place / name, directory / name)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        prepared(directory, given.rows, given.hosts, given.keep)
        print(f"{given.rows:,} rows; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        asyncio.run(measure(directory, given.rows, given.hosts, given.repeats))


if __name__ == "__main__":
    main()
