"""A worker without a process: the other end of a link, in this one, that does what the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers.bus import Workers
from nephila.kernel.bus.workers.link import UNBOUNDED, WorkerChannel
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECORDS, REQUESTS


def at_once(callback: Callable[[], None]) -> None:
    """There is no loop that anything could be put off to."""
    callback()


class FarWorker:
    """What it was given stands in `requests` and `jobs`; it ends a request when the test says so."""

    def __init__(self, workers: Workers, clock: Clock, number: int = 1) -> None:
        self.workers = workers
        self.bus = LocalBus(clock)
        self.requests: list[Delivery] = []
        self.jobs: list[m.CrawlJob] = []
        self.words: list[Any] = []
        self.order: list[str] = []
        self.link = WorkerChannel(self.bus, lambda data: self.member.link.receive(bytes(data)), at_once, print)
        self.member = workers.connect(number, lambda data: self._receive(bytes(data)), at_once, print)
        for topic in (OUTCOMES, OUTLINKS, RECORDS):
            self.link.forward(topic, "main")
        self.bus.subscribe(JOBS, "w", self._on_job, credits=UNBOUNDED)
        self.bus.subscribe(REQUESTS, "w", self._on_request, credits=UNBOUNDED)
        self.link._on_control = self.words.append

    def join(self) -> FarWorker:
        """It is ready."""
        self.workers.join(self.member)
        return self

    def die(self) -> int:
        """As kill -9 would: nothing more comes from it."""
        self.link.close()
        return self.workers.lost(self.member)

    @property
    def urls(self) -> list[str]:
        """Of the requests that it has and has not ended."""
        return [delivery.message.url for delivery in self.requests]

    def end(self, url: str, result: m.FetchResult = m.FetchResult.FETCHED, record: bool = True) -> None:
        """End a request: record first, as a parser in the same process does, then the outcome."""
        delivery = next(one for one in self.requests if one.message.url == url)
        self.requests.remove(delivery)
        request = delivery.message
        receipts = []
        if result is m.FetchResult.FETCHED and record:
            receipts.append(self.bus.publish(RECORDS, delivery.partition, record_of(request)))
        receipts.append(self.bus.publish(OUTCOMES, delivery.partition, outcome_of(request, result)))
        delivery.ack_after(receipts)

    def _receive(self, data: bytes) -> None:
        self.link.receive(data)

    def _on_job(self, delivery: Delivery) -> None:
        self.jobs.append(delivery.message)
        self.order.append(delivery.message.uid)
        delivery.ack()

    def _on_request(self, delivery: Delivery) -> None:
        self.requests.append(delivery)
        self.order.append(delivery.message.url)


def request(url: str, job: str = "j", fetch_no: int = 1, attempt: int = 1) -> m.FetchRequest:
    """A request for a URL whose host is its first part."""
    return m.FetchRequest(
        job, url.encode().ljust(16, b"."), url, url.partition("/")[0], fetch_no=fetch_no, attempt=attempt
    )


def outcome_of(request: m.FetchRequest, result: m.FetchResult) -> m.FetchOutcome:
    """The end of that request."""
    return m.FetchOutcome(
        request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, result=result
    )


def record_of(request: m.FetchRequest) -> m.Record:
    """What a parser makes of that request's page."""
    return m.Record(request.job, request.url_key, request.url, request.fetch_no, request.attempt, m.Outcome.STORED)
