"""Schedulers over a Kafka in memory, and a model of web, parser and storage, on a manual clock.

A killed member is not called again; what it had published and the broker had taken stays. The
web keeps a log of fetches by host and time, as a server would.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import (
    FetchKind,
    FetchRequest,
    FetchResult,
    Outcome,
    Receipts,
    Record,
    Seed,
)
from nephila.kernel.messages import Receipt as Durable
from nephila.kernel.outcomes import given_back
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, JOBS, OUTCOMES, OUTLINKS, RECEIPTS, RECORDS, REQUESTS, SEEDS
from nephila.native import parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.partition.member import MemberState
from nephila.scheduler.partition.owner_state import OwnerState
from nephila_cluster.kafka.job_delays import follow_jobs
from nephila_cluster.scheduler.scheduler import ClusterScheduler

from tests.fake_kafka import PARTITIONS, FakeKafka, FakeKafkaBus
from tests.jobs import crawl_job
from tests.scheduler.invariants import check
from tests.scheduler.world import links_of

THREAD_S = 0.0005
"""Time that a thread gets before the next look at its result."""
READERS = {REQUESTS: "downloader", RECORDS: "storage"}
"""The groups that the model reads as."""


@dataclass
class Fetch:
    """As a server's log has it."""

    url: str
    host: str
    start: float
    end: float
    by: tuple[int, int]
    """(epoch, attempt)."""
    address: str = ""
    """On which the scheduler has counted it."""


@dataclass
class FetchEnds:
    """A downloader: its clock, and the ends of the last fetches by host (UTC by its clock, and monotonic)."""

    clock_ahead_s: float = 0.0
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait_s(self, request: FetchRequest, now: float) -> float | None:
        """Seconds to the dial of a request; None: it is given back. As `downloader/stages/host_gap.py`."""
        if not request.wait_s:
            return 0.0
        ended_at, ended = self.ends.get(request.host, (0.0, 0.0))
        if request.after and request.after == ended_at:
            return max(ended + request.gap_s - now, 0.0)
        return None if request.address else request.wait_s


@dataclass
class Site:
    """Links of pages by URL, and what is no page."""

    links: dict[str, list[str]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)


