"""Six months of harvesting sites and directories, simulated: the planner beside crawls without one.

usage: python -m benchmarks.bench_harvest [--sites 84] [--directories 202] [--days 182] [--seed 1] [--save]

The workload of the fifth paper on a virtual clock over a generated web (harvest_web.py). Real code: Site documents,
inheritance and resolution to jobs, the scope that decides about links, the planner with the recrawl policy, stored
progress. A request takes a second of delay and half a second; hosts are fetched from one request at a time. Halfway the
planner is dropped and built again from its stored progress; runs that were open begin again.

Cases: `stated` hourly for the 80 directories with the most pages, daily for the others; `adaptive 1h 7d`; `equal`: one
interval for all directories with as many requests as `adaptive`, no planner; `everything`: the frequencies of `stated`,
without the scope's filter, and each run also fetches the pages of the last 30 days again. `short`: 40 % of the requests
that `stated` needs, with scores and without.

Columns: precision = pages on topic of all new pages fetched; recall = pages on topic that were found of those
published; delay = from publication to fetch, also of directories with the scores 8-10 and 1-3; by_score = weighted by
the score; requests_per_new = per page on topic; hours_per_day = time with a run in progress; late = from the due time
of a run to its start.

When benchmarks.bench_schemes exists, its simulation follows.
"""

import argparse
import heapq
import importlib
import importlib.util
import math
import time
from typing import Any

import msgspec
from nephila.harvest.sites import resolve
from nephila.harvest.sites.planner import DirectoryPlan, DirectoryProgress, Planner, Start
from nephila.harvest.sites.site_documents import Sites
from nephila.scheduler.frontier.scope import CompiledScope

from benchmarks import report
from benchmarks.harvest_web import DAY_S, START, List, Result, documents, generate

REQUEST_S = 1.5
PARALLEL = 16
HOURLY = 80
REFRESHED_S = 30 * DAY_S


class Harvest:
    """The directories, the planner, and the clock of one case."""

    def __init__(
        self, web: list[List], sites: Sites, length_s: float, pages_per_day: int = 0, *, everything: bool = False
    ) -> None:
        self._web = {one.name: one for one in web}
        self._plans = [_plan(sites, one.name) for one in web]
        self._scopes = {one.name: _scope(sites, one) for one in web}
        self._length_s, self._pages_per_day, self._everything = length_s, pages_per_day, everything
        self._seen: dict[str, set[str]] = {one.name: set() for one in web}
        self._stored: dict[str, bytes] = {}
        self._host_free: dict[str, float] = {}
        self._ends: list[tuple[float, str, float, int, int]] = []
        self.result = Result(length_s)

    def run(self) -> Result:
        """All runs until the end."""
        now, half, end, busy_until = START, START + self._length_s / 2, START + self._length_s, START
        planner = self._planner(now)
        while now < end:
            if now >= half:
                planner, half = self._planner(now), math.inf
                self._ends = []
            while self._ends and self._ends[0][0] <= now:
                _, name, started, pages, new = heapq.heappop(self._ends)
                self._stored[name] = msgspec.msgpack.encode(planner.ended(name, started, pages, new))
            while (start := planner.take(now)) is not None:
                ended = self._fetch(start, now)
                self.result.busy_s += max(ended - max(busy_until, now), 0.0)
                busy_until = max(busy_until, ended)
            following = min(planner.next_event(now), self._ends[0][0] if self._ends else math.inf)
            now = max(min(following, half), now + 1.0)
        return self.result

    def _planner(self, now: float) -> Planner:
        planner = Planner(PARALLEL, self._pages_per_day)
        for plan in self._plans:
            stored = self._stored.get(plan.name)
            planner.put(plan, now, msgspec.msgpack.decode(stored, type=DirectoryProgress) if stored else None)
        return planner

    def _fetch(self, start: Start, now: float) -> float:
        """One run; returns its end."""
        one, seen, result = self._web[start.name], self._seen[start.name], self.result
        begun = max(now, self._host_free.get(one.host, 0.0))
        at, pages, new = begun + REQUEST_S, 1, 0
        for page in reversed(one.newest(at)):
            if page.url in seen or not self._scopes[start.name].decide(page.url, one.host, 1).admitted:
                continue
            if start.pages and new >= start.pages:
                break
            seen.add(page.url)
            at += REQUEST_S
            pages, new = pages + 1, new + 1
            result.new_pages += 1
            if page.on_topic:
                result.on_topic += 1
                result.delays.append((at - page.at, one.score))
                if page.at < START + self._length_s - DAY_S:
                    result.found += 1
                    result.score_found += one.score
        if self._everything:
            again = sum(1 for page in one.pages if now - REFRESHED_S < page.at <= now and page.url in seen) - new
            pages, at = pages + again, at + again * REQUEST_S
        self._host_free[one.host] = at
        result.requests += pages
        result.runs += 1
        result.late_s.append(begun - start.due_at)
        heapq.heappush(self._ends, (at, start.name, now, pages, new))
        return at


