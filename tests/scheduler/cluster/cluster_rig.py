"""A broker in memory, schedulers on it, and a model of web, parser and storage, on a manual clock.

Messages travel as bytes. A killed member is not called again; what it had published and the broker had taken stays. The
web keeps a log of fetches by host and time, as a server would.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.bus.kafka.consumer.offsets import Position
from nephila.kernel.bus.kafka.wire import frame_of, message_of
from nephila.kernel.messages import (
    CrawlJob,
    FetchKind,
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Politeness,
    Receipts,
    Record,
    Scope,
    ScopeMode,
    Seed,
)
from nephila.kernel.messages import Receipt as Durable
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, RECORDS, REQUESTS, SEEDS, TOPICS
from nephila.native import parse_url, partition_of
from nephila.scheduler.cluster.partition import OwnerState
from nephila.scheduler.cluster.scheduler import ClusterScheduler
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine.invariants import check
from nephila.scheduler.frontier.job_state import Job

from tests.scheduler.world import outlinks

PARTITIONS = 4
TOPIC = {topic.name: topic for topic in TOPICS}


class Broker:
    """Logs by topic and partition."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], list[Any]] = defaultdict(list)
        self.first: dict[tuple[str, int], int] = defaultdict(int)
        self.committed: dict[tuple[str, int], int] = defaultdict(int)
        self.cut_short = 0
        """Reads that fail."""

    def append(self, topic: Any, partition: int, message: Any) -> int:
        """Take a message; returns its offset."""
        lane = self.logs[topic.name, 0 if topic.key else partition]
        lane.append(frame_of(topic.message, message))
        return len(lane) - 1

    def all(self, topic: Any, partition: int, start: int = 0) -> list[Any]:
        """Messages of a log from an offset on, as those who read them get them."""
        return [message_of(topic.message, frame) for frame in self.logs[topic.name, partition][start:]]


