"""Several fetch for one scheduler: it alone counts starts on an address, and hears of those who died."""

from __future__ import annotations

import itertools
import random
from functools import partial

from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.outcomes import gone
from nephila.kernel.topics import OUTCOMES
from nephila.native import parse_url

from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, chain, site

ADDRESS = "192.0.2.1"


def key_of(url: str) -> bytes:
    """The fingerprint of a URL."""
    return parse_url(url).fingerprint


def lease_of(world: World, url: str, job: str = JOB) -> float:
    """The name of the present lease of a URL; 0 without one."""
    waiting = world.scheduler.frontier.in_flight.urls.get((job, key_of(url)))
    return waiting.lease_until if waiting is not None else 0.0


def lost(world: World, url: str, *, attempt: int = 1, fetch_no: int = 1, job: str = JOB) -> None:
    """Whoever had the request is dead."""
    now = world.clock.now()
    outcome = FetchOutcome(
        job,
        key_of(url),
        "a.test",
        FetchKind.UNSPECIFIED if job else FetchKind.ROBOTS,
        fetch_no,
        attempt,
        result=FetchResult.LOST,
        reason="downloader_gone",
        started_at=now - 0.1,
        ended_at=now,
        lease_until=lease_of(world, url, job),
    )
    world.bus.publish(OUTCOMES, 0, outcome)
    world.clock.run_due()
    check(world.scheduler.dispatcher)


def may_start(world: World, job: str, url_key: bytes, attempt: int, address: str) -> bool:
    """Whether a leased fetch may start on an address that was not known before."""
    in_flight, owner = world.scheduler.frontier.in_flight, world.scheduler.partition
    return in_flight.start_late((job, url_key), attempt, address, owner.begin_turn())


async def two_hosts(tmp_path) -> World:
    """A request is out for each of two hosts whose addresses nobody knows."""
    world = await World(tmp_path, lambda request: Answer(silent=True), per_address=1, address_gap_s=0.25).start()
    world.crawl("http://a.test/0", "http://b.test/0")
    assert [fetched.host for fetched in world.fetched] == ["a.test", "b.test"]
    return world


async def test_a_first_contact_is_counted(tmp_path):
    """The second one on that address has no room until the first has ended and its gap is over."""
    world = await two_hosts(tmp_path)
    ask = partial(may_start, world)
    assert ask(JOB, key_of("http://a.test/0"), 1, ADDRESS)
    assert ask(JOB, key_of("http://a.test/0"), 1, ADDRESS), "counted already"
    assert not ask(JOB, key_of("http://b.test/0"), 1, ADDRESS)
    assert ask(JOB, key_of("http://b.test/0"), 1, "192.0.2.2")
    lost(world, "http://a.test/0")
    world.clock.advance(0.3)
    assert ask(JOB, key_of("http://b.test/0"), 1, ADDRESS)
    world.scheduler.frontier.addresses.check()


async def test_who_is_not_waited_for_has_no_room(tmp_path):
    """Another attempt, an unknown URL, a deleted job."""
    world = await two_hosts(tmp_path)
    ask = partial(may_start, world)
    assert not ask(JOB, key_of("http://a.test/0"), 2, ADDRESS)
    assert not ask(JOB, key_of("http://c.test/0"), 1, ADDRESS)
    assert not ask("other", key_of("http://a.test/0"), 1, ADDRESS)
    assert len(world.scheduler.frontier.addresses) == 0


async def test_the_gap_counts_from_what_was_sent(tmp_path):
    """A dial that took long moves the next start; an address that nobody knows any more moves nothing."""
    world = await two_hosts(tmp_path)
    addresses, begun = world.scheduler.frontier.addresses, world.clock.monotonic()
    may_start(world, JOB, key_of("http://a.test/0"), 1, ADDRESS)
    addresses.sent(ADDRESS, begun + 0.2)
    lost(world, "http://a.test/0")
    assert addresses.room(ADDRESS, begun + 0.3) == begun + 0.45
    addresses.sent("192.0.2.9", begun)
    assert len(addresses) == 1