class World:
    """Schedulers over one broker, and all that is not a scheduler."""

    def __init__(
        self, root: Path, site: Site, *, took_s: float = 0.1, beat_s: float = 0.0, lanes: int = 0, **config: Any
    ) -> None:
        self.root = root
        self.site = site
        self.took_s = took_s
        self.clock = ManualClock()
        self.broker = FakeKafka(lanes=lanes)
        self.broker.beat_s = beat_s
        self.outside = FakeKafkaBus(self.broker, self.clock, "outside")
        self.config = {"partitions": PARTITIONS, "blobs": str(root / "blobs"), "status_interval_s": 0.0, **config}
        self.members: dict[str, tuple[FakeKafkaBus, ClusterScheduler]] = {}
        self.fetches: list[Fetch] = []
        self.rows: dict[str, Record] = {}
        self.twice = 0
        """Rows that came again."""
        self.done: dict[tuple[str, int], int] = defaultdict(int)
        self.hold_outcomes = False
        self.deaf: Callable[[FetchRequest], bool] = lambda request: False
        """Requests that end whoever takes them: nothing more is heard of them."""
        self.refuses: Callable[[FetchRequest], bool] = lambda request: False
        """Requests that the downloader gives back at once, because their address is in use."""
        self.away = False
        """No downloader is there."""
        self.served = 1 << 16
        """Partitions that downloaders have read of; the first request of another one waits in its lane."""
        self.downloaders = [FetchEnds()]
        self.downloader_of: Callable[[int], int] = lambda partition: 0
        """Partition → number of its downloader."""
        self.epochs: dict[int, int] = defaultdict(int)
        self.busy: dict[str, Fetch] = {}
        self.errors: list[BaseException] = []
        self.rng: random.Random | None = None
        """Set: the broker takes what a scheduler publishes bit by bit."""

    # ---- schedulers

    async def start(self, name: str, **config: Any) -> ClusterScheduler:
        """A scheduler without partitions."""
        member = FakeKafkaBus(self.broker, self.clock, name, held=())
        if self.broker.beat_s:
            follow_jobs(member, member.beat)
        member.slow, member.rng = self.rng is not None, self.rng
        settings = {**self.config, "directory": str(self.root / name), **config}
        owners = ClusterScheduler(SchedulerConfig(**settings), member, self.clock)
        owners.on_fatal = self.errors.append
        await owners.start()
        self.members[name] = member, owners
        member.deliver()
        return owners

    async def give(self, name: str, *partitions: int) -> None:
        """These partitions are its from now on."""
        member, owners = self.members[name]
        wanted = frozenset(partitions or range(self.broker.partitions))
        task = asyncio.create_task(owners.on_assigned(wanted))
        while not task.done():
            assert not self.errors, self.errors
            await asyncio.sleep(0)
            member.take()
        task.result()
        member.held |= wanted
        await self.settle()

    async def hand_over(self, source: str, target: str, *partitions: int) -> None:
        """From one to the other, as at a join."""
        member, owners = self.members[source]
        going = frozenset(partitions)
        task = asyncio.create_task(owners.on_revoking(going))
        while not task.done():
            await asyncio.sleep(0)
            self.clock.run_due()
            member.take(1)
        task.result()
        member.forget(set(going))
        await self.give(target, *partitions)

    async def refused(self, name: str) -> None:
        """A scheduler is given partitions and cannot take them; raises what it says."""
        owners = self.members[name][1]
        task = asyncio.create_task(owners.on_assigned(frozenset(range(self.broker.partitions))))
        while not self.errors and not task.done():  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        raise self.errors.pop()

    async def breathe(self) -> None:
        """Let tasks and threads go on a little."""
        for _ in range(5):
            await asyncio.sleep(0.001)

    def kill(self, name: str) -> None:
        """It is gone, with all that it had not sent."""
        member, owners = self.members.pop(name)
        member.alive = False
        owners.state = MemberState.DEAD
        for owner in owners.owners.values():
            owner.state = OwnerState.LOST
            owner.snapshots.drop()
        os.close(owners._lock)

    def owner_of(self, url: str) -> Any:
        """The owner that has a URL."""
        number = self.partition(url)
        return next(s.owners[number] for _, s in self.members.values() if number in s.owners)

    # ---- the rest of the system

    def partition(self, url: str) -> int:
        """Of a URL."""
        return self.outside.layout.of(parse_url(url).fingerprint)

    # ---- growth

    def grow(self, partitions: int, *members: str) -> None:
        """The topics have more partitions, and these members have read it; of none named all."""
        self.broker.grow(partitions)
        for name in members or self.members:
            self.members[name][0].see_layout()

    def submit(self, *seeds: str, delay_s: float = 1.0, robots: bool = False, **scope: Any) -> None:
        """A job and its seeds."""
        scope = {"mode": "any", "max_depth": -1, **scope}
        job = crawl_job(
            "t", "t", 1, [], Scope(**scope), Politeness(delay=duration_text(delay_s), respect_robots=robots)
        )
        self.outside.publish(JOBS, 0, job)
        for seed in seeds:
            self.outside.publish(SEEDS, self.partition(seed), Seed("t", seed))

    def step(self) -> bool:
        """Everybody takes what is there; whether anything happened."""
        happened = bool(self.clock.run_due())
        for member, _ in list(self.members.values()):
            happened |= member.deliver() > 0
            if self.rng is not None and member.slow:
                happened |= member.take(self.rng.randrange(1, 4)) > 0
        for lane in range(self.broker.lanes or self.broker.partitions):
            happened |= not self.away and self._read(REQUESTS, lane, self._fetch, self.served)
            happened |= self._read(RECORDS, lane, self._store)
        return happened

    def _read(self, topic: Any, lane: int, handler: Callable[[int, Any], None], served: int = 1 << 16) -> bool:
        messages = self.broker.in_lane(topic, lane, self.done[topic.name, lane])
        ready = list(itertools.takewhile(lambda routed: routed[0] < served, messages))
        self.done[topic.name, lane] += len(ready)
        # The record that waits was committed before its partition was looked at, as all requests are.
        waits = len(ready) < len(messages)
        self.broker.committed[READERS[topic], topic.name, lane] = self.done[topic.name, lane] + waits
        for partition, message in ready:
            handler(partition, message)
        return bool(ready)

    def _fetch(self, partition: int, request: FetchRequest) -> None:
        if request.epoch < self.epochs[partition]:
            return
        self.epochs[partition] = request.epoch
        if self.deaf(request):
            return
        now = self.clock.monotonic()
        if request.start_by < self.clock.now():
            late = given_back(request)
            late.result = FetchResult.EXPIRED
            self.outside.publish(OUTCOMES, partition, late)
            return
        if self.refuses(request):
            refused = given_back(request)
            refused.reason = "busy"
            self.outside.publish(OUTCOMES, partition, refused)
            return
        gap_s = self.downloaders[self.downloader_of(partition)].wait_s(request, now)
        if gap_s is None:
            self.outside.publish(OUTCOMES, partition, given_back(request))
            return
        busy = self.busy.get(request.host)
        if busy is not None and busy.url == request.url and busy.by[1] == request.attempt:
            return  # it is in hand
        assert busy is None, f"{request.url} is asked for while {busy} is"
        wait_s = max(request.dial_at - self.clock.now(), gap_s)
        start = now + wait_s
        fetch = Fetch(
            request.url, request.host, start, start + self.took_s, (request.epoch, request.attempt), request.address
        )
        self.fetches.append(fetch)
        self.busy[request.host] = fetch
        self.clock.call_at(fetch.end, lambda: self._fetched(partition, request, fetch))

    def _fetched(self, partition: int, request: FetchRequest, fetch: Fetch) -> None:
        if self.hold_outcomes:
            self.clock.call_at(self.clock.monotonic() + 0.5, lambda: self._fetched(partition, request, fetch))
            return
        fetch.end = self.clock.monotonic()
        del self.busy[request.host]
        outcome = given_back(request)
        outcome.result, outcome.status, outcome.address = FetchResult.FETCHED, 200, "10.0.0.1"
        downloader = self.downloaders[self.downloader_of(partition)]
        outcome.ended_at = self.clock.now() + downloader.clock_ahead_s
        outcome.started_at = outcome.ended_at - self.took_s
        downloader.ends[request.host] = outcome.ended_at, fetch.end
        target = self.site.redirects.get(request.url)
        if request.kind is FetchKind.ROBOTS or (target is None and request.url not in self.site.links):
            outcome.result, outcome.reason, outcome.status = FetchResult.FAILED, "http_404", 404
        elif target is not None:
            outcome.result, outcome.location, outcome.status = FetchResult.REDIRECT, target, 302
        else:
            self.outside.publish(OUTLINKS, partition, links_of(request, self.site.links[request.url]))
            row = Record(
                request.job, request.url_key, request.url, request.fetch_no, request.attempt, Outcome.STORED, status=200
            )
            self.outside.publish(RECORDS, partition, row)
        self.outside.publish(OUTCOMES, partition, outcome)

    def _store(self, partition: int, row: Record) -> None:
        known = self.rows.get(row.url)
        self.twice += known is not None
        assert known is None or known.outcome == row.outcome, f"{row.url}: {known} and {row}"
        self.rows[row.url] = row
        receipt = Durable(row.url_key, row.fetch_no, row.outcome, status=row.status)
        self.outside.publish(RECEIPTS, partition, Receipts(row.job, [receipt]))

    async def settle(self) -> None:
        """Until nothing more happens at this instant."""
        while (happened := self.step()) or self._snapshots():  # noqa: ASYNC110
            # A snapshot is written by a thread, which a busy loop would keep from the interpreter.
            await asyncio.sleep(0 if happened else THREAD_S)
        assert not self.errors, self.errors
        dead = [letter for p in range(self.broker.partitions) for letter in self.broker.all(DEAD, p)]
        assert not dead, dead

    def _snapshots(self) -> bool:
        return any(not owner.snapshots.ready for _, owners in self.members.values() for owner in owners.owners.values())

    async def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.clock.monotonic() + seconds
        await self.settle()
        while (due := self.clock.next_due) is not None and due <= end:
            self.clock.advance(max(due - self.clock.monotonic(), 0.0))
            await self.settle()
        self.clock.advance(max(end - self.clock.monotonic(), 0.0))

    async def until(self, rows: int, limit_s: float = 1000.0) -> None:
        """Until so many rows are there."""
        end = self.clock.monotonic() + limit_s
        while len(self.rows) < rows:
            assert self.clock.monotonic() < end, f"{len(self.rows)} rows of {rows}: {sorted(self.rows)}"
            await self.run(0.25)

    # ---- what must hold

    def check(self, delay_s: float = 1.0) -> None:
        """Every frontier is right in itself, no server was asked too early."""
        assert not self.errors, self.errors
        for _, owners in self.members.values():
            for owner in owners.owners.values():
                check_owner(owner)
        last: dict[str, Fetch] = {}
        for fetch in self.fetches:
            before = last.get(fetch.host)
            assert before is None or fetch.start >= before.end + delay_s - 1e-6, f"{fetch} follows {before}"
            last[fetch.host] = fetch

    def requests(self) -> list[FetchRequest]:
        """All requests that the broker has."""
        return [request for p in range(self.broker.partitions) for request in self.broker.all(REQUESTS, p)]

    def outcomes(self) -> dict[str, str]:
        """URL → outcome."""
        return {url: row.outcome.name.lower() for url, row in self.rows.items()}


