"""A frontier whose URLs other programs fetch: the scheduler of one program, with its requests lent one by one.

Invariants: a URL is leased only when a borrower asks for it; a lease ends by `fetched` and `done`, or by `returned`
when its borrower is gone, and then another borrower gets the URL; the pace of a host counts over all borrowers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from nephila.downloader.outcome import retry_after_s
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents import job_document
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.fragment_routes import ROUTE, parse_routed
from nephila.kernel.messages import (
    FetchKind,
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Receipt,
    Receipts,
    Record,
    Seed,
)
from nephila.kernel.reasons.status_words import status_reason
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import JOBS, OUTCOMES, RECEIPTS, RECORDS, REQUESTS, SEEDS
from nephila.native import UrlError
from nephila.scheduler.config import CREDITS, SchedulerConfig
from nephila.scheduler.jobs.queue_entry import SEED, Entry, pack
from nephila.scheduler.jobs.strategies import MAX_PRIORITY
from nephila.scheduler.standalone import Scheduler
from nephila.scheduler.tenants.shares import Sharer

from nephila_doors.lending.request_store import RequestStore
from nephila_doors.scrapy import protocol

log = logging.getLogger(__name__)
LEASE_S: Final = 86_400.0
"""A borrower that has died is known by its connection; this ends leases of one that hangs."""
CONCURRENCY: Final = 100_000
"""Borrowers limit themselves by what they ask for."""
LOOK_S: Final = 1.0
"""A borrower asks again after this time at the latest: another one may have found URLs."""
LINGER_S: Final = 0.01
"""Shortest time between two questions without an answer."""


class Borrower:
    """A borrower is one connection: a spider in a process."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.leases: dict[bytes, FetchRequest] = {}
        self.fetched: set[bytes] = set()
        """Leases whose outcome has been reported, and that are not done."""


class _Asking:
    """`Slots` of the dispatcher: limits the leases to the job of the borrower that asks."""

    job = ""

    def next(self, partition: int, able: Iterable[Sharer]) -> str:
        return self.job if any(job.uid == self.job for job in able) else ""

    def leave(self, partition: int) -> None: ...

    def refund(self, job: Sharer) -> None: ...


