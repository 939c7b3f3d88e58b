"""A broad crawl beside a link farm: what the farm takes of pages and requests, and what that costs the other hosts.

The real frontier and dispatcher on a virtual clock; downloader, parser and storage are stand-ins that take a fixed
time. 500 good hosts of 200 pages link to each other, and one page in `every` has three links into a wildcard domain of
10^5 hosts, of which each page links to 20 others. Each web is crawled with budgets of domains, without, and without the
farm.

    python -m benchmarks.bench_farm [--pages 20000] [--webs address delay-0 addresses few-seeds] [--save]
"""

from __future__ import annotations

import argparse
import heapq
import random
import struct
import tempfile
import time
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from nephila.kernel.documents.budget_schema import DomainBudget
from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec, Politeness, Scope, Seed
from nephila.kernel.messages import (
    FetchKind,
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Outlinks,
    Receipt,
    Receipts,
)
from nephila.native import UrlParts, parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.recovery import open_frontier
from nephila.scheduler.engine.admission import add_links, add_seed
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.host_state import TurnOutput

from benchmarks.report import save, table

GOOD_HOSTS, GOOD_PAGES = 500, 200
FARM_HOSTS, FARM_LINKS = 100_000, 20
TOOK_S = 0.3
"""Time of a fetch: 100 at once are 333 a second."""
TURN_S = 0.01
JOB = "broad"
_MASK = (1 << 64) - 1


class Web(NamedTuple):
    """One of the webs."""

    delay: str
    one_address: bool
    """All hosts of the farm have one address; else each has its own."""
    seeds: int
    every: int
    """One good page in so many links into the farm."""


WEBS = {
    "address": Web("1s", one_address=True, seeds=500, every=20),
    "delay-0": Web("0", one_address=False, seeds=500, every=20),
    "addresses": Web("1s", one_address=False, seeds=500, every=20),
    "few-seeds": Web("1s", one_address=False, seeds=20, every=5),
}


def mixed(number: int) -> int:
    """A number that looks random (the finaliser of SplitMix64)."""
    number &= _MASK
    number ^= number >> 30
    number = number * 0xBF58476D1CE4E5B9 & _MASK
    number ^= number >> 27
    number = number * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)


def good(host: int, page: int) -> str:
    return f"http://www.good-{host}.test/{page}"


def farmed(host: int, page: int = 0) -> str:
    return f"http://x{host}.farm.test/{page}"


def is_farm(host_key: str) -> bool:
    return host_key.endswith(".farm.test")


def links_of(url: str, every: int, farm: bool) -> list[str]:
    """The links of a page."""
    name, page = url[7:].split("/")
    number = int(page)
    if is_farm(name):
        host = int(name[1:].partition(".")[0])
        base = mixed(host * 1_000_003 + number)
        return [farmed(mixed(base + i) % FARM_HOSTS) for i in range(FARM_LINKS)] + [farmed(host, 1), farmed(host, 2)]
    host = int(name[9:].partition(".")[0])
    links = [good(host, (3 * number + i if i <= 3 else mixed(host * 7919 + number * 31 + i)) % GOOD_PAGES)
             for i in range(1, 9)]  # fmt: skip
    across = [mixed(host * 104_729 + number * 131 + i) for i in range(4)]
    links += [good(draw % GOOD_HOSTS, (draw >> 20) % GOOD_PAGES) for draw in across]
    if farm and mixed(host * 3 + number * 5) % every == 0:
        links += [farmed(mixed(host * 17 + number * 13 + i) % FARM_HOSTS) for i in range(3)]
    return links


@lru_cache(maxsize=200_000)
def parsed(url: str) -> UrlParts:
    return parse_url(url)


def message(request: FetchRequest, urls: list[str]) -> Outlinks:
    """The links of a page as a parser packs them."""
    parts = {part.fingerprint: part for part in map(parsed, urls)}
    ends: list[int] = []
    spans: list[int] = []
    at = 0
    for part in parts.values():
        spans += (at + 7, at + 7 + len(part.host_key))
        at += len(part.href)
        ends.append(at)
    count = len(parts)
    return Outlinks(
        JOB,
        request.url_key,
        request.url,
        request.depth + 1,
        b"".join(parts),
        "".join(part.href for part in parts.values()).encode(),
        struct.pack(f"<{count}I", *ends),
        struct.pack(f"<{2 * count}I", *spans),
        anchor_ends=bytes(4 * count),
        flags=bytes(count),
    )


