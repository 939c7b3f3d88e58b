"""A dispatcher without bus, log and disk: one host, requests that the test ends itself, and what became of a URL."""

from __future__ import annotations

import random
from typing import Any

from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import (
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Receipt,
    Receipts,
    Record,
)
from nephila.native import HostStore, Trie, parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine.admission import add_seed
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.frontier.host_state import Host, TurnOutput
from nephila.scheduler.frontier.in_flight import LifeState, Outstanding
from nephila.scheduler.jobs.queue_entry import unpack
from nephila.scheduler.jobs.strategies import TAIL
from nephila.scheduler.politeness.host_pace import MARGIN_S

from tests.jobs import crawl_job
from tests.scheduler.deployments import deployed
from tests.scheduler.invariants import check

JOB = "t"
UTC_OFFSET = 1_700_000_000.0
ADDRESS = "192.0.2.1"


class OutcomeRig:
    """One dispatcher with exact instants: no jitter unless it is set. `now` is moved by the test."""

    def __init__(self, one: PartitionSlice | None = None, **config: Any) -> None:
        settings = SchedulerConfig(**{"partitions": 1, "jitter": 0.0, "concurrency": 1, **config})
        self.frontier = Frontier(settings, HostStore(), lambda number: Trie(), random.Random(1), **deployed(one))
        self.dispatcher = Dispatcher(self.frontier)
        self.handler = self.dispatcher.outcomes
        self.now = 1000.0
        self.records: list[Record] = []
        self.pass_time(0.0)

    def pass_time(self, seconds: float) -> None:
        """Begin a turn at a later instant."""
        self.now += seconds
        self.frontier.begin_turn(self.now, self.now + UTC_OFFSET)

    def job(self, *seeds: str, uid: str = JOB, **spec: Any) -> None:
        """Put a job, or its new state, with seeds."""
        known = self.frontier.jobs.get(uid)
        sections = {"scope": Scope(max_depth=-1), "politeness": Politeness(delay="1s", respect_robots=False), **spec}
        wanted = crawl_job(uid, uid, known.spec.generation + 1 if known else 1, **sections)
        put_job(self.frontier, wanted)
        for seed in seeds:
            parts = parse_url(seed)
            refused = add_seed(
                self.frontier, self.frontier.jobs[uid], parts.host_key, parts.path_query, parts.href, parts.fingerprint
            )
            assert not refused

    def dispatch(self) -> list[FetchRequest]:
        """One turn; returns its requests."""
        out = TurnOutput()
        self.dispatcher.dispatch(self.now, out)
        self.records += [record for _, record in out.records]
        self.check()
        return [request for _, request in out.requests]

    def next_request(self) -> FetchRequest:
        """Pass time until a request is made."""
        for _ in range(100):
            found = self.dispatch()
            if found:
                return found[0]
            at = self.dispatcher.next_event()
            assert at is not None, "nothing is due"
            self.pass_time(max(at - self.now, 0.0))
        raise AssertionError("a hundred turns without a request")

    def next_try(self, url: str) -> FetchRequest:
        """The next request of a URL; other URLs are fetched meanwhile."""
        while (request := self.next_request()).url != url:
            self.end(request, result=FetchResult.FETCHED, status=200)
        return request

    def outcome(self, request: FetchRequest, **fields: Any) -> FetchOutcome:
        """An outcome of a request that was dialled 0.1 s ago, unless its fields differ."""
        utc = self.now + UTC_OFFSET
        found = FetchOutcome(
            request.job,
            request.url_key,
            request.host,
            request.kind,
            request.fetch_no,
            request.attempt,
            request.epoch,
            started_at=utc - 0.1,
            ended_at=utc,
            lease_until=request.lease_until,
            request=request if fields.get("result") is FetchResult.RETRACTED else None,
        )
        for name, value in fields.items():
            setattr(found, name, value)
        return found

    def end(self, request: FetchRequest, **fields: Any) -> None:
        """Hand in the outcome of a request."""
        out = TurnOutput()
        self.handler.outcome(self.outcome(request, **fields), self.now, out)
        self.records += [record for _, record in out.records]
        assert not out.requests
        self.check()

    def receipt(self, url: str, fetch_no: int, outcome: Outcome = Outcome.STORED, job: str = JOB) -> None:
        """Hand in a receipt."""
        self.dispatcher.endings.receipts(Receipts(job, [Receipt(parse_url(url).fingerprint, fetch_no, outcome)]))
        self.check()

    def check(self) -> None:
        """The invariants of the frontier."""
        check(self.dispatcher)

    # ---- what became of a URL

    @property
    def host(self) -> Host:
        """The host of the tests."""
        return self.frontier.hosts.get_or_create("a.test")

    @property
    def pause_s(self) -> float:
        """Seconds until the host may be fetched from."""
        return max(round(self.host.pace.not_before - self.now - MARGIN_S, 3), 0.0)

    def waiting(self, url: str, job: str = JOB) -> Outstanding | None:
        """The outstanding URL."""
        key = parse_url(url).fingerprint
        return self.frontier.in_flight.urls.get((job, key))

    def state(self, url: str, job: str = JOB) -> str:
        """State of a URL: queued and delayed ones with the fetch and the tries made of it, `ending` with its row."""
        key = parse_url(url).fingerprint
        waiting = self.waiting(url, job)
        if waiting is not None:
            if waiting.state is LifeState.ENDING:
                row = next(record for record in reversed(self.records) if record.url_key == key)
                return f"{row.outcome.name.lower()}({row.reason})"
            return waiting.state.name.lower()
        known = self.frontier.jobs.get(job)
        if known is None or key not in known.seen:
            return "unknown"
        for when, _, uid, packed in self.dispatcher.frontier.delayed.items():
            entry = unpack(packed)
            if (uid, entry.url_key) == (job, key):
                return f"delayed {round(when - self.now, 3):g} s, {tries(entry.fetch_no, entry.attempts)}"
        for number in self.frontier.store.hosts_of(known.number):
            for order, packed in self.frontier.store.items(number, known.number):
                entry = unpack(packed)
                if entry.url_key == key:
                    return f"{'behind' if order == TAIL else 'queued'}, {tries(entry.fetch_no, entry.attempts)}"
        return "ended"


def tries(fetch_no: int, attempts: int) -> str:
    """Fetch number and tries made, as the tables write them."""
    return f"fetch {fetch_no}, tries {attempts}"
