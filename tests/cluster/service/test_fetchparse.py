"""Fetch and parse in one program: pages stay inside, and an outcome follows everything that comes of its page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nephila.kernel.bus.contract import Delivery, Receipt, all_of
from nephila.kernel.messages import DeadLetter, FetchOutcome, Outlinks, Page, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, JOBS, OUTCOMES, OUTLINKS, PAGES, RECORDS, Topic
from nephila_cluster.service.fetchparse import FetchParseBus


class Broker:
    """Notes what is sent; a receipt resolves when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.receipts: list[Receipt] = []
        self.subscribed: list[str] = []
        self.unacked = 0

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        return self.publish_after((), topic, partition, message)

    def publish_after(self, receipts: Iterable[Receipt], topic: Topic, partition: int, message: Any) -> Receipt:
        receipt = Receipt()
        self.receipts.append(receipt)
        all_of(receipts).add_done_callback(lambda: self.sent.append((topic.name, message)))
        return receipt

    def subscribe(self, topic: Topic, *_: Any, **__: Any) -> None:
        self.subscribed.append(topic.name)

    def dead_letter(self, topic: Topic, service: str, *_: Any) -> Receipt:
        return self.publish(DEAD, 0, DeadLetter(topic=topic.name, service=service))

    def confirm(self) -> None:
        """The broker has everything."""
        for receipt in self.receipts:
            if not receipt.done:
                receipt.resolve_one()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.sent]


def parsed(bus: FetchParseBus, delivery: Delivery) -> None:
    """What a parser does with a page."""
    page = delivery.message
    links = bus.publish(OUTLINKS, 0, Outlinks(page.job, page.url_key))
    delivery.ack_after((links, bus.publish(RECORDS, 0, Record(page.job, page.url_key))))


def made(publishes_pages: bool = False) -> tuple[Broker, FetchParseBus]:
    broker = Broker()
    bus = FetchParseBus(broker, ManualClock(), publishes_pages)
    bus.subscribe(PAGES, "parser", lambda delivery: parsed(bus, delivery), credits=10)
    bus.subscribe(JOBS, "parser", lambda delivery: delivery.ack(), credits=10)
    return broker, bus


def test_a_page_never_travels_and_its_outcome_comes_last() -> None:
    """Nothing of the page is on the broker but its links and record, and the outcome waits for both."""
    broker, bus = made()
    assert broker.subscribed == ["jobs"]
    page = bus.publish(PAGES, 3, Page("j", b"k" * 16))
    outcome = bus.publish(OUTCOMES, 3, FetchOutcome("j", b"k" * 16))
    assert broker.names == ["outlinks", "records"]
    assert not page.done
    broker.receipts[0].resolve_one()
    assert broker.names == ["outlinks", "records"]
    broker.receipts[1].resolve_one()
    assert page.done
    assert broker.names == ["outlinks", "records", "outcomes"]
    broker.confirm()
    assert outcome.done
    assert bus.unacked == 0


def test_an_outcome_without_a_page_goes_at_once() -> None:
    """A failed fetch, or another URL, waits for no page."""
    broker, bus = made()
    bus.publish(PAGES, 3, Page("j", b"k" * 16))
    bus.publish(OUTCOMES, 3, FetchOutcome("j", b"x" * 16))
    assert broker.names == ["outlinks", "records", "outcomes"]


def test_a_page_that_cannot_be_parsed_is_a_dead_letter_on_the_broker() -> None:
    """The parser's fault is known to the system, not to this process alone."""
    broker = Broker()
    bus = FetchParseBus(broker, ManualClock())

    def fails(delivery: Delivery) -> None:
        raise RuntimeError("no")

    bus.subscribe(PAGES, "parser", fails, credits=10)
    bus.publish(PAGES, 3, Page("j", b"k" * 16))
    bus.publish(OUTCOMES, 3, FetchOutcome("j", b"k" * 16))
    assert broker.names == ["dead"]
    broker.confirm()
    assert broker.names == ["dead", "outcomes"]


def test_with_raw_capture_pages_go_to_the_broker_too() -> None:
    """A sink that keeps raw pages reads them there, and the outcome waits for that as well."""
    broker, bus = made(publishes_pages=True)
    bus.publish(PAGES, 3, Page("j", b"k" * 16))
    bus.publish(OUTCOMES, 3, FetchOutcome("j", b"k" * 16))
    assert broker.names == ["pages", "outlinks", "records"]
    broker.confirm()
    assert broker.names[-1] == "outcomes"