class Crawl:
    """One crawl of one web."""

    def __init__(self, directory: str, web: Web, *, farm: bool, budget: int) -> None:
        self.web, self.farm = web, farm
        self.frontier = open_frontier(SchedulerConfig(directory=directory, partitions=1), random.Random(1))
        self.dispatcher = Dispatcher(self.frontier)
        self.now = 1000.0
        self.pages: Counter[bool] = Counter()
        """Whether a host is of the farm → its pages."""
        self.requests: Counter[bool] = Counter()
        self.cpu_s = 0.0
        """CPU time of the frontier."""
        self.hosts: set[str] = set()
        """Hosts that were looked up."""
        self._ends: list[tuple[float, int, FetchRequest]] = []
        self._count = 0
        spec = JobSpec(
            seeds=[Seed(url=good(host, 0)) for host in range(web.seeds)],
            scope=Scope(mode="any", max_depth=-1),
            politeness=Politeness(delay=web.delay),
            domains=DomainBudget(budget),
        )
        self.frontier.begin_turn(self.now, self.now)
        job = put_job(self.frontier, msgspec.structs.replace(job_of(JOB, spec), generation=1))
        assert job is not None
        self.job = job
        for seed in spec.seeds:
            part = parsed(seed.url)
            add_seed(self.frontier, job, part.host_key, part.path_query, part.href, part.fingerprint)

    def run(self, pages: int) -> None:
        """Crawl until so many pages are stored, or nothing is left."""
        while self.pages.total() < pages:
            out = TurnOutput()
            began = time.process_time()
            self.frontier.begin_turn(self.now, self.now)
            self.dispatcher.dispatch(self.now, out)
            self.frontier.pending.commits()
            self.dispatcher.trim_hosts()
            self.cpu_s += time.process_time() - began
            for _, request in out.requests:
                self._send(request)
            upcoming = [self.dispatcher.next_event(), self._ends[0][0] if self._ends else None]
            instants = [at for at in upcoming if at is not None]
            if not instants:
                return
            self.now = max(self.now + TURN_S, min(instants))
            while self._ends and self._ends[0][0] <= self.now:
                self._end(heapq.heappop(self._ends)[2])

    def _send(self, request: FetchRequest) -> None:
        farm = is_farm(request.host)
        self.requests[farm] += 1
        if request.host not in self.hosts:
            self.hosts.add(request.host)
            self.requests[farm] += 1
        self._count += 1
        heapq.heappush(self._ends, (max(self.now, request.dial_at) + TOOK_S, self._count, request))

    def _end(self, request: FetchRequest) -> None:
        robots = request.kind is FetchKind.ROBOTS
        address = "192.0.2.1" if is_farm(request.host) and self.web.one_address else f"address of {request.host}"
        outcome = FetchOutcome(
            request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, request.epoch,
            FetchResult.FAILED if robots else FetchResult.FETCHED, "http_404" if robots else "", 404 if robots else 200,
            self.now - TOOK_S, self.now, address, lease_until=request.lease_until,
        )  # fmt: skip
        links = None if robots else message(request, links_of(request.url, self.web.every, self.farm))
        began = time.process_time()
        self.frontier.begin_turn(self.now, self.now)
        self.dispatcher.outcomes.outcome(outcome, self.now, TurnOutput())
        if links is not None:
            add_links(self.frontier, links)
            self.pages[is_farm(request.host)] += 1
            receipt = Receipt(request.url_key, request.fetch_no, Outcome.STORED)
            self.dispatcher.endings.receipts(Receipts(JOB, [receipt]))
        self.cpu_s += time.process_time() - began

    def figures(self) -> dict[str, Any]:
        """What the crawl has cost."""
        domains = self.job.domains
        return {
            "pages": self.pages.total(),
            "farm_pages": self.pages[True] / max(self.pages.total(), 1),
            "farm_requests": self.requests[True] / max(self.requests.total(), 1),
            "virtual_s": self.now - 1000.0,
            "good_per_s": self.pages[False] / (self.now - 1000.0),
            "hosts_known": len(self.frontier.store),
            "left_out": domains.left_out if domains is not None else 0,
            "cpu_us_per_page": 1e6 * self.cpu_s / max(self.pages.total(), 1),
        }


WAYS = {"no farm": (False, 2), "no budget": (True, 0), "budgets": (True, 2)}
"""Whether there is a farm, and the budget of domains."""


def crawl(web: Web, way: str, pages: int) -> dict[str, Any]:
    """One crawl; its figures."""
    farm, budget = WAYS[way]
    with tempfile.TemporaryDirectory() as directory:
        run = Crawl(directory, web, farm=farm, budget=budget)
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
    if options.save:
        print(save("farm", {"runs": results}))


if __name__ == "__main__":
    main()
