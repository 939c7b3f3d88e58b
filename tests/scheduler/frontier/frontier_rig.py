"""A scheduler whose downloader, parser and storage are the test itself, and the model beside it.

Nothing happens by itself: each request waits for an answer of the test's choice, each row for its receipt, and time
passes when told. Whatever the scheduler publishes is held against the model at that instant.
"""

from __future__ import annotations

import os
import random
from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchKind, FetchRequest, FrontierCommit, LinkSource, Outcome, Outlinks, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, RECORDS, REQUESTS
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import _encode, frame
from nephila.scheduler.frontier.in_flight import DELETED
from nephila.scheduler.jobs.queue_entry import unpack
from nephila.scheduler.standalone import Scheduler

from tests.links import outlinks
from tests.scheduler.frontier.frontier_model import (
    HOST_OF,
    KEYS,
    PARTITION_OF,
    URL_OF,
    JobModel,
    Key,
    Marks,
    Model,
    Way,
)
from tests.scheduler.invariants import check


def finish(coroutine: Any) -> None:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


def listed(job: str, parent: str, depth: int, urls: list[str], lastmods: list[float], source: LinkSource) -> Outlinks:
    """What the parser says of a page's links, or of a list of URLs."""
    found = outlinks(*urls, job=job, depth=depth, parent_key=KEYS[parent], parent_url=parent, source=source)
    found.lastmods = array("d", lastmods).tobytes() if lastmods else b""
    return found


