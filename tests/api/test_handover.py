"""What is stored was taken: the bus between a crawl and whoever takes its pages."""

from __future__ import annotations

import asyncio

import pytest
from nephila.api.handover import Handover
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import PAGES, RECORDS


@pytest.fixture
def stored():
    """URLs of the records that went on to storage."""
    return []


@pytest.fixture
async def bus(stored):
    """On this loop."""
    handover = Handover(SystemClock(), all_outcomes=False, found_links=True)
    handover.subscribe(
        RECORDS, "storage", lambda delivery: (stored.append(delivery.message.url), delivery.ack()), credits=9
    )
    handover.begin()
    return handover


def come(bus, number):
    """A page and its record; returns the receipt of the record."""
    key, url = bytes([number]) * 16, f"http://a.test/{number}"
    bus.publish(PAGES, 0, m.Page("crawl", key, url, fetch_no=1, attempt=1, body=b"<p>words"))
    return bus.publish(RECORDS, 0, m.Record("crawl", key, url, 1, 1, m.Outcome.STORED))


async def test_a_page_that_comes_while_it_is_asked_for_is_not_done_with(bus, stored):
    """The loop may learn of the question after it has answered it."""
    waiter = bus.next_page()
    receipt = come(bus, 1)
    assert waiter.result().url == "http://a.test/1"
    await asyncio.sleep(0)
    assert (stored, receipt.done, bus.unacked) == ([], False, 1)
    bus.next_page()
    await asyncio.sleep(0)
    assert (stored, receipt.done, bus.unacked) == (["http://a.test/1"], True, 0)


async def test_who_asked_and_went_away_gets_nothing(bus, stored):
    """The page is for whoever asks next."""
    bus.next_page().cancel()
    come(bus, 1)
    await asyncio.sleep(0)
    waiter = bus.next_page()
    await asyncio.sleep(0)
    assert waiter.result().url == "http://a.test/1"
    assert stored == []


async def test_the_end_is_told_to_who_waits_and_who_comes(bus):
    """Or the error that ended it."""
    waits = bus.next_page()
    bus.finish(KeyError("x"))
    for waiter in (waits, bus.next_page()):
        with pytest.raises(KeyError):
            waiter.result()


async def test_what_is_denied_goes_by(bus, stored):
    """Where only stored pages are wanted."""
    bus.publish(RECORDS, 0, m.Record("crawl", b"k" * 16, "http://a.test/", 1, 1, m.Outcome.DENIED))
    assert stored == ["http://a.test/"]
