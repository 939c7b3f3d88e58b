"""Pages that are fetched again, over the whole scheduler: its clock, its log, its jobs."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import Recrawl, Scope
from nephila.kernel.messages import FetchRequest, FetchResult, LinkSource, Outcome, Receipt, Receipts, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import OUTLINKS, RECEIPTS, RECORDS

from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World, links_of, site

HOUR = 3600.0


def pass_time(world: World, seconds: float) -> World:
    """Let time pass whether or not anything is left to do."""
    world.clock.advance(seconds)
    return world


class Validating(World):
    """A world whose pages have a validator, and whose receipts say what the fetch brought."""

    texts: Callable[[Record], bytes] = staticmethod(lambda record: b"same text")
    requests: list[FetchRequest]

    def _on_request(self, delivery: Delivery) -> None:
        self.requests = [*getattr(self, "requests", []), delivery.message]
        super()._on_request(delivery)

    def _receipt(self, record: Record) -> None:
        status = 404 if record.reason == "http_404" else 410 if record.reason == "http_410" else 200
        receipt = Receipt(
            record.url_key, record.fetch_no, record.outcome, self.texts(record), etag='"v1"', status=status
        )
        self.bus.publish(RECEIPTS, 0, Receipts(record.job, [receipt]))


async def restarted(tmp_path: Path, world: World, later_s: float = 0.0) -> World:
    """The same crawl in a new program, `later_s` after the other was killed."""
    world.kill()
    clock = ManualClock(world.clock.now() + later_s, 77.0)
    again = await type(world)(tmp_path, world.web, clock).start()
    again.rows = world.rows
    return again


@pytest.mark.parametrize("snapshot", [False, True])
async def test_the_agenda_outlives_a_restart(tmp_path, snapshot):
    """What is due while the program is down is fetched at its start, what is not waits for its instant."""
    world = await World(tmp_path, site({"/": ["/1"], "/1": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 10)
    if snapshot:
        world.scheduler.snapshot()
    again = await restarted(tmp_path, world, later_s=HOUR / 2)
    pass_time(again, 0.4 * HOUR)
    assert again.fetched == []
    again = await restarted(tmp_path, again, later_s=HOUR / 2)
    pass_time(again, 10)
    assert [(f.url, f.fetch_no) for f in again.fetched] == [("http://a.test/", 2), ("http://a.test/1", 2)]
    check(again.scheduler.dispatcher)
    await again.scheduler.close()


async def test_due_pages_of_a_paused_job_wait(tmp_path):
    """Hours of pause are made up for by one fetch of each page, after a restart too."""
    world = await World(tmp_path, site({"/": ["/1"], "/1": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 10)
    world.crawl(paused=True, recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 5 * HOUR)
    assert len(world.fetched) == 2
    again = await restarted(tmp_path, world)
    pass_time(again, HOUR)
    assert again.fetched == []
    again.crawl(recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(again, 10)
    assert sorted(f.url for f in again.fetched) == ["http://a.test/", "http://a.test/1"]
    check(again.scheduler.dispatcher)
    await again.scheduler.close()


async def test_a_page_is_asked_for_only_if_it_has_changed(tmp_path):
    """The validator of the stored copy goes with the request, after a restart too; a 304 counts as no change."""
    world = await Validating(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(min=duration_text(HOUR), max=duration_text(9 * HOUR)))
    pass_time(world, 10)
    world = await restarted(tmp_path, world)
    world.web = lambda request: Answer(result=FetchResult.NOT_MODIFIED, status=304)
    pass_time(world, 10 * HOUR)
    assert {request.etag for request in world.requests} == {'"v1"'}
    await world.scheduler.close()


async def test_a_page_that_is_gone_is_left_alone(tmp_path):
    """After two 404s or 410s in a row; the count outlives a restart, and the page is counted as failed once."""
    world = await Validating(tmp_path, site({"/": []})).start()
    policy = Recrawl(every=duration_text(HOUR), gone_after=2)
    world.crawl("http://a.test/", recrawl=policy)
    pass_time(world, 10)
    world.web = lambda request: Answer(status=404)
    pass_time(world, 1.1 * HOUR)
    world = await restarted(tmp_path, world)
    world.web = lambda request: Answer(status=410)
    pass_time(world, 30 * HOUR)
    assert [f.fetch_no for f in world.fetched] == [3]
    assert +world.scheduler.ended("t") == {Outcome.FAILED: 1}
    await world.scheduler.close()


async def test_a_missing_page_is_gone_with_the_last_answer_of_the_row(tmp_path):
    """Records before it say that the page is fetched again; so does none of a job that fetches once."""
    for recrawl, expected in ((Recrawl(every=duration_text(HOUR), gone_after=3), [True, True, False]), (None, [False])):
        world = await Validating(tmp_path / str(len(expected)), site({"/": []})).start()
        records = []
        world.bus.subscribe(RECORDS, "test", lambda d, found=records: (found.append(d.message), d.ack()), credits=99)
        if recrawl is not None:
            world.crawl("http://a.test/", recrawl=recrawl)
            pass_time(world, 10)
            world.web = lambda request: Answer(status=404)
        else:
            world.web = lambda request: Answer(status=404)
            world.crawl("http://a.test/")
        pass_time(world, 30 * HOUR)
        assert [record.gone_pending for record in records if record.status == 404] == expected
        await world.scheduler.close()


async def test_a_sitemap_makes_a_changed_page_due(tmp_path):
    """Not before min, and long before the interval it would have had."""
    world = await Validating(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(min=duration_text(HOUR), max=duration_text(1000 * HOUR)))
    pass_time(world, 80 * HOUR)
    before = len(world.fetched)
    assert world.scheduler.frontier.next_recrawl > world.clock.now() + 2 * HOUR
    parent = FetchRequest("t", bytes(16), "http://a.test/sitemap.xml")
    links = links_of(parent, ["http://a.test/"])
    links.lastmods, links.source, links.depth = array("d", [world.clock.now() - 1]).tobytes(), LinkSource.SITEMAP, 0
    world.bus.publish(OUTLINKS, 0, links)
    pass_time(world, HOUR + 120)
    reported = world.fetched[before:]
    assert len(reported) == 1
    assert reported[0].start >= world.fetched[before - 1].end + HOUR - 1
    assert +world.scheduler.ended("t") == {Outcome.STORED: 1}
    await world.scheduler.close()


async def test_freshness_and_counts_stay_right_over_many_rounds(tmp_path):
    """Three pages stay three ended pages, however often they are fetched; their age is told."""
    world = await Validating(tmp_path, site({"/": ["/1", "/2"], "/1": [], "/2": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 6.5 * HOUR)
    assert 18 <= len(world.fetched) <= 21
    assert +world.scheduler.ended("t") == {Outcome.STORED: 3}
    fresh = world.scheduler.freshness("t")
    assert fresh is not None
    check(world.scheduler.dispatcher)
    again = await restarted(tmp_path, world)
    assert +again.scheduler.ended("t") == {Outcome.STORED: 3}
    check(again.scheduler.dispatcher)
    await again.scheduler.close()


async def test_a_fetch_that_ends_while_nothing_is_watched_is_not_the_last(tmp_path):
    """The policy is taken away while a page is being fetched again, and comes back: so does the page."""
    world = await World(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 10)
    world.hold_receipts = True
    pass_time(world, 1.1 * HOUR)
    assert [f.fetch_no for f in world.fetched] == [1, 2]
    world.crawl()
    world.hold_receipts = False
    world.release(9)
    pass_time(world, 2 * HOUR)
    assert len(world.fetched) == 2
    world.crawl(recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 1.1 * HOUR)
    check(world.scheduler.dispatcher)
    assert world.fetched[2].fetch_no == 3
    await world.scheduler.close()


async def test_a_clock_set_forward_while_nothing_happens_is_noticed(tmp_path):
    """A machine slept for five hours, in which monotonic time stands still: what is due then comes soon after."""
    world = await World(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every=duration_text(6 * HOUR)))
    pass_time(world, HOUR / 2)
    assert len(world.fetched) == 1
    world.clock.jump(6 * HOUR)
    pass_time(world, HOUR / 6)
    assert len(world.fetched) == 2
    await world.scheduler.close()


async def test_a_clock_set_back_freezes_nothing(tmp_path):
    """Ten days back: the next fetch comes an interval from then, not in ten days."""
    world = await World(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every=duration_text(6 * HOUR)))
    pass_time(world, HOUR / 2)
    world.clock.jump(-240 * HOUR)
    pass_time(world, 7 * HOUR)
    assert len(world.fetched) == 2
    await world.scheduler.close()


async def test_fetching_again_makes_no_room_for_more_pages(tmp_path):
    """A page that is due keeps its place under max_pages, before a restart and after: no other page takes it."""
    urls = [f"http://a.test/{i}" for i in range(6)]
    web = site({url: [] for url in urls})
    world = await World(tmp_path, web).start()
    scope = Scope(max_depth=-1, max_pages=3)
    world.crawl(*urls, scope=scope, recrawl=Recrawl(every=duration_text(HOUR)))
    for restart in (False, True, True):
        if restart:
            world.scheduler.snapshot()
            await world.scheduler.close()
            rows = world.rows
            world = await World(tmp_path, web, ManualClock(world.clock.now(), 5.0)).start()
            world.rows = rows
        pass_time(world, 3 * HOUR)
        check(world.scheduler.dispatcher)
        assert sorted(record.url for record in world.rows.values()) == urls[:3]
        assert len(world.fetched) >= 6
    await world.scheduler.close()


async def test_a_page_that_is_due_is_not_stuck_behind_a_spent_budget(tmp_path):
    """It stands behind pages that were never fetched and may not be any more."""
    world = await World(tmp_path, site({"/": [f"/{i}" for i in range(9)]})).start()
    scope = Scope(max_depth=-1, max_pages=1)
    world.crawl("http://a.test/", scope=scope, recrawl=Recrawl(every=duration_text(HOUR)), strategy="dfs")
    pass_time(world, 5.5 * HOUR)
    assert [f.fetch_no for f in world.fetched] == [1, 2, 3, 4, 5, 6]
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


async def test_a_page_that_is_due_is_not_stuck_behind_one_that_is_tried_again(tmp_path):
    """A failed page at the head of the queue has lost its place to another; the due one behind it has its own."""

    def web(request: FetchRequest) -> Answer:
        if request.url.endswith("/bad"):
            return Answer(status=500, took_s=30.0)
        return Answer(took_s=0.1)

    world = await World(tmp_path, web, retry_delay_s=600.0).start()
    scope = Scope(max_depth=-1, max_pages=2)
    world.crawl("http://a.test/", "http://a.test/bad", scope=scope, recrawl=Recrawl(every=duration_text(HOUR / 2)))
    world.clock.advance(100)
    world.crawl("http://b.test/", "http://c.test/", scope=scope, recrawl=Recrawl(every=duration_text(HOUR / 2)))
    pass_time(world, 3 * HOUR)
    check(world.scheduler.dispatcher)
    assert sum(f.url == "http://a.test/" for f in world.fetched) >= 5
    assert +world.scheduler.ended("t") == {Outcome.STORED: 2}
    await world.scheduler.close()


async def test_a_due_page_that_is_tried_again_keeps_its_place(tmp_path):
    """A server error at the second fetch makes no room for a page that was never fetched."""

    def web(request: FetchRequest) -> Answer:
        return Answer(status=500 if request.fetch_no == 2 and request.attempt == 1 else 200)

    world = await World(tmp_path, web, retry_delay_s=60.0).start()
    scope = Scope(max_depth=-1, max_pages=1)
    world.crawl("http://a.test/", scope=scope, recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 10)
    world.crawl("http://b.test/", scope=scope, recrawl=Recrawl(every=duration_text(HOUR)))
    pass_time(world, 1.2 * HOUR)
    check(world.scheduler.dispatcher)
    assert [(f.url, f.fetch_no, f.attempt) for f in world.fetched] == [
        ("http://a.test/", 1, 1),
        ("http://a.test/", 2, 1),
        ("http://a.test/", 2, 2),
    ]
    await world.scheduler.close()
