"""The frontier against a small model: any sequence of jobs, links, answers, receipts, pauses, crashes and clocks.

Short by default; NEPHILA_LONG=1 (make test-long) runs 100,000 operations, or NEPHILA_LONG_OPERATIONS of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from nephila.kernel.messages import (
    CrawlJob,
    FetchKind,
    FetchOutcome,
    FetchResult,
    HostBudget,
    LinkSource,
    Outcome,
    Politeness,
    Quarantine,
    Receipt,
    Receipts,
    Record,
    Recrawl,
    Scope,
    ScopeMode,
    Seed,
    Strategy,
    Traps,
)
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.scheduler.hosts import yield_of
from nephila.scheduler.politeness import is_refusal, may_retry

from tests import state_machines
from tests.scheduler.frontier_model import HOSTS, KEYS, URL_OF, URLS, JobModel, Way
from tests.scheduler.frontier_rig import Rig, listed

LONG = bool(os.environ.get("NEPHILA_LONG"))
LONG_OPERATIONS = int(os.environ.get("NEPHILA_LONG_OPERATIONS", "100000"))
STEPS = 200
UIDS = ["a", "b", "c"]

uids = st.sampled_from(UIDS)
urls = st.sampled_from(URLS)
picks = st.integers(0, 1 << 16)
specs = st.fixed_dictionaries(
    {
        "scope": st.builds(
            Scope,
            mode=st.just(ScopeMode.ANY),
            exclude=st.sampled_from([[], [], ["/2$"], ["h1", "/5"]]),
            max_depth=st.sampled_from([-1, -1, 2, 0]),
            max_pages=st.sampled_from([0, 0, 0, 3, 8]),
        ),
        "politeness": st.builds(
            Politeness,
            delay_s=st.sampled_from([0.0, 0.5, 2.0]),
            concurrency_per_host=st.just(1),
            ignore_robots=st.booleans(),
            adaptive=st.sampled_from([False, False, True]),
        ),
        "strategy": st.sampled_from(list(Strategy)),
        "paused": st.sampled_from([False, False, False, True]),
        "weight": st.sampled_from([0.0, 1.0, 3.0]),
        "recrawl": st.sampled_from(
            [
                None,
                Recrawl(every_s=120.0),
                Recrawl(min_s=30.0, max_s=900.0, gone_after=2),
                Recrawl(cron="*/5 * * * *"),
                Recrawl(every_s=90.0, monitor=True),
            ]
        ),
        "host_budget": st.sampled_from([None, None, HostBudget(pages=3), HostBudget(queued=2), HostBudget(pages=1)]),
        "traps": st.sampled_from([None, None, Traps(off=True)]),
    }
)
ANSWERS: dict[str, dict[str, Any]] = {
    "ok": {"result": FetchResult.FETCHED, "status": 200},
    "same": {"result": FetchResult.NOT_MODIFIED, "status": 304},
    "moved": {"result": FetchResult.REDIRECT, "status": 301},
    "nowhere": {"result": FetchResult.REDIRECT, "status": 302, "location": "mailto:x@y.test"},
    "404": {"result": FetchResult.FAILED, "reason": "http_404", "status": 404},
    "410": {"result": FetchResult.FAILED, "reason": "http_410", "status": 410},
    "500": {"result": FetchResult.FAILED, "reason": "http_500", "status": 500},
    "429": {"result": FetchResult.FAILED, "reason": "http_429", "status": 429},
    "503": {"result": FetchResult.FAILED, "reason": "http_503", "status": 503, "retry_after_s": 20.0},
    "slow": {"result": FetchResult.FAILED, "reason": "timeout"},
    "dns": {"result": FetchResult.FAILED, "reason": "dns"},
    "given back": {"result": FetchResult.UNSPECIFIED, "reason": "busy", "started_at": 0.0},
    "expired": {"result": FetchResult.EXPIRED, "started_at": 0.0},
    "private": {"result": FetchResult.DENIED, "reason": "address", "started_at": 0.0},
    "picture": {"result": FetchResult.CONTENT_TYPE, "reason": "content_type", "status": 200},
}
BODIES = [
    b"",
    b"User-agent: *\nDisallow: /3\nDisallow: /d/3",
    b"User-agent: *\nDisallow: /\n",
    b"User-agent: *\nCrawl-delay: 3",
]
WORDS = ["allow", "rules", "disallow", "allow"]


class FrontierMachine(RuleBasedStateMachine):
    """One frontier over crashes, and the model it should agree with."""

    config: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="frontier-"))
        self.rig = Rig(self.folder, **self.config)
        self.pending = False

    # ---- jobs

    def put(self, uid: str, **wanted: Any) -> None:
        """Send the desired state of a job."""
        rig = self.rig
        known = rig.model.jobs.get(uid)
        spec = CrawlJob(uid, uid, known.spec.generation + 1 if known else 1, **wanted)
        rig.bus.publish(JOBS, 0, spec)
        if known is None:
            rig.lives += 1
            known = rig.model.jobs[uid] = JobModel(rig.lives, spec)
        known.spec = spec
        known.recrawled = known.recrawled or spec.recrawl is not None

    @initialize(first=specs, second=specs, batch=st.lists(urls, min_size=2, max_size=5))
    def begin(self, first: dict[str, Any], second: dict[str, Any], batch: list[str]) -> None:
        """Two jobs with the same seeds."""
        self.put("a", **first)
        self.put("b", **second)
        self.seeds("a", batch)
        self.seeds("b", batch)

    @rule(uid=uids, spec=specs)
    def apply(self, uid: str, spec: dict[str, Any]) -> None:
        """A new job, or another generation of one."""
        self.put(uid, **spec)

    @rule(uid=uids, change=st.sampled_from(["paused", "host_budget", "recrawl", "weight", "strategy"]), spec=specs)
    def change(self, uid: str, change: str, spec: dict[str, Any]) -> None:
        """One thing about a job."""
        if uid in self.rig.model.jobs:
            old = self.rig.model.jobs[uid].spec
            self.put(uid, **{name: getattr(old, name) for name in spec} | {change: spec[change]})

    @rule(uid=uids, sure=st.integers(0, 3))
    def delete(self, uid: str, sure: int) -> None:
        """A job and all that is known of it goes; what is being fetched for it keeps its host busy."""
        rig = self.rig
        if uid not in rig.model.jobs or sure:
            return
        rig.bus.publish(JOBS, 0, CrawlJob(uid, uid, rig.model.jobs[uid].spec.generation + 1, deleted=True))
        del rig.model.jobs[uid]
        rig.rows = [(name, row) for name, row in rig.rows if name != uid]
        for key in [key for key in rig.on_way if key[0] == uid]:
            way = rig.on_way.pop(key)
            if way.state == "leased":
                rig.stale.append(way)
        rig.turn()

    # ---- what comes in

    def admit(self, job: JobModel, url: str, depth: int, sure: bool, seed: bool = False) -> None:
        """A URL that the job wants is admitted; where a budget per host decides it may be."""
        key = KEYS[url]
        known = self.rig.scheduler.frontier.jobs[job.spec.uid]
        if key not in job.admitted and (sure or key in known.seen):
            job.admitted.add(key)
            if seed:
                job.seeds.add(key)

    @rule(uid=uids, batch=st.lists(urls, min_size=1, max_size=4))
    def seeds(self, uid: str, batch: list[str]) -> None:
        """Seeds of a job; one that was admitted as a link stays one."""
        job = self.rig.model.jobs.get(uid)
        for url in batch:
            self.rig.bus.publish(SEEDS, 0, Seed(uid, url))
            if job is not None and not job.excluded(url):
                self.admit(job, url, 0, sure=True, seed=True)

    @rule(
        uid=uids,
        parent=urls,
        depth=st.integers(1, 3),
        batch=st.lists(urls, max_size=8, unique=True),
        ages=st.none() | st.integers(-4000, 4000),
        source=st.sampled_from(list(LinkSource)),
    )
    def links(self, uid: str, parent: str, depth: int, batch: list[str], ages: int | None, source: LinkSource) -> None:
        """The links of a page, or a list with its dates."""
        lastmods = [] if ages is None else [self.rig.clock.now() + ages] * len(batch)
        self.rig.bus.publish(OUTLINKS, 0, listed(uid, parent, depth, batch, lastmods, source))
        job = self.rig.model.jobs.get(uid)
        if job is None:
            return
        for url in batch:
            if job.wants(url, depth):
                self.admit(job, url, depth, sure=not job.budget.queued and not job.budget.pages)

    # ---- answers

    @rule(
        pick=picks,
        kind=st.sampled_from(["ok", "ok", "ok", *ANSWERS]),
        goal=urls,
        first=st.booleans(),
        batch=st.lists(urls, max_size=5, unique=True),
    )
    def answer(self, pick: int, kind: str, goal: str, first: bool, batch: list[str]) -> None:
        """One request has ended, of those that wait for it or of those that were given up."""
        rig = self.rig
        open_ = [way for key, way in rig.on_way.items() if way.state == "leased" and key[0]]
        if not open_ and not rig.stale:
            return
        way = (open_ or rig.stale)[pick % len(open_ or rig.stale)]
        if rig.stale and pick % 7 == 0:
            way = rig.stale[pick % len(rig.stale)]
        taken = rig.on_way.get((way.request.job, way.request.url_key), way)
        if way.request.kind is FetchKind.ROBOTS or taken is not way:
            # Of two requests for a URL under one name of a job an outcome cannot tell which it answers.
            return
        job = rig.model.jobs.get(way.request.job)
        current = rig.on_way.get((way.request.job, way.request.url_key)) is way
        if kind == "ok" and current and job is not None:
            self.links(way.request.job, way.request.url, way.request.depth + 1, batch, None, LinkSource(0))
        if kind in ("ok", "same") and current:
            rig.put_row(self.page(way, kind))
            if first:
                self.receipts(len(rig.rows) - 1, 1)
        self.send(way, job, current, kind, goal)

    @staticmethod
    def page(way: Way, kind: str) -> Record:
        """The row that the parser makes of a page."""
        request = way.request
        text_hash = b"" if kind == "same" else b"%08d" % request.fetch_no
        return Record(
            request.job, request.url_key, request.url, request.fetch_no, request.attempt, Outcome.STORED,
            depth=request.depth, status=200, not_modified=kind == "same", text_hash=text_hash, etag='"1"',
        )  # fmt: skip

    def outcome(self, way: Way, kind: str, **more: Any) -> FetchOutcome:
        """The message of the downloader, which has dialled a tenth of a second ago."""
        request, now = way.request, self.rig.clock.now()
        address = "192.0.2.1" if HOSTS.index(request.host) < 2 else "192.0.2.2"
        known = (
            {"started_at": now - 0.1, "ended_at": now, "address": address, "wire_bytes": 1000} | ANSWERS[kind] | more
        )
        return FetchOutcome(
            request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, request.epoch,
            **known,
        )  # fmt: skip

    def send(self, way: Way, job: JobModel | None, current: bool, kind: str, target: str) -> None:
        """Publish an outcome, and what it means to the model."""
        rig, request = self.rig, way.request
        more = {"location": target} if kind == "moved" else {}
        outcome = self.outcome(way, kind, **more)
        rig.bus.publish(OUTCOMES, 0, outcome)
        self.rest(request.host, outcome, job.delay_s if job is not None and current else 0.0)
        if not current:
            if way in rig.stale:
                rig.stale.remove(way)
            return
        assert job is not None
        if job.budget.pages and outcome.started_at:
            job.fetches[request.host] += 1
        if kind in ("ok", "same"):
            way.state = "fetched"
            if way.receipted is not None:
                self.end(way)
        elif kind in ("given back", "expired"):
            rig.again(way)
        elif kind == "moved":
            self.moved(way, job, target)
        elif outcome.result is FetchResult.FAILED and may_retry(outcome.reason) and request.attempt < 3:
            rig.again(way)
        else:
            way.state = "ending"

    def rest(self, host: str, outcome: FetchOutcome, delay_s: float) -> None:
        """The host is left alone at least so long."""
        if outcome.started_at:
            pause = (outcome.retry_after_s or 60.0) if is_refusal(outcome) else 0.0
            free_at = self.rig.model.free_at
            free_at[host] = max(free_at[host], self.rig.now + max(delay_s, pause))

    def moved(self, way: Way, job: JobModel, target: str) -> None:
        """A redirect: its target is a URL like any other."""
        request = way.request
        if request.hops >= 10:
            way.state = "ending"
        elif target == request.url:
            self.rig.again(way)
        else:
            way.state = "ending"
            seed = request.seed and request.hops < 5
            if not job.excluded(target) if seed else job.wants(target, request.depth):
                self.admit(job, target, request.depth, sure=True, seed=seed)

    @rule(
        pick=picks,
        kind=st.sampled_from(["404", "500", "429", "slow", "dns", "given back"]),
        body=st.none() | st.sampled_from(range(4)),
    )
    def robots(self, pick: int, kind: str, body: int | None) -> None:
        """A robots.txt has come, or not."""
        rig = self.rig
        asked = [way for key, way in rig.on_way.items() if not key[0]]
        if not asked:
            return
        way = asked[pick % len(asked)]
        host = way.request.host
        del rig.on_way["", way.request.url_key]
        if body is not None:
            outcome = self.outcome(way, "ok", body=BODIES[body])
            rig.model.robots[host] = WORDS[body]
        else:
            outcome = self.outcome(way, kind)
            settled = kind != "given back" and (kind == "404" or way.request.attempt >= 3)
            if settled:
                rig.model.robots[host] = {"404": "allow", "dns": "failed"}.get(kind, "disallow")
        rig.bus.publish(OUTCOMES, 0, outcome)
        self.rest(host, outcome, 0.0)

    @rule(moves=st.lists(st.tuples(picks, st.sampled_from(["ok", "ok", "ok", *ANSWERS]), urls), min_size=1, max_size=8))
    def go_on(self, moves: list[tuple[int, str, str]]) -> None:
        """The crawl goes on for a while: answers, receipts and whatever is due next."""
        for pick, kind, goal in moves:
            self.wait_for_next()
            self.rig.check()
            self.robots(pick, "404", pick % 4 if pick % 3 else None)
            self.answer(
                pick, kind, goal, pick % 5 == 0, [URLS[pick % len(URLS)], URLS[pick // 3 % len(URLS)], goal][: pick % 4]
            )
            if pick % 2:
                self.receipts(pick, pick % 4)

    # ---- receipts

    @rule(pick=picks, count=st.integers(1, 6))
    def receipts(self, pick: int, count: int) -> None:
        """Some rows are durable."""
        rig = self.rig
        for _ in range(count):
            if not rig.rows:
                return
            uid, row = rig.rows.pop(pick % len(rig.rows))
            receipt = Receipt(
                row.url_key, row.fetch_no, row.outcome, row.text_hash, row.not_modified, row.etag, status=row.status
            )
            rig.bus.publish(RECEIPTS, 0, Receipts(uid, [receipt]))
            rig.expire()
            way = rig.on_way.get((uid, row.url_key))
            if way is not None and way.request.fetch_no == row.fetch_no:
                way.receipted = row.outcome
                if way.state != "leased":
                    self.end(way)

    def end(self, way: Way) -> None:
        """A URL has ended."""
        request = way.request
        assert way.receipted is not None
        del self.rig.on_way[request.job, request.url_key]
        self.rig.model.jobs[request.job].ended[request.url_key] = (request.fetch_no, way.receipted)

    # ---- traps

    @rule(uid=uids, host=st.sampled_from(HOSTS), release=st.booleans())
    def quarantine(self, uid: str, host: str, release: bool) -> None:
        """A directory is closed as a trap, or opened again."""
        rig = self.rig
        job = rig.model.jobs.get(uid)
        if job is None:
            return
        if release:
            assert rig.scheduler.release(uid, host, "/d/") == (host in job.closed)
            job.closed.discard(host)
            return
        frontier = rig.scheduler.frontier
        quarantine = Quarantine(uid, host, "/d/", "nothing new", rig.clock.now(), 100)
        known = frontier.hosts.named(host)
        yield_of(known, frontier.jobs[uid]).restore(quarantine)
        known.changed = True
        frontier.note_quarantine(frontier.jobs[uid], known, quarantine)
        rig.scheduler._later()
        job.closed.add(host)

    # ---- time, disk, crashes

    @rule()
    def turn(self) -> None:
        """The scheduler works on what has come in."""
        self.rig.turn()

    @rule(seconds=st.sampled_from([0.1, 0.6, 2.0, 5.0, 30.0, 70.0, 400.0, 700.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.rig.clock.advance(seconds)

    @rule()
    def wait_for_next(self) -> None:
        """Time passes until something is due."""
        due = self.rig.clock.next_due
        if due is not None and due < self.rig.now + 7200:
            self.rig.clock.advance(max(0.0, due - self.rig.now))

    @rule(hours=st.sampled_from([-1, 1]), sure=st.integers(0, 3))
    def jump(self, hours: int, sure: int) -> None:
        """The wall clock is set."""
        if sure:
            return
        rig = self.rig
        rig.clock.jump(3600.0 * hours)
        if hours > 0:
            rig.jumped = True
            if rig.config.get("hot_hosts"):  # hosts are read anew from bytes, by the wall clock
                rig.model.free_at = dict.fromkeys(HOSTS, 0.0)

    @rule()
    def fsync(self) -> None:
        """What was written so far survives a power cut."""
        self.rig.scheduler.log.sync()
        self.rig.marks.synced = self.rig.scheduler.log.size

    @rule()
    def snapshot(self) -> None:
        """The log begins anew; no file of a job that was deleted stays."""
        rig = self.rig
        rig.turn()
        rig.scheduler._snapshot()
        numbers = {f"{job.number:05d}" for job in rig.scheduler.frontier.jobs.values()}
        assert {path.name.split("-")[1] for path in self.folder.glob("seen-*.run")} <= numbers

    @rule(
        lost=st.sampled_from([0.0, 0.0, 0.3, 0.8, 1.0]),
        later=st.sampled_from([0.0, 3.0, 1000.0]),
        booted=st.booleans(),
        sure=st.integers(0, 2),
    )
    def crash(self, lost: float, later: float, booted: bool, sure: int) -> None:
        """The program is killed, or the machine loses its power; a new program goes on."""
        if not sure:
            self.rig.crash(lost, later, booted)

    # ---- what must hold

    @precondition(lambda self: not self.rig.scheduler._turn_due)
    @invariant()
    def right(self) -> None:
        """Between two turns the frontier says what the model says."""
        self.rig.check()

    def teardown(self) -> None:
        """With all limits lifted and every request answered each URL ends, and nothing is left over."""
        try:
            self.drain()
        finally:
            shutil.rmtree(self.folder)

    def drain(self) -> None:
        """Answer everything until nothing is to be done."""
        rig = self.rig
        rig.turn()
        for uid, job in list(rig.model.jobs.items()):
            manners = Politeness(job.delay_s, 1, True)
            self.put(uid, scope=Scope(ScopeMode.ANY, max_depth=-1), politeness=manners, traps=Traps(off=True))
        end = rig.now + 3 * 86400
        while rig.now < end:
            rig.turn()
            for way in [*rig.on_way.values(), *rig.stale]:
                if way.request.kind is FetchKind.ROBOTS and way.state == "leased":
                    self.robots(0, "404", None)
                elif way.state == "leased" and rig.on_way.get((way.request.job, way.request.url_key), way) is way:
                    self.answer_ok(way)
            rig.turn()
            while rig.rows:
                self.receipts(0, 1)
            rig.turn()
            rig.check()
            due = rig.clock.next_due
            if due is None:
                break
            rig.clock.advance(max(0.0, due - rig.now))
        for uid, job in rig.model.jobs.items():
            assert job.admitted == set(job.ended), f"{uid}: {[URL_OF[key] for key in job.admitted - set(job.ended)]}"
            assert rig.scheduler.frontier.jobs[uid].queued == 0
        assert not rig.on_way

    def answer_ok(self, way: Way) -> None:
        """Answer one request with a page."""
        rig = self.rig
        current = rig.on_way.get((way.request.job, way.request.url_key)) is way
        if current:
            rig.put_row(self.page(way, "ok"))
        job = rig.model.jobs.get(way.request.job)
        self.send(way, job, current, "ok", "")


KINDS = {
    "roomy": {"segment_bytes": 1 << 26},
    "snapshots": {"segment_bytes": 3000, "concurrency": 5, "window": 9},
    "cold hosts": {"segment_bytes": 20_000, "hot_hosts": 1, "per_address": 1, "address_gap_s": 0.5},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(7200 if LONG else 120)
def test_any_sequence_of_operations(kind: str) -> None:
    """Whatever happens in whatever order, the frontier is the model."""
    machine = type("Machine", (FrontierMachine,), {"config": KINDS[kind]})
    examples, steps = (LONG_OPERATIONS // STEPS // len(KINDS) + 1, STEPS) if LONG else (20, 60)
    state_machines.run(machine, examples, steps, long=LONG)
