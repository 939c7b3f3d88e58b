"""A scripted web around a real scheduler: downloader, parser and storage in a few address_queue, on a manual clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import (
    CrawlJob,
    FetchKind,
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Outlinks,
    Receipt,
    Receipts,
    Record,
    Seed,
)
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, RECORDS, REQUESTS, REQUESTS_BROWSER, SEEDS
from nephila.native import partition_of
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.standalone import Scheduler

from tests.jobs import crawl_job
from tests.links import outlinks

JOB = "t"


@dataclass
class Answer:
    """What the scripted web says to one request."""

    links: list[str] = field(default_factory=list)
    status: int = 200
    location: str = ""
    reason: str = ""
    retry_after_s: float = 0.0
    took_s: float = 0.1
    body: bytes = b""
    result: FetchResult | None = None
    cause: str = ""
    detail: str = ""
    silent: bool = False
    """No outcome ever comes."""
    dialled: bool = True
    """False when it ends before anybody was asked: no server knows of it."""


@dataclass(eq=False)
class Fetched:
    """One request as the server would have logged it."""

    url: str
    host: str
    start: float
    end: float
    attempt: int
    fetch_no: int
    job: str = JOB


Web = Callable[[FetchRequest], Answer]


def links_of(parent: FetchRequest, links: list[str]) -> Outlinks:
    """The message that the parser makes of a page's links."""
    return outlinks(
        *links,
        job=parent.job,
        depth=parent.depth + 1,
        parent_key=parent.url_key,
        parent_url=parent.url,
        parent_priority=int(parent.priority),
        context=parent.context,
    )


