"""A frontier that is lent: identity, pace over all borrowers, leases of those that are gone, robots.txt, a restart."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError
from nephila_doors.lending.frontier import LentFrontier
from nephila_doors.scrapy import protocol

OPEN = {"politeness": {"respectRobots": False, "delay": "2s"}}


def fail(error):
    raise error


@asynccontextmanager
async def lending(directory, clock, agent="spider"):
    frontier = LentFrontier(directory, clock, agent, fail)
    await frontier.open()
    clock.run_due()
    yield frontier
    closing = asyncio.ensure_future(frontier.close())
    while not closing.done():
        await asyncio.sleep(0)
        clock.run_due()


def put(frontier, borrower, url, *, variant="", priority=128, data=b"request"):
    return frontier.enqueue(borrower, protocol.Enqueue(url, variant, priority, 0, data)).new


async def ask(frontier, clock, borrower):
    asking = asyncio.ensure_future(frontier.ask(borrower))
    while not asking.done():
        await asyncio.sleep(0)
        clock.run_due()
    return asking.result()


def fetched(frontier, clock, borrower, lease, **answer):
    ended = protocol.Fetched(lease.url_key, lease.attempt, started_at=clock.now(), **{"status": 200, **answer})
    frontier.fetched(borrower, ended)
    clock.run_due()


async def test_a_url_is_known_however_it_is_written(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        spider = frontier.join("a", OPEN, "")
        assert put(frontier, spider, "http://a.test/x?b=1&a=2")
        assert not put(frontier, spider, "HTTP://A.test:80/x?a=2&b=1&utm_source=mail")
        assert put(frontier, spider, "http://a.test/x?b=1&a=2", variant="POST:1")
        other = frontier.join("b", OPEN, "")
        assert put(frontier, other, "http://a.test/x?b=1&a=2")
        refused = frontier.enqueue(spider, protocol.Enqueue("data:,x", "", 128, 0, b""))
        assert refused.error


async def test_the_pause_of_a_host_holds_over_all_borrowers(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        one, two = frontier.join("a", OPEN, ""), frontier.join("b", OPEN, "")
        put(frontier, one, "http://a.test/1")
        put(frontier, two, "http://a.test/2")
        lease = await ask(frontier, clock, one)
        assert (lease.url, lease.data) == ("http://a.test/1", b"request")
        clock.advance(10)
        assert isinstance(await ask(frontier, clock, two), protocol.Nothing)
        fetched(frontier, clock, one, lease)
        wait = await ask(frontier, clock, two)
        assert isinstance(wait, protocol.Nothing)
        assert wait.wait_s <= 2
        clock.advance(1.9)
        assert isinstance(await ask(frontier, clock, two), protocol.Nothing)
        clock.advance(0.2)
        assert (await ask(frontier, clock, two)).url == "http://a.test/2"


async def test_an_answer_that_asks_for_a_pause_gets_it(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        spider = frontier.join("a", OPEN, "")
        put(frontier, spider, "http://a.test/1")
        put(frontier, spider, "http://a.test/2")
        fetched(frontier, clock, spider, await ask(frontier, clock, spider), status=429, retry_after="30")
        clock.advance(29)
        assert isinstance(await ask(frontier, clock, spider), protocol.Nothing)
        clock.advance(10)
        assert isinstance(await ask(frontier, clock, spider), protocol.Lease)


async def test_requests_of_a_borrower_that_is_gone_go_to_others_and_ended_ones_do_not(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        gone, other = frontier.join("a", OPEN, ""), frontier.join("a", OPEN, "")
        for name in ("a", "b", "c"):
            put(frontier, gone, f"http://{name}.test/")
        leases = [await ask(frontier, clock, gone) for _ in range(3)]
        fetched(frontier, clock, gone, leases[0])
        frontier.done(gone, [leases[0].url_key])
        fetched(frontier, clock, gone, leases[1])
        assert frontier.counts(other).elsewhere == 2
        frontier.leave(gone)
        clock.run_due()
        assert isinstance(await ask(frontier, clock, other), protocol.Nothing), "it may have been dialled just now"
        clock.advance(3)
        again = {(await ask(frontier, clock, other)).url for _ in range(2)}
        assert again == {leases[1].url, leases[2].url}
        assert isinstance(await ask(frontier, clock, other), protocol.Nothing)
        assert frontier.counts(other) == protocol.Counts(0, 0)


async def test_a_killed_frontier_continues_with_what_was_not_done(tmp_path):
    clock = ManualClock()
    killed = LentFrontier(tmp_path, clock, "", fail)
    await killed.open()
    spider = killed.join("a", OPEN, "")
    for path in "12":
        put(killed, spider, f"http://{path}.test/", data=path.encode())
    clock.run_due()
    done = await ask(killed, clock, spider)
    leased = await ask(killed, clock, spider)
    fetched(killed, clock, spider, done)
    killed.done(spider, [done.url_key])
    clock.run_due()
    later = ManualClock(clock.now() + 60, clock.monotonic() + 60)
    async with lending(tmp_path, later) as frontier:
        spider = frontier.join("a", OPEN, "")
        assert not put(frontier, spider, done.url)
        later.advance(3)
        again = await ask(frontier, later, spider)
        assert (again.url, again.data) == (leased.url, leased.data)
        assert isinstance(await ask(frontier, later, spider), protocol.Nothing)


async def test_robots_txt_is_lent_once_and_obeyed_for_all(tmp_path):
    clock = ManualClock()
    polite = {"politeness": {"delay": "1s"}}
    async with lending(tmp_path, clock) as frontier:
        one, two = frontier.join("a", polite, "spider"), frontier.join("b", polite, "spider")
        for borrower in (one, two):
            put(frontier, borrower, "http://a.test/open")
            put(frontier, borrower, "http://a.test/closed")
        robots = await ask(frontier, clock, one)
        assert robots.robots
        assert robots.url == "http://a.test/robots.txt"
        assert isinstance(await ask(frontier, clock, two), protocol.Nothing)
        body = b"User-agent: spider\nDisallow: /closed\nCrawl-delay: 5\n"
        ended = protocol.RobotsFetched(robots.url_key, robots.attempt, 200, body, started_at=clock.now())
        frontier.robots_fetched(one, ended)
        urls = []
        for _ in range(20):
            clock.advance(1)
            for borrower in (one, two):
                lease = await ask(frontier, clock, borrower)
                if isinstance(lease, protocol.Lease):
                    urls.append((clock.now(), lease.url))
                    fetched(frontier, clock, borrower, lease)
                    frontier.done(borrower, [lease.url_key])
        assert [url for _, url in urls] == ["http://a.test/open"] * 2
        assert urls[1][0] - urls[0][0] >= 5
        assert frontier.counts(one).queued == frontier.counts(two).queued == 0
        with pytest.raises(UsageError, match="robots"):
            frontier.join("c", polite, "another")


async def test_the_highest_priority_comes_first(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        spider = frontier.join("a", {"politeness": {"respectRobots": False, "delay": "0s"}}, "")
        for priority in (100, 200, 128):
            put(frontier, spider, f"http://a.test/{priority}", priority=priority)
        order = []
        for _ in range(3):
            lease = await ask(frontier, clock, spider)
            fetched(frontier, clock, spider, lease)
            order.append(lease.url.rpartition("/")[2])
        assert order == ["200", "128", "100"]


async def test_a_spider_that_does_not_ask_holds_no_host(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        busy, other = frontier.join("a", OPEN, ""), frontier.join("b", OPEN, "")
        put(frontier, busy, "http://a.test/1")
        assert isinstance(await ask(frontier, clock, other), protocol.Nothing)
        put(frontier, other, "http://a.test/2")
        assert (await ask(frontier, clock, other)).url == "http://a.test/2"


async def test_a_wrong_setting_is_named(tmp_path):
    clock = ManualClock()
    async with lending(tmp_path, clock) as frontier:
        with pytest.raises(UsageError, match=r"NEPHILA_JOB.*dealy"):
            frontier.join("a", {"politeness": {"dealy": "1s"}}, "")
