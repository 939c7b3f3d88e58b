"""A broad crawl beside a link farm: what the farm takes of pages and requests, and what that costs the other hosts.

The real frontier and dispatcher on a virtual clock (simulated_crawl.py). 500 good hosts of 200 pages link to each
other, and one page in `every` has three links into a wildcard domain of 10^5 hosts, of which each page links to 20
others. Each web is crawled with budgets of domains, without, and without the farm. A further crawl has ranks of
domains (ADR 278).

    python -m benchmarks.bench_farm [--pages 20000] [--webs address delay-0 addresses few-seeds] [--save]
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

from benchmarks.report import save, table
from benchmarks.simulated_crawl import Crawl, Web

WEBS = {
    "address": Web("1s", one_address=True, seeds=500, every=20),
    "delay-0": Web("0", one_address=False, seeds=500, every=20),
    "addresses": Web("1s", one_address=False, seeds=500, every=20),
    "few-seeds": Web("1s", one_address=False, seeds=20, every=5),
}
WAYS = {"no farm": (False, 2), "no budget": (True, 0), "budgets": (True, 2)}
"""Whether there is a farm, and the budget of domains."""


def crawl(web: Web, way: str, pages: int, members: int = 1, partitions: int = 1) -> dict[str, Any]:
    """One crawl; its figures."""
    farm, budget = WAYS[way]
    with tempfile.TemporaryDirectory() as directory:
        run = Crawl(directory, web._replace(farm=farm), budget=budget, members=members, partitions=partitions)
        run.run(pages)
        return run.figures()


def crawl_by_ranks(pages: int, partitions: int, *, ranks: bool) -> dict[str, Any]:
    """A crawl of 2,000 good hosts, four times as many as it can fetch from, of which a tenth has ranks."""
    web = WEBS["addresses"]._replace(good_hosts=2000, seeds=2000)
    hosts = [number * 7 % 2000 for number in range(200)]
    with tempfile.TemporaryDirectory() as directory:
        run = Crawl(directory, web, budget=2, partitions=partitions, ranked=hosts if ranks else ())
        run.ranked = frozenset(f"www.good-{host}.test" for host in hosts)
        run.run(pages)
        return run.figures()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--webs", nargs="+", choices=WEBS, default=list(WEBS))
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    rows, results = [], []
    for name in options.webs:
        rate = 0.0
        for way in WAYS:
            figures = crawl(WEBS[name], way, options.pages)
            rate = rate or figures["good_per_s"]
            results.append({"web": name, "way": way, **figures})
            rows.append([
                name, way, figures["pages"], f"{figures['farm_pages']:.2%}", f"{figures['farm_requests']:.2%}",
                f"{figures['good_per_s']:.1f}", f"{figures['good_per_s'] / rate:.1%}", figures["hosts_known"],
                f"{figures['cpu_us_per_page']:.0f}",
            ])  # fmt: skip
            print(*rows[-1], sep="\t", flush=True)
    heads = [
        "web",
        "way",
        "pages",
        "farm, pages",
        "farm, requests",
        "good pages/s",
        "of no farm",
        "hosts",
        "CPU µs/page",
    ]
    print(table(heads, rows))
    ranks = [
        {"partitions": partitions, "ranks": ranks, **crawl_by_ranks(options.pages // 2, partitions, ranks=ranks)}
        for partitions in (1, 16)
        for ranks in (False, True)
    ]
    heads = ["partitions", "ranks", "pages of the ranked tenth", "CPU µs/page"]
    shown = [[r["partitions"], r["ranks"], f"{r['ranked_pages']:.1%}", f"{r['cpu_us_per_page']:.0f}"] for r in ranks]
    print(table(heads, shown))
    if options.save:
        print(save("farm", {"runs": results, "ranks": ranks}))


if __name__ == "__main__":
    main()