class World:
    """Runs one scheduler in `directory` against a web; a new World on the same directory is a restart."""

    def __init__(self, directory: Path, web: Web, clock: ManualClock | None = None, **config: object) -> None:
        self.clock = clock or ManualClock()
        self.web = web
        self.bus = LocalBus(self.clock)
        settings = {"directory": str(directory), "partitions": 4, **config}
        self.scheduler = Scheduler(SchedulerConfig(**settings), self.bus, self.clock, random.Random(1))  # type: ignore[arg-type]
        # The loop stands still while the clock moves: an fsync in a thread would never end, and hold up snapshots.
        self.scheduler.files.start_sync = lambda: None  # type: ignore[method-assign]
        self.fetched: list[Fetched] = []
        self.under_way: list[Fetched] = []
        self.rows: dict[bytes, Record] = {}
        """Fingerprint → row, of the job the tests speak of; those of others under their name and the fingerprint."""
        self.held: list[Record] = []
        self.hold_receipts = False
        for topic in (REQUESTS, REQUESTS_BROWSER):
            self.bus.subscribe(topic, "downloader", self._on_request, credits=1000)
        self.bus.subscribe(RECORDS, "storage", self._on_record, credits=10_000)

    async def start(self) -> World:
        """Recover and settle."""
        await self.scheduler.start()
        self.clock.run_due()
        return self

    def crawl(
        self,
        *seeds: str,
        scope: Scope | None = None,
        delay_s: float = 1.0,
        robots: bool = False,
        job: str = JOB,
        **spec: object,
    ) -> CrawlJob:
        """Submit a job, or what is wanted of it now, and its seeds."""
        known = self.scheduler.frontier.jobs.get(job)
        generation = known.spec.generation + 1 if known is not None else 1
        manners = Politeness(delay=duration_text(delay_s), respect_robots=robots)
        wanted = crawl_job(job, job, generation, [], scope or Scope(max_depth=-1), manners, **spec)  # type: ignore[arg-type]
        self.bus.publish(JOBS, 0, wanted)
        for seed in seeds:
            self.bus.publish(SEEDS, 0, Seed(job, seed))
        self.clock.run_due()
        return wanted

    def run(self, limit_s: float = 10_000.0) -> World:
        """Let time pass until nothing is due any more."""
        end = self.clock.monotonic() + limit_s
        while (due := self.clock.next_due) is not None and due <= end and not self.done:
            self.clock.advance(max(0.0, due - self.clock.monotonic()))
        return self

    @property
    def done(self) -> bool:
        """Nothing queued, nothing on its way."""
        return self.scheduler.idle and self.scheduler.fetchable == 0 and self.bus.unacked == 0

    def outcomes(self) -> dict[str, str]:
        """URL → outcome(reason) of every row."""
        return {r.url: r.outcome.name.lower() + (f"({r.reason})" if r.reason else "") for r in self.rows.values()}

    def _on_request(self, delivery: Delivery) -> None:
        request: FetchRequest = delivery.message
        answer = self.web(request)
        if request.start_by < self.clock.now():
            answer = Answer(result=FetchResult.EXPIRED, took_s=0.1, dialled=False)
        start = self.clock.monotonic()
        fetched = Fetched(request.url, request.host, start, start, request.attempt, request.fetch_no, request.job)
        if answer.dialled:
            self.fetched.append(fetched)
        if answer.silent:
            delivery.ack()
            return
        self.under_way.append(fetched)
        self.clock.call_at(start + answer.took_s, lambda: self._finish(delivery, request, answer, fetched))

    @staticmethod
    def address_of(host: str) -> str:
        """The server address of a host: one each."""
        return f"192.0.2.{sum(host.encode()) % 251}"

    def kill(self) -> None:
        """The process is gone: what it was fetching ends now for the server."""
        for fetched in self.under_way:
            fetched.end = self.clock.monotonic()

    def _finish(self, delivery: Delivery, request: FetchRequest, answer: Answer, fetched: Fetched) -> None:
        fetched.end = self.clock.monotonic()
        self.under_way.remove(fetched)
        result = answer.result
        reason = answer.reason
        if result is None:
            if answer.location:
                result = FetchResult.REDIRECT
            elif reason or answer.status >= 400:
                result, reason = FetchResult.FAILED, reason or f"http_{answer.status}"
            else:
                result = FetchResult.FETCHED
        utc = self.clock.now()
        receipts = []
        if result is FetchResult.FETCHED and request.kind is not FetchKind.ROBOTS:
            receipts = self._parse(request, answer)
        outcome = FetchOutcome(
            request.job,
            request.url_key,
            request.host,
            request.kind,
            request.fetch_no,
            request.attempt,
            request.epoch,
            result,
            reason,
            answer.status if not answer.reason else 0,
            utc - answer.took_s if answer.dialled else 0.0,
            utc,
            self.address_of(request.host),
            answer.retry_after_s,
            answer.location,
            answer.body,
            detail=answer.detail,
            lease_until=request.lease_until,
            cause=answer.cause,
        )
        receipts.append(self.bus.publish(OUTCOMES, delivery.partition, outcome))
        delivery.ack_after(receipts)

    def _parse(self, request: FetchRequest, answer: Answer) -> list:
        receipts = []
        if answer.links:
            receipts.append(self.bus.publish(OUTLINKS, 0, links_of(request, answer.links)))
        record = Record(
            request.job,
            request.url_key,
            request.url,
            request.fetch_no,
            request.attempt,
            Outcome.STORED,
            depth=request.depth,
        )
        receipts.append(self.bus.publish(RECORDS, 0, record))
        return receipts

    def _on_record(self, delivery: Delivery) -> None:
        record: Record = delivery.message
        key = record.url_key if record.job == JOB else record.job.encode() + record.url_key
        known = self.rows.get(key)
        if known is None or known.fetch_no <= record.fetch_no:
            self.rows[key] = record
        if self.hold_receipts:
            self.held.append(record)
        else:
            self._receipt(record)
        delivery.ack()

    def release(self, count: int) -> None:
        """Let the receipts of the first `count` rows that are held go out."""
        held, self.held = self.held[:count], self.held[count:]
        for record in held:
            self._receipt(record)

    def _receipt(self, record: Record) -> None:
        receipt = Receipt(record.url_key, record.fetch_no, record.outcome)
        partition = partition_of(record.url_key, 4)
        self.bus.publish(RECEIPTS, partition, Receipts(record.job, [receipt]))


def site(pages: dict[str, list[str]], base: str = "http://a.test") -> Web:
    """A web of 200s; keys and links are paths of one host unless they are absolute."""

    def absolute(path: str) -> str:
        return path if "://" in path else base + path

    table = {absolute(path): [absolute(link) for link in links] for path, links in pages.items()}

    def web(request: FetchRequest) -> Answer:
        if request.kind is FetchKind.ROBOTS:
            return Answer(status=404)
        if request.url in table:
            return Answer(table[request.url])
        return Answer(status=404)

    return web


def chain(n: int) -> Web:
    """Page i links to i + 1 and i + 2; n pages."""
    return site({f"/{i}": [f"/{j}" for j in (i + 1, i + 2) if j < n] for i in range(n)})