class Member:
    """The bus of one program. `slow`: what is published waits until `take`."""

    def __init__(self, broker: Broker, clock: ManualClock, name: str) -> None:
        self.broker = broker
        self.clock = clock
        self.member = name
        self.slow = False
        self.rng: random.Random | None = None
        self.alive = True
        self.emits = True
        self.unacked = 0
        self.waiting: list[tuple[Any, int, Any, Receipt]] = []
        self.held: set[int] = set()
        self.readers: dict[str, Callable[[Delivery], None]] = {}
        self.positions: dict[tuple[str, int], Position] = {}
        self.last: dict[tuple[str, int], int] = {}

    def publish(self, topic: Any, partition: int, message: Any) -> Receipt:
        """See `Bus`."""
        receipt = Receipt()
        self.waiting.append((topic, partition, message, receipt))
        if not self.slow:
            self.take()
        return receipt

    def take(self, count: int = 1 << 30) -> int:
        """The broker takes what waits, of each log the oldest first; returns how many."""
        done = 0
        while self.waiting and done < count and self.alive:
            topic, partition, message, receipt = self.waiting.pop(self._next())
            self.last[topic.name, partition] = self.broker.append(topic, partition, message)
            receipt.resolve_one()
            done += 1
        return done

    def take_only(self, topic: Any) -> None:
        """The broker takes what waits for this topic, and nothing else."""
        others = [one for one in self.waiting if one[0] is not topic]
        self.waiting = [one for one in self.waiting if one[0] is topic]
        self.take()
        self.waiting = others + self.waiting

    def _next(self) -> int:
        if self.rng is None:
            return 0
        oldest = {(topic.name, partition): i for i, (topic, partition, *_) in reversed(list(enumerate(self.waiting)))}
        return self.rng.choice(list(oldest.values()))

    def subscribe(self, topic: Any, group: str, handler: Any, *, credits: int, on_dead: Any = None) -> None:
        """See `Bus`."""
        self.readers[topic.name] = handler

    def may_emit(self, group: str) -> bool:
        """See `LogReader`."""
        return self.emits and self.alive

    def last_offset(self, topic: Any, partition: int) -> int:
        """See `LogReader`."""
        return self.last.get((topic.name, partition), -1)

    async def bounds(self, topic: Any, partitions: Any) -> dict[int, tuple[int, int]]:
        """See `LogReader`."""
        if self.broker.cut_short:
            self.broker.cut_short -= 1
            raise TemporaryError("the broker is away")
        return {p: (self.broker.first[topic.name, p], len(self.broker.logs[topic.name, p])) for p in partitions}

    async def read(self, topic: Any, ranges: Any) -> Any:
        """See `LogReader`."""
        for p, (start, end) in ranges.items():
            assert start >= self.broker.first[topic.name, p]
            if end > start:
                yield p, list(enumerate(self.broker.all(topic, p, start)[: end - start], start))

    async def end_offsets(self, topics: Any) -> Any:
        """See `LogReader`."""
        return {(t.name, p): len(self.broker.logs[t.name, p]) for t in topics for p in range(PARTITIONS)}

    async def has_read_to(self, group: str, ends: Any) -> bool:
        """See `LogReader`."""
        return all(self.broker.committed[place] >= end for place, end in ends.items())

    async def fully_read(self, group: str, topic: Any, partitions: Any) -> frozenset[int]:
        """See `LogReader`."""
        if self.broker.cut_short:
            raise TemporaryError("the broker is away")
        name = topic.name
        return frozenset(p for p in partitions if self.broker.committed[name, p] >= len(self.broker.logs[name, p]))

    async def delete_before(self, topic: Any, offsets: Any) -> None:
        """See `LogReader`."""
        for p, offset in offsets.items() if self.alive else ():
            self.broker.first[topic.name, p] = max(self.broker.first[topic.name, p], offset)

    # ---- deliveries

    def deliver(self) -> int:
        """Hand over what has come; returns how much."""
        count = 0
        for name, handler in self.readers.items():
            topic = TOPIC[name]
            for p in [0] if topic.key else sorted(self.held):
                place = self.positions.get((name, p))
                if place is None:
                    start = 0 if topic.key else self.broker.committed[name, p]
                    place = self.positions[name, p] = Position(start)
                for offset in range(place.next, len(self.broker.logs[name, p])):
                    message = message_of(topic.message, self.broker.logs[name, p][offset])
                    handler(Delivery(message, p, self._acking(name, p, place, place.take(offset))))
                    count += 1
        return count

    def _acking(self, name: str, partition: int, place: Position, finish: Callable[[], None]) -> Callable[[], None]:
        def acked() -> None:
            finish()
            if self.alive and self.positions.get((name, partition)) is place:
                self.broker.committed[name, partition] = place.committed_to

        return acked

    def forget(self, partitions: set[int]) -> None:
        """They are another's."""
        self.held -= partitions
        for key in [key for key in self.positions if key[1] in partitions and not TOPIC[key[0]].key]:
            del self.positions[key]


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
class Site:
    """Links of pages by URL, and what is no page."""

    links: dict[str, list[str]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)


