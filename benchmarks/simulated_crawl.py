"""A broad crawl of good hosts and link farms by many members on a virtual clock.

Real code: frontiers of partitions with their tables of domains, dispatch, shared slots of a member, log messages.
Stand-ins: downloader, parser and storage, which take a fixed time. A partition counts its own links, requests and
shares, as over Kafka. Each member has 100 slots, and the web grows with the members.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from nephila.kernel.documents.budget_schema import DomainBudget
from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec, Politeness, Scope, Seed
from nephila.kernel.layout import layout_of
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
from nephila.scheduler.domains.domain_table import DomainTable
from nephila.scheduler.durability.recovery import open_frontier
from nephila.scheduler.engine.admission import add_links, add_seed
from nephila.scheduler.engine.dispatch import AHEAD, Dispatcher
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.partition.shared_slots import SharedSlots
from nephila.scheduler.tenants.shares import shares_of

GOOD_HOSTS, GOOD_PAGES = 500, 200
FARM_HOSTS, FARM_LINKS = 100_000, 20
TOOK_S = 0.3
"""Time of a fetch: 100 at once are 333 a second."""
TURN_S = 0.01
START_S = 1000.0
JOB = "broad"
_MASK = (1 << 64) - 1


class Web(NamedTuple):
    """A web of good hosts beside farms."""

    delay: str
    one_address: bool
    """All hosts of the farm have one address; else each has its own."""
    seeds: int
    every: int
    """One good page in so many links into the farm."""
    good_hosts: int = GOOD_HOSTS
    """Hosts of a domain each."""
    farms: int = 1
    """Registrable domains of the farm, which divide its hosts."""
    farm: bool = True
    """Whether good pages link into the farm at all."""


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


def farmed(host: int, page: int, farms: int) -> str:
    return f"http://x{host}.farm{host % farms or ''}.test/{page}"


def is_farm(host_key: str) -> bool:
    return ".farm" in host_key


def links_of(url: str, web: Web) -> list[str]:
    """The links of a page."""
    name, page = url[7:].split("/")
    number = int(page)
    if is_farm(name):
        host = int(name[1:].partition(".")[0])
        base = mixed(host * 1_000_003 + number)
        across = [farmed(mixed(base + i) % FARM_HOSTS, 0, web.farms) for i in range(FARM_LINKS)]
        return [*across, farmed(host, 1, web.farms), farmed(host, 2, web.farms)]
    host = int(name[9:].partition(".")[0])
    links = [good(host, (3 * number + i if i <= 3 else mixed(host * 7919 + number * 31 + i)) % GOOD_PAGES)
             for i in range(1, 9)]  # fmt: skip
    draws = [mixed(host * 104_729 + number * 131 + i) for i in range(4)]
    links += [good(draw % web.good_hosts, (draw >> 20) % GOOD_PAGES) for draw in draws]
    if web.farm and mixed(host * 3 + number * 5) % web.every == 0:
        links += [farmed(mixed(host * 17 + number * 13 + i) % FARM_HOSTS, 0, web.farms) for i in range(3)]
    return links


@lru_cache(maxsize=200_000)
def parsed(url: str) -> UrlParts:
    return parse_url(url)


def message(request: FetchRequest, urls: list[UrlParts]) -> Outlinks:
    """Links of a page as a parser packs them."""
    ends: list[int] = []
    spans: list[int] = []
    at = 0
    for part in urls:
        spans += (at + 7, at + 7 + len(part.host_key))
        at += len(part.href)
        ends.append(at)
    count = len(urls)
    return Outlinks(
        JOB,
        request.url_key,
        request.url,
        request.depth + 1,
        b"".join(part.fingerprint for part in urls),
        "".join(part.href for part in urls).encode(),
        struct.pack(f"<{count}I", *ends),
        struct.pack(f"<{2 * count}I", *spans),
        anchor_ends=bytes(4 * count),
        flags=bytes(count),
    )


class Crawl:
    """One crawl of one web by `members` of `partitions` partitions each."""

    def __init__(
        self,
        directory: str,
        web: Web,
        *,
        budget: int,
        members: int = 1,
        partitions: int = 1,
        ranked: Sequence[int] = (),
    ) -> None:
        """`ranked`: good hosts whose domains have a rank, the highest first."""
        self.web = web
        self.ranked = frozenset(f"www.good-{host}.test" for host in ranked)
        self.ranked_pages = 0
        self.now = START_S
        self.pages: Counter[bool] = Counter()
        """Whether a host is of the farm → its pages."""
        self.requests: Counter[bool] = Counter()
        self.cpu_s = 0.0
        """CPU time of the frontiers."""
        self.hosts: set[str] = set()
        """Hosts that were looked up."""
        self._ends: list[tuple[float, int, int, FetchRequest]] = []
        self._count = 0
        count = members * partitions
        self.layout = layout_of(count)
        spec = JobSpec(
            seeds=[Seed(url=good(host, 0)) for host in range(web.seeds)],
            scope=Scope(mode="any", max_depth=-1),
            politeness=Politeness(delay=web.delay),
            domains=DomainBudget(budget, ranks=[f"good-{host}.test" for host in ranked]),
        )
        self.woken = set(range(count))
        self.dispatchers: list[Dispatcher] = []
        for member in range(members):
            numbers = range(member * partitions, (member + 1) * partitions)
            slots = self._slots(numbers) if partitions > 1 else None
            for number in numbers:
                self.dispatchers.append(self._dispatcher(Path(directory) / str(number), number, slots))
        self.frontiers = [dispatcher.frontier for dispatcher in self.dispatchers]
        for frontier in self.frontiers:
            put_job(frontier, msgspec.structs.replace(job_of(JOB, spec), generation=1))
        for seed in spec.seeds:
            part = parsed(seed.url)
            frontier = self.frontiers[self.layout.of(part.fingerprint)]
            add_seed(frontier, frontier.jobs[JOB], part.host_key, part.path_query, part.href, part.fingerprint)

    def _slots(self, numbers: range) -> SharedSlots:
        """The slots that the partitions of a member share."""
        concurrency = SchedulerConfig().concurrency

        def in_flight() -> float:
            own = self.dispatchers[numbers.start : numbers.stop]
            return sum([dispatcher.frontier.in_flight.slots for dispatcher in own])

        return SharedSlots(concurrency + concurrency // AHEAD, shares_of(()), in_flight, self.woken.add)

    def _dispatcher(self, directory: Path, number: int, slots: SharedSlots | None) -> Dispatcher:
        directory.mkdir()
        config = SchedulerConfig(directory=str(directory), partitions=1)
        frontier = open_frontier(config, random.Random(1), part=PartitionSlice(number, self.layout.count))
        frontier.begin_turn(self.now, self.now)
        return Dispatcher(frontier, slots)

    @property
    def tables(self) -> list[DomainTable]:
        """Those of the partitions; none where the job has no budgets of domains."""
        tables = (frontier.jobs[JOB].domains for frontier in self.frontiers)
        return [table for table in tables if table is not None]

    def run(self, pages: int) -> None:
        """Crawl until so many pages are stored, or nothing is left."""
        due = [self.now] * len(self.dispatchers)
        while self.pages.total() < pages:
            for number, at in enumerate(due):
                if at <= self.now:
                    self.woken.add(number)
            while self.woken:
                number = self.woken.pop()
                due[number] = self._turn(number)
            at = min([*due, self._ends[0][0] if self._ends else math.inf])
            if at == math.inf:
                return
            self.now = max(self.now + TURN_S, at)
            while self._ends and self._ends[0][0] <= self.now:
                _, _, number, request = heapq.heappop(self._ends)
                self._end(number, request)

    def _turn(self, number: int) -> float:
        """A turn of a partition; returns when it has the next one."""
        dispatcher, out = self.dispatchers[number], TurnOutput()
        began = time.process_time()
        dispatcher.frontier.begin_turn(self.now, self.now)
        dispatcher.dispatch(self.now, out)
        dispatcher.frontier.pending.commits()
        dispatcher.trim_hosts()
        at = dispatcher.next_event()
        self.cpu_s += time.process_time() - began
        for _, request in out.requests:
            self._send(number, request)
        # A partition without a slot is woken by its member.
        return math.inf if at is None else at if at > self.now else self.now + TURN_S

    def _send(self, number: int, request: FetchRequest) -> None:
        farm = is_farm(request.host)
        self.requests[farm] += 1
        if request.host not in self.hosts:
            self.hosts.add(request.host)
            self.requests[farm] += 1
        self._count += 1
        heapq.heappush(self._ends, (max(self.now, request.dial_at) + TOOK_S, self._count, number, request))

    def _end(self, number: int, request: FetchRequest) -> None:
        robots = request.kind is FetchKind.ROBOTS
        address = "192.0.2.1" if is_farm(request.host) and self.web.one_address else f"address of {request.host}"
        outcome = FetchOutcome(
            request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, request.epoch,
            FetchResult.FAILED if robots else FetchResult.FETCHED, "http_404" if robots else "", 404 if robots else 200,
            self.now - TOOK_S, self.now, address, lease_until=request.lease_until,
        )  # fmt: skip
        parts = () if robots else {part.fingerprint: part for part in map(parsed, links_of(request.url, self.web))}
        messages = self._by_partition(request, list(parts.values()) if parts else [])
        dispatcher = self.dispatchers[number]
        began = time.process_time()
        dispatcher.frontier.begin_turn(self.now, self.now)
        dispatcher.outcomes.outcome(outcome, self.now, TurnOutput())
        for other, links in messages:
            self.frontiers[other].begin_turn(self.now, self.now)
            add_links(self.frontiers[other], links)
        if not robots:
            self.pages[is_farm(request.host)] += 1
            self.ranked_pages += request.host in self.ranked
            receipt = Receipt(request.url_key, request.fetch_no, Outcome.STORED)
            dispatcher.endings.receipts(Receipts(JOB, [receipt]))
        self.cpu_s += time.process_time() - began
        self.woken.update((number, *(other for other, _ in messages)))

    def _by_partition(self, request: FetchRequest, urls: list[UrlParts]) -> list[tuple[int, Outlinks]]:
        if self.layout.count == 1:
            return [(0, message(request, urls))] if urls else []
        numbers = [self.layout.of(part.fingerprint) for part in urls]
        order = sorted(range(len(urls)), key=numbers.__getitem__)
        groups = itertools.groupby(order, numbers.__getitem__)
        return [(number, message(request, [urls[i] for i in group])) for number, group in groups]

    def figures(self) -> dict[str, Any]:
        """What the crawl has cost."""
        tables = self.tables
        return {
            "pages": self.pages.total(),
            "farm_pages": self.pages[True] / max(self.pages.total(), 1),
            "ranked_pages": self.ranked_pages / max(self.pages.total(), 1),
            "farm_requests": self.requests[True] / max(self.requests.total(), 1),
            "virtual_s": self.now - START_S,
            "good_per_s": self.pages[False] / (self.now - START_S),
            "hosts_known": sum(len(frontier.store) for frontier in self.frontiers),
            "left_out": sum(table.left_out for table in tables),
            "held_back": sum(len(table.parked) for table in tables),
            "domains": sum(map(len, tables)),
            "domains_mb": sum(map(table_bytes, tables)) / 1e6,
            "cpu_us_per_page": 1e6 * self.cpu_s / max(self.pages.total(), 1),
        }


def table_bytes(table: DomainTable) -> int:
    """Memory of the domains of a table, without the pairs of links that it remembers (1 MB at most)."""
    parts = [table.domains, table.parked, table._oldest, table._by_level]
    for name, domain in table.domains.items():
        parts += [name, domain, domain.hosts, domain.sources, *([domain.parked] if domain.parked else [])]
    return sum(map(sys.getsizeof, parts))