def check_owner(owner: Any) -> None:
    """The invariants of a frontier, but for the lines of addresses, which are common."""
    frontier = owner.frontier
    address_queue, frontier.addresses = frontier.addresses, _NoLines(frontier)
    try:
        check(owner.dispatcher)
    finally:
        frontier.addresses = address_queue


class _NoLines:
    def __init__(self, frontier: Any) -> None:
        self._frontier = frontier

    def check(self) -> None:
        """Nothing."""

    def waiting(self) -> list[Any]:
        """Those of this frontier."""
        return list(self._frontier.readiness.waiting_for_address.values())


def jobs_of(scheduler: ClusterScheduler) -> list[Job]:
    """The jobs of all partitions; a job once per partition."""
    return [job for frontier in scheduler.frontiers for job in frontier.jobs.values()]


def web(hosts: int, pages: int, seed: int = 1, *, more: bool = False) -> Site:
    """Sites that lead to each other: each page has its two children and a page elsewhere. `more`: from each site a page
    has moved to the next, and one is not there."""
    rng = random.Random(seed)
    site = Site()
    for host in range(hosts):
        for number in range(pages):
            children = [f"http://h{host}.test/{n}" for n in (2 * number + 1, 2 * number + 2) if n < pages]
            site.links[f"http://h{host}.test/{number}"] = [*children, f"http://h{rng.randrange(hosts)}.test/{number}"]
        if not more:
            continue
        moved, there = f"http://h{host}.test/moved", f"http://h{(host + 1) % hosts}.test/there"
        site.links[f"http://h{host}.test/1"] += [moved, f"http://h{host}.test/missing"]
        site.redirects[moved] = there
        site.links[there] = []
    return site


def ends(site: Site) -> dict[str, str]:
    """URL → outcome, once all of it was crawled."""
    missing = {link for links in site.links.values() for link in links} - set(site.links) - set(site.redirects)
    return {
        **dict.fromkeys(site.links, "stored"),
        **dict.fromkeys(site.redirects, "dropped"),
        **dict.fromkeys(missing, "failed"),
    }
