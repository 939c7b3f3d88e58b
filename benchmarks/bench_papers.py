"""The headline figures of the five source papers, beside ours: one table.

Their machines had 24 cores and fetched from the internet; this one has the cores that it prints and fetches from
loopback. So a ratio above 1 says that one of these cores does at least as much as one of their machines. Some
ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import bench_admission, bench_dns, bench_harvest, bench_pages, bench_seen, plainweb, report, seen_rivals

PAGES_PER_MIN = 14_099 / 3
"""P1: 14,099 pages a minute on 3 machines."""
SCHEDULED_PER_MIN = 13_353 / 3
"""P2: 13,353 pages a minute on 3 machines, workers by free memory and CPU."""
TRIE_TO_TABLE = 30.0
"""P1: the MD5 tree beside a plain hash table."""
PRECISION = 0.7012
"""P5: precision over six months, 84 sites with 202 directories."""
HOURS_PER_DAY = 4.5
"""P5: a day's run, 4 to 5 hours."""


class Row(NamedTuple):
    """One headline."""

    headline: str
    paper: str
    ours: str
    ratio: str
    command: str


def pages(web: plainweb.PlainWeb, folder: Path) -> list[Row]:
    """P1: pages a minute and machine: one program, with main text, links and SQLite."""
    runner = bench_pages.nephila(web, [".venv/bin/python", "-m", "nephila"], 100, [])
    with plainweb.Serving(web, folder / "server"):
        place = folder / "pages"
        place.mkdir()
        run = bench_pages.once(runner, web, place)
    if run["lost"] or run["cost"]["code"]:
        raise SystemExit(f"the crawl has {run['lost']} of {len(web.files)} pages less: {run.get('error', '')}")
    ours = 60 * run["pages_per_s"]
    return [
        Row(
            "P1 pages per minute and machine",
            f"{PAGES_PER_MIN:,.0f} (24 cores)",
            f"{ours:,.0f} (one process)",
            f"{ours / PAGES_PER_MIN:.1f}",
            "python -m benchmarks.bench_pages --web build/plain-web",
        )
    ]


def seen(keys: int) -> list[Row]:
    """P1: the MD5 tree beside a hash table and a Bloom filter, CPU time of a look-up that misses."""
    rows = {
        name: bench_seen.alone(bench_seen.contest, name, "uniform", keys, 50)
        for name in seen_rivals.RIVALS
        if name in ("trie", "hash table in Python", "Bloom 1 %")
    }
    trie = rows.pop("trie")
    found = []
    for name, row in rows.items():
        table = name.startswith("hash")
        ours = "absent" if "absent" in row else f"{row['miss_ns'] / trie['miss_ns']:.1f} x"
        ratio = "-" if "absent" in row else f"{row['miss_ns'] / trie['miss_ns'] / (TRIE_TO_TABLE if table else 1):.2f}"
        paper = f"{TRIE_TO_TABLE:.0f} x faster" if table else "not slower (1 x)"
        found.append(Row(f"P1 MD5 tree beside: {name}, {keys:,} keys", paper, ours, ratio, "make bench-seen"))
    return found


def dns(hosts: int) -> list[Row]:
    """P1: a crawl with the DNS cache and without."""
    off = {"NEPHILA_DOWNLOADER__DNS_TTL_S": "0"}
    cached, without = (asyncio.run(bench_dns.one_crawl(label, hosts, env)) for label, env in (("on", {}), ("off", off)))
    return [
        Row(
            f"P1 DNS cache on and off, {hosts:,} hosts: pages/s",
            "faster with it",
            f"{cached['pages_per_s']} and {without['pages_per_s']}",
            f"{cached['pages_per_s'] / without['pages_per_s']:.2f}",
            "make bench-dns",
        )
    ]


def scheduling(count: int) -> list[Row]:
    """P2: workers that take what memory and CPU allow; here a container of 512 MB and pages of 100 KB."""
    with bench_admission.server(100_000) as port:
        run = bench_admission.crawl(port, count, 512 << 20, True)
    ours = 60 * run["pages_per_s"]
    return [
        Row(
            "P2 pages per minute and machine, by free memory and CPU",
            f"{SCHEDULED_PER_MIN:,.0f} (24 cores)",
            f"{ours:,.0f} (512 MB, killed: {'yes' if run['killed'] else 'no'})",
            f"{ours / SCHEDULED_PER_MIN:.1f}",
            "make bench-admission",
        )
    ]


def harvest(days: int) -> list[Row]:
    """P5: 84 sites with 202 directories, a simulated time."""
    first = bench_harvest.simulate(84, 202, days, 1)[0]
    row = f"P5 84 sites, 202 directories, {days} days"
    return [
        Row(f"{row}: precision", f"{PRECISION:.3f}", f"{first['precision']:.3f}",
            f"{first['precision'] / PRECISION:.2f}", "make bench-harvest"),
        Row(f"{row}: hours of a day's run", "4-5", f"{first['hours_per_day']:.2f}",
            f"{HOURS_PER_DAY / first['hours_per_day']:.0f}", "make bench-harvest"),
    ]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run all parts and print the table; exit 1 when a part could not be measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_papers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--web", type=Path, default=Path("build/plain-web"), help="a plain web (benchmarks.web.plain)")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--days", type=int, default=182)
    parser.add_argument("--save", action="store_true", help="keep the raw result")
    args = parser.parse_args(argv)
    web = plainweb.read(args.web)
    rows: list[Row] = []
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        parts: list[tuple[str, Callable[[], list[Row]]]] = [
            ("pages", lambda: pages(web, Path(folder))),
            ("seen", lambda: seen(args.keys)),
            ("dns", lambda: dns(args.hosts)),
            ("scheduling", lambda: scheduling(3000)),
            ("harvest", lambda: harvest(args.days)),
        ]
        for name, part in parts:
            try:
                rows += part()
            except (Exception, SystemExit) as error:
                failed.append(f"{name}: {error}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; a ratio above 1 is in our favour")
    print(report.table(Row._fields, rows))
    if failed:
        print("not measured:", *failed, sep="\n  ")
    if args.save:
        print(report.save("papers", {"rows": [row._asdict() for row in rows], "failed": failed}).name)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
