"""What may come in to a frontier, as rules of its state machine: jobs, seeds, links, answers, receipts.

Each sends the message to the scheduler and says what it means to the model. When they come, and what happens between
them, is the business of `test_frontier_machine`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import (
    CrawlJob,
    FetchKind,
    FetchOutcome,
    FetchResult,
    LinkSource,
    Outcome,
    Receipt,
    Receipts,
    Record,
    Seed,
)
from nephila.kernel.reasons.row import Retry
from nephila.kernel.reasons.table import row_of_outcome
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, SEEDS
from nephila.scheduler.politeness.host_pace import is_refusal

from tests.jobs import crawl_job
from tests.scheduler.frontier.frontier_inputs import ANSWERS, BODIES, WORDS, picks, specs, uids, urls
from tests.scheduler.frontier.frontier_model import HOSTS, KEYS, JobModel, Way
from tests.scheduler.frontier.frontier_rig import Rig, listed

SOURCES = [source for source in LinkSource if source is not LinkSource.REQUISITE]
"""Requisites need no room in a page budget and are in no trap: `test_requisites_in_the_frontier.py` has their rules."""


class Inputs(RuleBasedStateMachine):
    """A frontier over crashes, the model it should agree with, and what both are told."""

    config: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="frontier-"))
        self.rig = Rig(self.folder, **self.config)

    # ---- jobs

    def put(self, uid: str, **wanted: Any) -> None:
        """Send the desired state of a job."""
        rig = self.rig
        known = rig.model.jobs.get(uid)
        spec = crawl_job(uid, uid, known.spec.generation + 1 if known else 1, **wanted)
        rig.bus.publish(JOBS, 0, spec)
        if known is None:
            rig.lives += 1
            known = rig.model.jobs[uid] = JobModel(rig.lives, spec)
        rescoped, known.spec = known.scope != spec_of(spec).scope, spec
        for url in KEYS if rescoped else ():
            if known.wants(url, 0):  # a held link, if the frontier has it
                self.admit(known, url, 0, sure=False)
        known.wanted = wanted
        known.recrawled = known.recrawled or known.document.recrawl is not None or bool(known.document.schedule)

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
            names = ("recrawl", "schedule") if change == "recrawl" else (change,)
            old = {name: one for name, one in self.rig.model.jobs[uid].wanted.items() if name not in names}
            self.put(uid, **old | {name: spec[name] for name in names if name in spec})

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
        source=st.sampled_from(SOURCES),
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
            lease_until=request.lease_until, **known,
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
        elif outcome.result is FetchResult.FAILED and self.may_retry(outcome) and request.attempt < 3:
            rig.again(way)
        else:
            way.state = "ending"

    def may_retry(self, outcome: FetchOutcome) -> bool:
        """Whether a failed fetch is worth another try."""
        return row_of_outcome(outcome).retry is not Retry.NEVER

    def rest(self, host: str, outcome: FetchOutcome, delay_s: float) -> None:
        """The host is left alone at least so long."""
        if outcome.started_at:
            pause = (outcome.retry_after_s or 60.0) if is_refusal(outcome, row_of_outcome(outcome)) else 0.0
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
        assert way.receipted is not None, f"{request.url} ends without a receipt"
        del self.rig.on_way[request.job, request.url_key]
        self.rig.model.jobs[request.job].ended[request.url_key] = (request.fetch_no, way.receipted)

    def answer_ok(self, way: Way) -> None:
        """Answer one request with a page."""
        rig = self.rig
        current = rig.on_way.get((way.request.job, way.request.url_key)) is way
        if current:
            rig.put_row(self.page(way, "ok"))
        job = rig.model.jobs.get(way.request.job)
        self.send(way, job, current, "ok", "")