class LentFrontier:
    def __init__(self, directory: Path, clock: Clock, agent: str, on_fatal: Callable[[BaseException], None]) -> None:
        """`agent` is the product token of all borrowers that obey robots.txt. Raises `UserError`."""
        self.agent = agent
        self.clock = clock
        self._bus = LocalBus(clock)
        config = SchedulerConfig(
            directory=str(directory / "frontier"),
            agent=agent or "nephila",
            concurrency=CONCURRENCY,
            lease_s=LEASE_S,
            recrawl=False,
        )
        self._store = RequestStore(directory)
        self._asking = _Asking()
        self.scheduler = Scheduler(
            config, self._bus, clock, on_turn=self._on_turn, on_fatal=on_fatal, slots=self._asking
        )
        self._frontier = self.scheduler.frontier
        self._ready: dict[str, deque[FetchRequest]] = {}
        """Job → leased requests that no borrower has taken; the empty name holds requests for robots.txt."""
        self._one_asks = asyncio.Lock()
        self._turn_ended = asyncio.Event()
        self._borrowers: set[Borrower] = set()
        self.refused: Counter[str] = Counter()
        """Reason → number of URLs that ended without a fetch."""

    async def open(self) -> None:
        """Recovers the frontier. Raises `UserError`."""
        self._bus.subscribe(REQUESTS, "downloader", self._on_request, credits=CREDITS)
        self._bus.subscribe(RECORDS, "storage", self._on_record, credits=CREDITS)
        self._frontier.set_limits(CONCURRENCY, 0)
        await self.scheduler.start()

    async def close(self) -> None:
        await self.scheduler.close()
        self._store.close()

    # ---- borrowers

    @property
    def borrowers(self) -> int:
        """Number of connections with a job."""
        return len(self._borrowers)

    def join(self, job: str, spec: dict[str, Any], agent: str) -> Borrower:
        """Begins the job of a spider. Raises `UsageError`."""
        if agent and agent != self.agent:
            raise UsageError(
                f"the frontier obeys robots.txt as {self.agent or 'no user agent'!r}, and the spider is {agent!r}: "
                "give all spiders of one frontier the same ROBOTSTXT_USER_AGENT, or an own NEPHILA_FRONTIER"
            )
        self._put_job(job, spec)
        borrower = Borrower(job)
        self._borrowers.add(borrower)
        return borrower

    def leave(self, borrower: Borrower) -> None:
        """Gives the requests of a borrower that are not done to others; a job without a borrower waits."""
        self._borrowers.discard(borrower)
        now = self.clock.now()
        for request in borrower.leases.values():
            # It may have been dialled just now, so its host pauses.
            self._end(request, FetchResult.LOST, started_at=now, reason=Reason.DOWNLOADER_GONE)
        if all(other.job != borrower.job for other in self._borrowers):
            job = self._frontier.jobs.get(borrower.job)
            if job is not None:
                self._bus.publish(JOBS, 0, msgspec.structs.replace(job.spec, paused=True))
            self._give_back(self._ready.pop(borrower.job, ()))
        if not self._borrowers:
            self._give_back(self._ready.pop("", ()))

    def _put_job(self, name: str, options: dict[str, Any]) -> None:
        fixed = {
            "scope": {"mode": "any"},
            "strategy": "best-first",
            "traps": {"off": True},
            "parse": {"follow": [ROUTE]},
        }
        # Read as any document, for its errors; what it has to have is not the spider's to give.
        content = {
            "apiVersion": API_VERSION,
            "kind": "CrawlJob",
            "metadata": {"name": "spider"},
            "spec": {**options, **fixed, "seeds": ["http://seed.invalid/"]},
        }
        spec = job_document.from_json(content, "NEPHILA_JOB").spec
        job = job_document.job_of(name, msgspec.structs.replace(spec, seeds=[]))
        current = self._frontier.jobs.get(name)
        if current is not None:
            job.generation = current.spec.generation
            if job != current.spec:
                job.generation += 1
        self._bus.publish(JOBS, 0, job)

    # ---- URLs

    def enqueue(self, borrower: Borrower, request: protocol.Enqueue) -> protocol.Queued:
        """Queues a URL that the job has not seen."""
        url = f"{request.url}#!{request.variant}" if request.variant else request.url
        try:
            parts = parse_routed(url)
        except UrlError as error:
            return protocol.Queued(False, str(error))
        job = self._frontier.jobs[borrower.job]
        if parts.fingerprint in job.seen:
            return protocol.Queued(False)
        self._store.put(borrower.job, parts.fingerprint, request.data)
        depth, priority = max(request.depth, 0), min(max(request.priority, 0), MAX_PRIORITY)
        entry = Entry(parts.fingerprint, depth, flags=SEED, priority=priority, url=parts.href)
        self._bus.publish(SEEDS, 0, Seed(borrower.job, entry=pack(entry)))
        return protocol.Queued(True)

    async def ask(self, borrower: Borrower) -> protocol.Lease | protocol.Nothing:
        """Leases a request that may be fetched now."""
        self._expire()
        if (lease := self._take(borrower)) is not None:
            return lease
        async with self._one_asks:
            self._asking.job = borrower.job
            self._frontier.set_limits(CONCURRENCY, len(self._frontier.in_flight.urls) + 1)
            self._turn_ended.clear()
            self.scheduler.partition.wake()
            await self._turn_ended.wait()
            self._frontier.set_limits(CONCURRENCY, 0)
        if (lease := self._take(borrower)) is not None:
            return lease
        return protocol.Nothing(self._wait_s())

    def counts(self, borrower: Borrower) -> protocol.Counts:
        job = self._frontier.jobs[borrower.job]
        waiting = len(self._ready.get(borrower.job, ()))
        others = (len(other.leases) for other in self._borrowers if other is not borrower and other.job == borrower.job)
        return protocol.Counts(job.queue.length + waiting, sum(others))

    def fetched(self, borrower: Borrower, ended: protocol.Fetched) -> None:
        """Takes the end of a download. The pace of the host counts from now, and its answer may pause the host."""
        request = borrower.leases.get(ended.url_key)
        if request is None or request.attempt != ended.attempt or ended.url_key in borrower.fetched:
            return
        borrower.fetched.add(ended.url_key)
        # The borrower decides itself whether it tries again: for the frontier every answer is a fetch.
        self._end(
            request,
            FetchResult.FETCHED,
            started_at=ended.started_at,
            status=ended.status,
            reason=status_reason(ended.status) if ended.status >= 400 else "",
            retry_after_s=retry_after_s(ended.retry_after, self.clock.now()),
            wire_bytes=ended.size_bytes,
        )

    def robots_fetched(self, borrower: Borrower, ended: protocol.RobotsFetched) -> None:
        """Takes a robots.txt, or the reason why there is none."""
        request = borrower.leases.pop(ended.url_key, None)
        if request is None:
            return
        result, reason = FetchResult.FETCHED, ""
        if not 200 <= ended.status < 300:
            result, reason = FetchResult.FAILED, status_reason(ended.status) if ended.status else Reason.CONNECT
        self._end(
            request,
            result,
            started_at=ended.started_at,
            status=ended.status,
            reason=reason,
            retry_after_s=retry_after_s(ended.retry_after, self.clock.now()),
            body=ended.body,
        )

    def done(self, borrower: Borrower, url_keys: list[bytes]) -> None:
        """Takes requests that are processed."""
        ended = []
        for key in url_keys:
            request = borrower.leases.pop(key, None)
            if request is None:
                continue
            if key not in borrower.fetched:  # it never reached the network
                self._end(request, FetchResult.FETCHED)
            borrower.fetched.discard(key)
            ended.append(Receipt(key, request.fetch_no, Outcome.STORED))
        self._receipts(borrower.job, ended)

    async def settle(self) -> None:
        """Returns when everything received survives a power cut. Raises `UserError`."""
        self._store.sync()
        await self.scheduler.durable()

    # ---- inside

    def _receipts(self, job: str, ended: list[Receipt]) -> None:
        if not ended:
            return
        keys = [row.url_key for row in ended]
        receipt = self._bus.publish(RECEIPTS, 0, Receipts(job, ended))
        receipt.add_done_callback(lambda: self._store.delete(job, keys))

    def _take(self, borrower: Borrower) -> protocol.Lease | None:
        now = self.clock.now()
        for name in ("", borrower.job):
            waiting = self._ready.get(name, deque())
            for _ in range(len(waiting)):
                request = waiting.popleft()
                if request.dial_at > now:
                    waiting.append(request)
                    continue
                if not name:
                    borrower.leases[request.url_key] = request
                    return protocol.lease_of(request, b"", robots=True)
                data = self._store.get(name, request.url_key)
                borrower.leases[request.url_key] = request
                if data is None:
                    log.error("%s: what its sender gave is lost, so it is not fetched", request.url[:500])
                    self.done(borrower, [request.url_key])
                    continue
                return protocol.lease_of(request, data, robots=False)
        return None

    def _wait_s(self) -> float:
        event = self.scheduler.partition.dispatcher.next_fetch()
        wait = LOOK_S if event is None else event - self.clock.monotonic()
        now = self.clock.now()
        dials = [request.dial_at - now for waiting in self._ready.values() for request in waiting]
        return min(max(min([wait, *dials]), LINGER_S), LOOK_S)

    def _expire(self) -> None:
        """Returns requests that no borrower takes, because all are busy, and so frees their hosts."""
        now = self.clock.now()
        for waiting in self._ready.values():
            while waiting and waiting[0].start_by < now:
                self._give_back([waiting.popleft()])

    def _give_back(self, requests: Any) -> None:
        for request in requests:
            self._end(request, FetchResult.UNSPECIFIED)

    def _end(self, request: FetchRequest, result: FetchResult, *, started_at: float = 0.0, **fields: Any) -> None:
        outcome = FetchOutcome(
            request.job,
            request.url_key,
            request.host,
            request.kind,
            request.fetch_no,
            request.attempt,
            request.epoch,
            result,
            started_at=started_at,
            ended_at=self.clock.now(),
            lease_until=request.lease_until,
            **fields,
        )
        self._bus.publish(OUTCOMES, 0, outcome)

    def _on_request(self, delivery: Delivery) -> None:
        request: FetchRequest = delivery.message
        delivery.ack()
        name = "" if request.kind is FetchKind.ROBOTS else request.job
        self._ready.setdefault(name, deque()).append(request)

    def _on_record(self, delivery: Delivery) -> None:
        """Ends a URL that is not fetched, for example because robots.txt forbids it."""
        record: Record = delivery.message
        delivery.ack()
        self.refused[record.reason] += 1
        log.info("%s: not fetched: %s", record.url[:500], record.reason)
        self._receipts(record.job, [Receipt(record.url_key, record.fetch_no, record.outcome)])

    def _on_turn(self) -> None:
        self._turn_ended.set()