async def test_a_lost_request_is_made_again_after_the_hosts_delay(tmp_path):
    """No attempt is counted; the host rests as after any fetch."""
    silent = [True, True, True, True, False]
    pages = site({"/0": []})

    def web(request: FetchRequest) -> Answer:
        return Answer(silent=True) if silent.pop(0) else pages(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/0")
    for number in range(1, 5):
        lost(world, "http://a.test/0")
        assert len(world.fetched) == number
        world.clock.advance(1.5)
    world.run()
    starts = [fetched.start for fetched in world.fetched]
    assert [fetched.attempt for fetched in world.fetched] == [1] * 5
    assert all(after - before >= 1.0 for before, after in itertools.pairwise(starts))
    assert world.outcomes() == {"http://a.test/0": "stored"}


async def test_a_lease_that_was_given_after_a_report_goes_on(tmp_path):
    """A report of requests whose downloader is gone names an attempt; one that was given back has the same number."""
    world = await World(tmp_path, lambda request: Answer(silent=True)).start()
    world.crawl("http://a.test/0")
    given_at = world.clock.now()
    report = FetchOutcome(JOB, key_of("http://a.test/0"), "a.test", fetch_no=1, attempt=1)
    report.result, report.reason, report.lease_until = (
        FetchResult.FAILED,
        "lease_expired",
        lease_of(world, "http://a.test/0"),
    )
    report.started_at = report.ended_at = given_at - 0.5
    world.clock.advance(6)
    world.bus.publish(OUTCOMES, 0, report)
    world.clock.advance(30)
    assert len(world.fetched) == 1
    report.started_at = report.ended_at = given_at + 0.5
    world.bus.publish(OUTCOMES, 0, report)
    check(world.scheduler.dispatcher)
    reported_at = world.clock.monotonic()
    world.clock.advance(30)
    assert [fetched.attempt for fetched in world.fetched] == [1, 2]
    assert world.fetched[1].start >= reported_at + 1.0, "the host rests as after any fetch"


async def test_downloaders_that_end_cost_a_url_more_tries_than_its_own_failures(tmp_path):
    """It is in hand by chance, mostly; one that ends them all ends after nine, and its host is not given up."""
    world = await World(tmp_path, lambda request: Answer(silent=True)).start()
    world.crawl("http://a.test/0")
    for attempt in range(1, 10):
        assert world.fetched[-1].attempt == attempt
        lease_until = lease_of(world, "http://a.test/0")
        request = FetchRequest(
            JOB, key_of("http://a.test/0"), host="a.test", fetch_no=1, attempt=attempt, lease_until=lease_until
        )
        world.bus.publish(OUTCOMES, 0, gone(request, world.clock.now()))
        world.clock.advance(30)
        check(world.scheduler.dispatcher)
    assert len(world.fetched) == 9
    assert world.outcomes() == {"http://a.test/0": "failed(lease_expired)"}


async def test_a_page_that_was_lost_on_its_way_to_a_record_is_fetched_again(tmp_path):
    """Its fetch has ended well before; the row that is made in the end is one."""
    world = World(tmp_path, chain(6))
    world.hold_receipts = True
    await world.start()
    world.crawl("http://a.test/0")
    world.clock.advance(0.5)
    assert len(world.scheduler.frontier.in_flight.leases) == 0
    assert len(world.scheduler.frontier.in_flight) == 1
    world.held.clear()
    lost(world, "http://a.test/0", attempt=2)
    lost(world, "http://a.test/0", fetch_no=2)
    assert len(world.scheduler.frontier.in_flight) == 1, "another attempt, another fetch"
    lost(world, "http://a.test/0")
    assert len(world.scheduler.frontier.in_flight) == 0
    world.hold_receipts = False
    world.run()
    assert [fetched.url for fetched in world.fetched].count("http://a.test/0") == 2
    assert set(world.outcomes().values()) == {"stored"}
    assert len(world.rows) == 6
    assert world.scheduler.ended(JOB).total() == 6


async def test_a_lost_robots_txt_is_asked_for_again(tmp_path):
    """Nothing is believed of it, and no try is counted."""
    pages = site({"/0": []})
    silent = [True]

    def web(request: FetchRequest) -> Answer:
        return Answer(silent=True) if silent and silent.pop() else pages(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/0", robots=True)
    lost(world, "http://a.test/robots.txt", job="", fetch_no=world.fetched[0].fetch_no)
    world.run()
    assert [fetched.url.rpartition("/")[2] for fetched in world.fetched] == ["robots.txt", "robots.txt", "0"]


async def test_a_restart_after_a_loss_knows_it(tmp_path):
    """What was queued again is in the log."""
    world = World(tmp_path, chain(3))
    world.hold_receipts = True
    await world.start()
    world.crawl("http://a.test/0")
    world.clock.advance(0.5)
    lost(world, "http://a.test/0")
    await world.scheduler.close()
    again = await World(tmp_path, chain(3), world.clock).start()
    again.run()
    assert len(again.rows) == 3


async def test_losses_at_random_lose_nothing(tmp_path):
    """Two hundred pages on three hosts; every third request is lost, before its outcome or after it: one row each."""
    rng = random.Random(11)
    urls = [f"http://h{n % 3}.test/{n}" for n in range(200)]
    pages = site({url: urls[2 * n + 1 : 2 * n + 3] for n, url in enumerate(urls)})
    doomed: set[bytes] = set()

    def lose(request: FetchRequest) -> None:
        doomed.discard(request.url_key)
        # Nobody has the record of a lost page.
        world.held = [record for record in world.held if record.url_key != request.url_key]
        lost(world, request.url, attempt=request.attempt, fetch_no=request.fetch_no)

    def web(request: FetchRequest) -> Answer:
        answer, fate = pages(request), rng.random()
        if fate < 0.35:
            doomed.add(request.url_key)
            answer.silent = fate < 0.15
            world.clock.call_at(world.clock.monotonic() + rng.uniform(0.01, 0.5), lambda: lose(request))
        return answer

    world = World(tmp_path, web)
    world.hold_receipts = True
    await world.start()
    world.crawl(urls[0], scope=Scope(mode="any", max_depth=-1), delay_s=0.01)
    while not world.done:
        world.clock.advance(0.05)
        world.held.sort(key=lambda record: record.url_key in doomed)
        world.release(sum(record.url_key not in doomed for record in world.held))
    assert world.scheduler.ended(JOB).total() == len(urls)
    assert set(world.outcomes()) == set(urls)
    assert 250 < len(world.fetched) < 400