class Rig:
    """One scheduler after the other on one directory, and what they should say."""

    def __init__(self, directory: Path, **config: Any) -> None:
        self.directory = directory
        self.config = {"directory": str(directory), "partitions": 4, "robots_ttl_s": 3000.0, **config}
        self.model = Model()
        self.marks = Marks(self.model)
        self.clock = ManualClock()
        self.on_way: dict[Key, Way] = {}
        self.stale: list[Way] = []
        """Requests that the scheduler gave up, or whose job was deleted: an answer may still come."""
        self.rows: list[tuple[str, Record]] = []
        """Rows without receipt, with the job's name."""
        self.table: dict[tuple[str, int, bytes, int], set[Outcome]] = {}
        """(job, life, URL, fetch) → the rows that storage has had of it."""
        self.decided: set[tuple[str, int, bytes, int]] = set()
        """Rows that this run of the scheduler has published."""
        self.dead: list[str] = []
        """What handlers have raised: the bus keeps it from their sender."""
        self.lives = 0
        self.requests = self.crashes = 0
        self.jumped = False
        self.scheduler = self._open()

    def _open(self) -> Scheduler:
        self.bus = LocalBus(self.clock)
        scheduler = Scheduler(SchedulerConfig(**self.config), self.bus, self.clock, random.Random(1))
        scheduler.files.start_sync = lambda: None  # type: ignore[method-assign]
        append, snapshot = scheduler.log.append, scheduler.log.snapshot

        def appended(commits: Iterable[FrontierCommit]) -> None:
            commits, size = list(commits), scheduler.log.size
            append(commits)
            self.expire()
            self.marks.append(size, [(len(frame(_encode(commit))), commit) for commit in commits], self.model)

        def snapshotted(states: Any) -> None:
            snapshot(states)
            self.marks.next_segment()

        scheduler.log.append = appended  # type: ignore[method-assign]
        scheduler.log.snapshot = snapshotted  # type: ignore[method-assign]
        self.bus.subscribe(REQUESTS, "downloader", self._on_request, credits=1 << 20)
        self.bus.subscribe(RECORDS, "storage", self._on_record, credits=1 << 20)
        self.bus.subscribe(DEAD, "test", self._on_dead, credits=1 << 20)
        finish(scheduler.start())
        return scheduler

    # ---- time

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock.monotonic()

    def turn(self) -> None:
        """What was sent in is worked on."""
        self.clock.run_due()

    def expire(self) -> None:
        """Leases whose time has come end, as tries that failed."""
        for key, way in list(self.on_way.items()):
            if way.state == "leased" and way.until <= self.now:
                self.stale.append(way)
                if key[0] and way.request.attempt >= 3:
                    way = self.on_way[key] = Way(way.request, way.until, way.group, "ending")
                else:
                    self.again(way)
                    if not key[0] and way.request.attempt >= 3:
                        self.model.robots[way.request.host] = "disallow"
        self.stale = [way for way in self.stale if way.until > self.now - 3600]

    # ---- what the scheduler publishes

    def _on_dead(self, delivery: Delivery) -> None:
        self.dead.append(delivery.message.error)
        delivery.ack()

    def _on_request(self, delivery: Delivery) -> None:
        request: FetchRequest = delivery.message
        delivery.ack()
        self.expire()
        self.requests += 1
        key, held = (request.job, request.url_key), False
        assert key not in self.on_way, f"{request.url} is leased twice: {self.on_way[key]}"
        if request.kind is FetchKind.ROBOTS:
            host = request.host
        else:
            host = HOST_OF[request.url_key]
            held = self._check_page(self.model.jobs[request.job], request, host)
        assert request.host == host, f"{request.url} is asked for on {request.host}"
        flying = [w for w in (*self.on_way.values(), *self.stale) if w.request.host == host and self._flies(w)]
        assert not flying, f"{request.url} is asked for while {flying} is"
        early = self.model.free_at[host] - self.now
        assert early <= 1e-6, f"{request.url} is asked for {early:g} s too early"
        # Summed as the scheduler does: rounded otherwise, a lease would end an instant too late here.
        config = self.scheduler.config
        until = self.now + config.start_by_s + config.lease_s
        self.on_way[key] = Way(request, until, self.marks.written, held=held)

    def _flies(self, way: Way) -> bool:
        return way.state == "leased" and way.until > self.now

    def again(self, way: Way) -> None:
        """A request is to be made again."""
        key = way.request.url_key
        del self.on_way[way.request.job, key]
        if way.held:
            self.model.jobs[way.request.job].held.add(key)

    def _check_page(self, job: JobModel, request: FetchRequest, host: str) -> bool:
        """Whether the request may be made; returns whether the page had its place under max_pages."""
        key, spec = request.url_key, job.spec
        assert key in job.admitted, f"{request.url} is asked for, and was never admitted"
        assert not spec.paused, f"{request.url} is asked for, and its job is paused"
        self._reopen(job, key, request.fetch_no)
        held = key in job.held
        job.held.discard(key)
        budget = job.budget.pages
        assert not budget or job.fetches[host] < budget, f"{host}: {job.fetches[host]} of {budget} fetches"
        self._check_pages(job, request, held)
        assert not job.excluded(request.url), f"{request.url} is excluded"
        seed = key in job.seeds
        assert request.seed == seed, f"{request.url}, fetch {request.fetch_no}: seed is {request.seed}, not {seed}"
        assert seed or not 0 <= job.scope.max_depth < request.depth, f"{request.url} is asked for at {request.depth}"
        if host in job.closed and "/d/" in request.url and not seed and request.fetch_no == 1:
            assert job.document.traps.off, f"{request.url} is in a trap"
        if job.document.politeness.respect_robots:
            word = self.model.robots.get(host)
            assert word == "allow" or (word == "rules" and not request.url.endswith("/3")), f"robots: {word}"
        return held

    def _check_pages(self, job: JobModel, request: FetchRequest, held: bool) -> None:
        """A page may be fetched again when max_pages has room beside the others that do not wait for the same; what is
        new only when it has room beside those as well."""
        pages = job.scope.max_pages
        if not pages:
            return
        stored = job.stored
        if held:
            waiting, _ = self.places()
            again = {key for key, (_, outcome) in job.ended.items() if outcome is Outcome.STORED}
            stored -= len(job.held | {key for key in again if (request.job, key) in waiting})
        taken = sum(key[0] == request.job and way.state != "ending" for key, way in self.on_way.items())
        assert stored + taken < pages, f"{request.url} is asked for: {stored} stored, {taken} taken of {pages}"

    def _reopen(self, job: JobModel, key: bytes, fetch_no: int) -> None:
        """A URL that had ended is open again: it is time for its next fetch."""
        if key in job.ended:
            assert job.recrawled, f"{URL_OF[key]} is taken up again"
            assert fetch_no == job.ended[key][0] + 1, f"{URL_OF[key]}: fetch {fetch_no} after {job.ended[key]}"
            if job.ended.pop(key)[1] is Outcome.STORED:
                job.held.add(key)

    def _on_record(self, delivery: Delivery) -> None:
        record: Record = delivery.message
        delivery.ack()
        self.expire()
        job = self.model.jobs.get(record.job)
        if job is None:
            return  # decided in the turn in which its job was deleted: rows stay
        name = (record.job, job.life, record.url_key, record.fetch_no)
        assert name not in self.decided, f"{record.url} ends twice"
        self.decided.add(name)
        if job.ended.get(record.url_key, (0,))[0] == record.fetch_no:
            # The receipt of an earlier try's row came between this decision and its turn.
            self.put_row(record)
            return
        self._reopen(job, record.url_key, record.fetch_no)
        job.held.discard(record.url_key)
        way = self.on_way.get((record.job, record.url_key))
        if way is None:
            self._check_unfetched(job, record)
            request = FetchRequest(record.job, record.url_key, record.url, fetch_no=record.fetch_no)
            self.on_way[record.job, record.url_key] = Way(request, self.now, self.marks.written, "ending")
        else:
            assert way.state == "ending", f"{record.url} ends as {record.outcome.name} while it is {way.state}"
            assert record.fetch_no == way.request.fetch_no, f"{record.url}: row of fetch {record.fetch_no} for {way}"
        self.put_row(record)

    def _check_unfetched(self, job: JobModel, record: Record) -> None:
        host, url = HOST_OF[record.url_key], record.url
        word = self.model.robots.get(host)
        right = {
            "excluded": not job.wants(url, record.depth),
            "trap": host in job.closed and "/d/" in url,
            "robots": word == "disallow" or (word == "rules" and url.endswith("/3")),
            "dns": word == "failed",
        }
        assert right.get(record.reason), f"{url} ends unfetched as {record.reason}; robots: {word}, {job}"

    def put_row(self, record: Record) -> None:
        """Storage has a row; its receipt is still to come."""
        life = self.model.jobs[record.job].life
        self.table.setdefault((record.job, life, record.url_key, record.fetch_no), set()).add(record.outcome)
        self.rows.append((record.job, record))

    # ---- crash

    def crash(self, lost: float, later: float, booted: bool) -> None:
        """The program is gone, `lost` of what no fsync has kept with it (0: none, 1: all); a new one starts."""
        self.expire()
        log = self.scheduler.log
        os.close(log._fd)
        size = log.size
        keep = max(self.marks.synced, size - round(lost * (size - self.marks.synced)))
        os.truncate(self.directory / f"{log._segment:08d}.log", keep)
        self.model, whole, torn = self.marks.cut(keep)
        if self.jumped:
            self.model.free_at = dict.fromkeys(self.model.free_at, 0.0)
        before, now = self.now, self.clock.now()
        self.clock = ManualClock(now + later, 50.0 if booted else before + later)
        gone = self.now - before - later
        for host in self.model.free_at:
            self.model.free_at[host] += gone
        for (uid, url_key), way in self.on_way.items():
            job = self.model.jobs.get(uid)
            if way.held and job is not None and url_key in job.admitted - set(job.ended):
                job.held.add(url_key)
            known = way.group <= whole or (way.group == whole + 1 and PARTITION_OF.get(url_key) in torn)
            if uid in self.model.jobs and way.state == "leased" and known:
                host, delay_s = way.request.host, self.model.jobs[uid].delay_s
                self.model.free_at[host] = max(self.model.free_at[host], self.now + delay_s)
        self.on_way, self.stale, self.decided, self.jumped = {}, [], set(), False
        self.marks = Marks(self.model)
        self.marks.synced = keep
        self.crashes += 1
        self.scheduler = self._open()
        self.turn()

    # ---- what must hold

    def places(self) -> tuple[dict[Key, int], dict[Key, str]]:
        """(URLs that wait, with their fetch; URLs on their way, with their state) as the scheduler has them."""
        frontier = self.scheduler.frontier
        waiting: dict[Key, int] = {}
        for uid, job in frontier.jobs.items():
            for number in frontier.store.hosts_of(job.number):
                for _, packed in frontier.store.items(number, job.number):
                    entry = unpack(packed)
                    waiting[uid, entry.url_key] = entry.fetch_no
        for _, _, uid, packed in self.scheduler.dispatcher.frontier.delayed.items():
            entry = unpack(packed)
            waiting[uid, entry.url_key] = entry.fetch_no
        on_way = {
            key: w.state.name.lower() for key, w in frontier.in_flight.urls.items() if not key[0].startswith(DELETED)
        }
        return waiting, on_way

    def check(self) -> None:
        """The scheduler says what the model says, and its own invariants hold."""
        assert not self.dead, self.dead
        self.expire()
        check(self.scheduler.dispatcher)
        frontier = self.scheduler.frontier
        waiting, on_way = self.places()
        wanted = {key: way.state for key, way in self.on_way.items()}
        assert on_way == wanted, f"on their way are {on_way}, not {wanted}"
        leases = {key: way.until for key, way in self.on_way.items() if way.state == "leased"}
        actual_leases = {
            key: until for key, until in frontier.in_flight.leases.items() if not key[0].startswith(DELETED)
        }
        assert actual_leases == leases, f"leases end at {actual_leases}, not {leases}"
        assert len(frontier.in_flight.leases) <= frontier.config.concurrency, (
            f"{len(frontier.in_flight.leases)} fetches at once"
        )
        assert len(frontier.in_flight) <= frontier.config.window, f"{len(frontier.in_flight)} URLs at once"
        specs = {uid: job.spec for uid, job in frontier.jobs.items()}
        modelled = {uid: job.spec for uid, job in self.model.jobs.items()}
        assert specs == modelled, f"jobs are {specs}, not {modelled}"
        for uid, job in self.model.jobs.items():
            actual = frontier.jobs[uid]
            seen = {key for key in URL_OF if key in actual.seen}
            assert seen == job.admitted, f"{uid}: {names(seen ^ job.admitted)} differ"
            for key in list(job.ended):
                if (uid, key) in waiting:
                    self._reopen(job, key, waiting[uid, key])
            open_ = {key for key in job.admitted if (uid, key) in waiting or (uid, key) in on_way}
            assert open_ == job.admitted - set(job.ended), f"{uid}: {names(open_ ^ (job.admitted - set(job.ended)))}"
            actual.due_table.check()
            out = {key for key in URL_OF if actual.due_table.is_checked_out(key)}
            assert out <= open_, f"{uid}: {names(out - open_)} will never be fetched again"
            ended = Counter(outcome for _, outcome in job.ended.values())
            assert ended == +actual.counts.ended, f"{uid}: {actual.counts.ended} is not {ended}"
            for key, (fetch_no, outcome) in job.ended.items():
                rows = self.table.get((uid, job.life, key, fetch_no), set())
                assert outcome in rows, f"{uid}: {URL_OF[key]} ended as {outcome.name}, its rows are {rows}"


def names(keys: Iterable[bytes]) -> list[str]:
    """For messages."""
    return sorted(URL_OF[key] for key in keys)