def equal(web: list[List], sites: Sites, length_s: float, requests: int) -> Result:
    """Every directory at one interval, from different moments on, with as many requests; no planner."""
    harvest = Harvest(web, sites, length_s)
    new = sum(len(one.pages) for one in web) * 0.85
    interval_s = length_s * len(web) / max(requests - new, 1)
    events = [(START + interval_s * number / len(web), one.name) for number, one in enumerate(web)]
    heapq.heapify(events)
    busy_until = START
    while events[0][0] < START + length_s:
        now, name = events[0]
        ended = harvest._fetch(Start(name, 0, now), now)
        harvest.result.busy_s += max(ended - max(busy_until, now), 0.0)
        busy_until = max(busy_until, ended)
        heapq.heapreplace(events, (now + interval_s, name))
    return harvest.result


def simulate(sites: int, directories: int, days: int, seed: int) -> list[dict[str, Any]]:
    """All cases."""
    length_s = days * DAY_S
    web = generate(sites, directories, length_s, seed)
    busiest = {one.name for one in sorted(web, key=lambda one: -one.per_day)[:HOURLY]}
    stated = {one.name: "0 * * * *" if one.name in busiest else "0 6 * * *" for one in web}
    adaptive = dict.fromkeys(stated, "adaptive 1h 7d")
    cases: list[dict[str, Any]] = []

    def add(name: str, result: Result, started: float) -> Result:
        cases.append({"case": name, **result.figures(web), "cpu_s": time.process_time() - started})
        return result

    at = time.process_time()
    first = add("stated", Harvest(web, documents(web, stated), length_s).run(), at)
    at = time.process_time()
    second = add("adaptive 1h 7d", Harvest(web, documents(web, adaptive), length_s).run(), at)
    at = time.process_time()
    add("equal interval", equal(web, documents(web, adaptive), length_s, second.requests), at)
    at = time.process_time()
    everything = Harvest(web, documents(web, stated, filtered=False), length_s, everything=True)
    add("everything", everything.run(), at)
    budget = int(0.4 * first.requests / days)
    for name, scores in (("short, by score", True), ("short, equal scores", False)):
        at = time.process_time()
        add(name, Harvest(web, documents(web, stated, scores=scores), length_s, budget).run(), at)
    return cases


def decisions(count: int) -> dict[str, float]:
    """Cost of a start with its end, and of adding a directory, with this many directories, all due at once."""
    planner, now = Planner(parallel=count), START
    began = time.process_time()
    for number in range(count):
        planner.put(DirectoryPlan(f"s.{number}", 1.0 + number % 9, "1d", now + 1), now)
    put = time.process_time() - began
    began = time.process_time()
    while (start := planner.take(now + 1)) is not None:
        planner.ended(start.name, now + 1, 3, 1)
    spent = time.process_time() - began
    return {"directories": count, "put_us": put / count * 1e6, "run_us": spent / count * 1e6}


def _plan(sites: Sites, name: str) -> DirectoryPlan:
    found = resolve.values(sites, *sites.directories[name])
    return DirectoryPlan(name, found["score"].value, found["frequency"].value, 0.0, found["topPages"].value)


def _scope(sites: Sites, one: List) -> CompiledScope:
    """The scope of the directory's job, with its seed as anchor."""
    scope = CompiledScope(resolve.job(sites, one.name, START).spec.scope)
    scope.add_seed(one.host, one.url.partition(".test")[2])
    return scope


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_harvest", description="Six months of a harvest.")
    parser.add_argument("--sites", type=int, default=84)
    parser.add_argument("--directories", type=int, default=202)
    parser.add_argument("--days", type=int, default=182)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planned", type=int, default=100_000, help="directories for the cost of a decision")
    parser.add_argument("--save", action="store_true", help="keep the raw result")
    args = parser.parse_args(argv)
    cases = simulate(args.sites, args.directories, args.days, args.seed)
    print(report.table(tuple(cases[0]), [tuple(one.values()) for one in cases]))
    cost = decisions(args.planned)
    print(report.table(("planner", ""), list(cost.items())))
    if args.save:
        raw = {"arguments": vars(args), "cases": cases, "planner": cost}
        path = report.save("harvest", {"versions": report.versions("nephila"), **raw})
        print(f"raw: benchmarks/results/{path.name}")
    if importlib.util.find_spec("benchmarks.bench_schemes") is not None:
        importlib.import_module("benchmarks.bench_schemes").main()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
