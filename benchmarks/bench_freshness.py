"""How stale the copies of a changing web are, against a fixed interval with as many fetches.

usage: python -m benchmarks.bench_freshness [--pages 2000] [--states 1000000] [--seed 1]

A simulated month on a virtual clock (changing.py); rates of change log-uniform from 1 hour to 30 days, learnt from
nothing. `known`: the same formula with the true rates; `optimum`: the best constant intervals for a p95 of just `min`,
computed from the model for 300 of the pages (at another p95 the ratio is another). `told_p95_h` is what freshness.py
reports at the end without the truth. The due table is then filled with a million states.
"""

import argparse
import math
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from nephila.kernel.messages import Outcome, Recrawl, UrlState
from nephila.scheduler.recrawl.due_table import DueTable
from nephila.scheduler.recrawl.freshness import measure
from nephila.scheduler.recrawl.policy import PRICE, RecrawlPolicy

from benchmarks import report
from benchmarks.changing import DAY_S, HOUR_S, START, Copies, Page, adaptive, fixed, known, means, web

MONTH_S = 30 * DAY_S
CASES: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("min 1 h", 1, {}),
    ("min 2 h", 2, {}),
    ("min 4 h", 4, {}),
    ("min 8 h", 8, {}),
    ("min 4 h, sitemap every 6 h", 4, {"sitemap_s": 6 * HOUR_S}),
    ("min 4 h, sitemap says now", 4, {"sitemap_s": 6 * HOUR_S, "lying": True}),
)


def against(pages: list[Page], copies: Copies, seed: int) -> dict[str, float]:
    """The figures of a policy beside those of a fixed interval."""
    other = fixed(pages, MONTH_S, copies.fetches, seed)
    mine, theirs = copies.percentile(0.95), other.percentile(0.95)
    return {
        "fetches": copies.fetches,
        "fixed_fetches": other.fetches,
        "p95_h": mine / HOUR_S,
        "fixed_p95_h": theirs / HOUR_S,
        "ratio": mine / theirs,
        "fresh": copies.fresh,
        "fixed_fresh": other.fresh,
    }


def formula(min_s: float, max_s: float) -> Callable[[float], float]:
    """Mean time between changes → interval."""
    return lambda mean_s: min(math.sqrt(min_s**2 + 2 * PRICE * min_s * mean_s), max_s)


def proportional(share: float, min_s: float, max_s: float) -> Callable[[float], float]:
    """Interval as a share of the mean time between changes: what is usually done."""
    return lambda mean_s: min(max(share * mean_s, min_s), max_s)


def optimum(pages: list[Page], bound_s: float) -> float:
    """p95 over that of a fixed interval, of the constant intervals that reach a p95 of `bound_s` with fewest fetches:
    rates known, phases random."""
    rates = [1 / mean_s for mean_s in means(pages)[:300]]

    def staler(interval: float, rate: float, than_s: float) -> float:
        left = interval - than_s
        return (left + math.expm1(-rate * left) / rate) / interval if left > 0 else 0.0

    def p95(intervals: list[float]) -> float:
        low, high = 0.0, max(intervals)
        for _ in range(40):
            middle = (low + high) / 2
            share = sum(map(staler, intervals, rates, [middle] * len(rates))) / len(rates)
            low, high = (middle, high) if share > 0.05 else (low, middle)
        return high

    def best(price: float) -> list[float]:
        grid = [bound_s * math.exp(step / 50) for step in range(351)]
        return [min(grid, key=lambda t: staler(t, rate, bound_s) + price / t) for rate in rates]

    low, high = 0.0, 10 * bound_s
    for _ in range(12):
        price = (low + high) / 2
        low, high = (price, high) if p95(best(price)) <= bound_s else (low, price)
    chosen = best(low)
    even = len(chosen) / sum(1 / interval for interval in chosen)
    return p95(chosen) / p95([even] * len(chosen))


def staleness(pages: list[Page], seed: int) -> list[dict[str, Any]]:
    """All cases, then what was rejected."""
    found: list[dict[str, Any]] = []
    for name, hours, how in CASES:
        copies, policy, due_table = adaptive(pages, MONTH_S, Recrawl(min_s=hours * HOUR_S, max_s=MONTH_S), **how)
        figures = against(pages, copies, seed + 1)
        if not how:
            ideal = known(pages, MONTH_S, formula(hours * HOUR_S, MONTH_S), seed + 2)
            figures["known"] = against(pages, ideal, seed + 1)["ratio"]
            figures["optimum"] = optimum(pages, hours * HOUR_S)
        result = measure(list(due_table.states()), START + MONTH_S, policy.rate)
        found.append(
            {"case": name, **figures, "told_p95_h": result.staleness_p95_s / HOUR_S, "told_fresh": result.fresh}
        )
    for share in (1.0, 0.25):
        copies = known(pages, MONTH_S, proportional(share, HOUR_S, MONTH_S), seed + 2)
        found.append({"case": f"rejected: {share:g} x the true mean", **against(pages, copies, seed + 1)})
    return found


def memory(count: int, seed: int) -> dict[str, float]:
    """Bytes per state in the due table, and what its calls cost."""
    rng = random.Random(seed)

    def states() -> Any:
        for number in range(count):
            url = f"https://www.site-{number % 9973}.example/section/{number}/a-title-of-some-words.html"
            yield UrlState(
                job="job",
                url_key=rng.randbytes(16),
                url=url,
                host=url.split("/")[2],
                fetch_no=9,
                fetched_at=START,
                first_at=START,
                next_at=START + rng.random() * DAY_S,
                interval_s=3600.0,
                checks=8,
                changes=3,
                text_hash=rng.randbytes(8),
                etag=f'"{number:x}-5f3e8a1b2c4d"',
                outcome=Outcome.STORED,
            )

    tracemalloc.start()
    due_table = DueTable("job", states())
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    policy = RecrawlPolicy(Recrawl(min_s=HOUR_S, max_s=MONTH_S))
    started = time.process_time()
    measure(due_table.sample(2_000), START, policy.rate, total=count)
    sampled = time.process_time()
    taken = list(due_table.due(START + HOUR_S))
    due = time.process_time()
    for state in taken:
        state.next_at += DAY_S
        due_table.put(state)
    return {
        "states": count,
        "bytes_per_state": size / count,
        "freshness_ms": (sampled - started) * 1e3,
        "due_us": (due - sampled) / len(taken) * 1e6,
        "put_us": (time.process_time() - due) / len(taken) * 1e6,
    }


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_freshness", description="Staleness of a changing web.")
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    cases = staleness(web(args.pages, MONTH_S, args.seed), args.seed)
    columns = ("fetches", "p95_h", "fixed_p95_h", "ratio", "known", "optimum", "fresh", "fixed_fresh", "told_p95_h")
    print(report.table(("case", *columns), [(c["case"], *(c.get(name, "") for name in columns)) for c in cases]))
    due_table = memory(args.states, args.seed)
    print(report.table(("due table", ""), list(due_table.items())))
    raw = {"pages": args.pages, "seed": args.seed, "cases": cases, "due_table": due_table}
    path = report.save("freshness", {"versions": report.versions("nephila"), **raw})
    print(f"raw: benchmarks/results/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
