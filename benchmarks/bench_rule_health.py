"""The alarm on rules whose site has changed: how soon it comes, how often it comes for nothing, and what it costs.

Simulated sites (rule_health_sites.py) from seeds: a news site (one item a page; fields on all, most and few of its
pages) and lists of two dozen. Delays are in pages of the rule, over three parsers that publish every five pages; false
alarms are per rule and page, on sites that stay as they are and on such whose kinds of pages come in waves.

    python -m benchmarks.bench_rule_health [--seeds 200] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import math
import random
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from nephila.parser.rule_health.counts import RuleCounts
from nephila.parser.rule_health.health import RuleHealth

from benchmarks.report import save, versions
from benchmarks.rule_health_sites import (
    AT_ONCE,
    LIST,
    NEWS,
    Field,
    Kind,
    Site,
    Watched,
    always,
    extraction,
    mixed,
    rule,
    without,
)

LEARNED = 200
MOST = 300
SPORT = replace(
    NEWS,
    fields={
        **NEWS.fields,
        "author": Field(0.05, 18, 0.25, 0.0, 40),
        "image": Field(1.0, 80, 0.2, 0.6),
        "text": Field(0.995, 500, 0.7, 0.95),
    },
)
SHORT = replace(LIST, items=8)
CHANGES: tuple[tuple[str, Kind, Site], ...] = (
    ("field of all pages gone", NEWS, always(without(NEWS, "title"))),
    ("field of 85 % gone", NEWS, always(without(NEWS, "author"))),
    ("field of 70 % gone", NEWS, always(without(NEWS, "image"))),
    ("of another type", NEWS, always(without(NEWS, "date", filled=0.0, refused=True))),
    ("half of pages changed", NEWS, mixed(NEWS, without(NEWS, "title"), lambda n: 0.5)),
    ("text cut short", NEWS, always(without(NEWS, "text", characters=20))),
    ("same value everywhere", NEWS, always(without(NEWS, "title", values=1))),
    ("no digits any more", NEWS, always(without(NEWS, "date", digits=0.0))),
    ("field of a list gone", SHORT, always(without(SHORT, "price"))),
    ("list of 24 has one", LIST, always(replace(LIST, items=1))),
)


def waves(period: int) -> Site:
    """Two kinds of pages, each from 15 to 85 of a hundred and back."""
    return mixed(NEWS, SPORT, lambda n: 0.5 + 0.35 * math.sin(n * 2 * math.pi / period))


def blocks(length: int) -> Site:
    """One kind, then the other, so many pages each."""
    return mixed(NEWS, SPORT, lambda n: n // length % 2)


STEADY: tuple[tuple[str, Site, int], ...] = (
    ("news", always(NEWS), 2000),
    ("list of 8", always(SHORT), 500),
    ("waves of 50 pages", waves(50), 2000),
    ("waves of 200 pages", waves(200), 2000),
    ("waves of 600 pages", waves(600), 2000),
    ("blocks of 30 pages", blocks(30), 2000),
)


def delays(before: Kind, after: Site, seeds: int) -> dict[str, Any]:
    """Pages from the change to the alarm."""
    found, early = [], 0
    for seed in range(seeds):
        watched = Watched()
        if watched.until_alarm(always(before), LEARNED, seed, parsers=3):
            early += 1
            continue
        found.append(watched.until_alarm(after, MOST, 1_000_000 + seed, parsers=3) or MOST)
    return {
        "mean": round(mean(found), 1),
        "p99": round(quantiles(found, n=100)[98], 1),
        "max": max(found),
        "missed_within_50": sum(delay > 50 for delay in found),
        "before_the_change": early,
        "runs": seeds,
    }


def false_alarms(site: Site, pages: int, seeds: int) -> dict[str, int]:
    """Runs with an alarm, and pages that were read in all."""
    alarms = read = 0
    for seed in range(seeds):
        at = Watched().until_alarm(site, pages, seed)
        alarms += at > 0
        read += at or pages
    return {"alarms": alarms, "pages": read, "runs": seeds}


def cost() -> dict[str, float]:
    """CPU of counting and of judging, in microseconds per page of a rule with six fields."""
    counts, source, pages = RuleCounts(rule(NEWS)), random.Random(1), 20_000
    some = [extraction(NEWS, source) for _ in range(500)]
    began = time.process_time()
    for number in range(pages):
        counts.add_page(some[number % 500])
    counted = time.process_time() - began
    reported = []
    for number in range(pages // AT_ONCE):
        for one in range(AT_ONCE):
            counts.add_page(some[(number * AT_ONCE + one) % 500])
        reported.append(counts.take())
    health = RuleHealth()
    began = time.process_time()
    for stats in reported[1:]:
        health.add(stats, 0.0)
    judged = time.process_time() - began
    return {"count_us": round(counted / pages * 1e6, 2), "judge_us": round(judged / pages * 1e6, 2)}


def main() -> None:
    """Print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments = parser.parse_args()
    result: dict[str, Any] = {"versions": versions(), "learned_pages": LEARNED, "delay": {}, "false_alarms": {}}
    print(f"pages from a change to the alarm, after {LEARNED} pages, 3 parsers, {arguments.seeds} runs each")
    for name, before, after in CHANGES:
        seeds = arguments.seeds if before is not LIST else max(arguments.seeds // 4, 2)
        found = result["delay"][name] = delays(before, after, seeds)
        late, early = found["missed_within_50"], found["before_the_change"]
        print(f"  {name:26} mean {found['mean']:6} p99 {found['p99']:6} max {found['max']:4}", end="  ")
        print(f"later than 50: {late}/{seeds}, before the change: {early}", flush=True)
    print("false alarms")
    for name, site, pages in STEADY:
        found = result["false_alarms"][name] = false_alarms(site, pages, max(arguments.seeds // 4, 2))
        print(f"  {name:26} {found['alarms']} in {found['runs']} runs, {found['pages']:,} pages", flush=True)
    result["cost"] = cost()
    print(f"CPU per page: counted {result['cost']['count_us']} µs, judged {result['cost']['judge_us']} µs")
    save("rule-health", result, arguments.out)


if __name__ == "__main__":
    main()