class World:
    """Schedulers over one broker, and all that is not a scheduler."""

    def __init__(self, root: Path, site: Site, *, took_s: float = 0.1, **config: Any) -> None:
        self.root = root
        self.site = site
        self.took_s = took_s
        self.clock = ManualClock()
        self.broker = Broker()
        self.outside = Member(self.broker, self.clock, "outside")
        self.config = {"partitions": PARTITIONS, "blobs": str(root / "blobs"), "status_interval_s": 0.0, **config}
        self.members: dict[str, tuple[Member, ClusterScheduler]] = {}
        self.fetches: list[Fetch] = []
        self.rows: dict[str, Record] = {}
        self.twice = 0
        """Rows that came again."""
        self.done: dict[tuple[str, int], int] = defaultdict(int)
        self.hold_outcomes = False
        self.deaf: Callable[[FetchRequest], bool] = lambda request: False
        """Requests that end whoever takes them: nothing more is heard of them."""
        self.away = False
        """No downloader is there."""
        self.epochs: dict[int, int] = defaultdict(int)
        self.busy: dict[str, Fetch] = {}
        self.errors: list[BaseException] = []
        self.rng: random.Random | None = None
        """Set: the broker takes what a scheduler publishes bit by bit."""

    # ---- schedulers

    async def start(self, name: str, **config: Any) -> ClusterScheduler:
        """A scheduler without partitions."""
        member = Member(self.broker, self.clock, name)
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
        wanted = frozenset(partitions or range(PARTITIONS))
        task = asyncio.create_task(owners.on_assigned(wanted))
        while not task.done():
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
        task = asyncio.create_task(owners.on_assigned(frozenset(range(PARTITIONS))))
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
        owners._dead = True
        for owner in owners.owners.values():
            owner.state = OwnerState.LOST
            owner.store.dropped = True
        os.close(owners._lock)

    def owner_of(self, url: str) -> Any:
        """The owner that has a URL."""
        number = self.partition(url)
        return next(s.owners[number] for _, s in self.members.values() if number in s.owners)

    # ---- the rest of the system

    @staticmethod
    def partition(url: str) -> int:
        """Of a URL."""
        return partition_of(parse_url(url).fingerprint, PARTITIONS)

    def submit(self, *seeds: str, delay_s: float = 1.0, robots: bool = False, **scope: Any) -> None:
        """A job and its seeds."""
        scope = {"mode": ScopeMode.ANY, "max_depth": -1, **scope}
        job = CrawlJob("t", "t", 1, [], Scope(**scope), Politeness(delay_s, 1, not robots))
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
        for p in range(PARTITIONS):
            happened |= not self.away and self._read(REQUESTS, p, self._fetch)
            happened |= self._read(RECORDS, p, self._store)
        return happened

    def _read(self, topic: Any, partition: int, handler: Callable[[int, Any], None]) -> bool:
        start = self.done[topic.name, partition]
        messages = self.broker.all(topic, partition, start)
        self.done[topic.name, partition] += len(messages)
        self.broker.committed[topic.name, partition] = self.done[topic.name, partition]
        for message in messages:
            handler(partition, message)
        return bool(messages)

    def _fetch(self, partition: int, request: FetchRequest) -> None:
        if request.epoch < self.epochs[partition]:
            return
        self.epochs[partition] = request.epoch
        if self.deaf(request):
            return
        now = self.clock.monotonic()
        if request.start_by < self.clock.now():
            late = FetchOutcome(request.job, request.url_key, request.host, request.kind, request.fetch_no)
            late.attempt, late.epoch, late.result, late.reason = request.attempt, request.epoch, FetchResult.EXPIRED, ""
            self.outside.publish(OUTCOMES, partition, late)
            return
        busy = self.busy.get(request.host)
        if busy is not None and busy.url == request.url and busy.by[1] == request.attempt:
            return  # it is in hand
        assert busy is None, f"{request.url} is asked for while {busy} is"
        fetch = Fetch(
            request.url, request.host, now, now + self.took_s, (request.epoch, request.attempt), request.address
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
        outcome = FetchOutcome(
            request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt,
            request.epoch, FetchResult.FETCHED, "", 200, self.clock.now() - self.took_s, self.clock.now(), "10.0.0.1",
        )  # fmt: skip
        target = self.site.redirects.get(request.url)
        if request.kind is FetchKind.ROBOTS or (target is None and request.url not in self.site.links):
            outcome.result, outcome.reason, outcome.status = FetchResult.FAILED, "http_404", 404
        elif target is not None:
            outcome.result, outcome.location, outcome.status = FetchResult.REDIRECT, target, 302
        else:
            self.outside.publish(OUTLINKS, partition, outlinks(request, self.site.links[request.url]))
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
        while self.step() or self._snapshots():  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not self.errors, self.errors

    def _snapshots(self) -> bool:
        return any(owner._taking for _, owners in self.members.values() for owner in owners.owners.values())

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
        return list(self._frontier.waiting_for_address.values())


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
