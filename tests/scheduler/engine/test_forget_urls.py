"""URLs that are forgotten by hand: crawled again when they are found again, counted once, the same after a restart."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Recrawl, Scope
from nephila.kernel.messages import Outcome, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import SEEDS
from nephila.native import parse_url

from tests.scheduler.world import JOB, Answer, World, site

STORED = Outcome.STORED
PAGES = site({"/": ["/1", "/2"], "/1": [], "/2": []})


def url(path: str) -> str:
    return f"http://a.test{path}"


def forget(world, *paths, outcome=STORED):
    found = world.scheduler.forget(JOB, [(url(path), outcome) for path in paths])
    world.clock.run_due()
    return found.forgotten, found.open, found.unknown


def find_again(world, *paths):
    """The URLs are given as seeds."""
    for path in paths:
        world.bus.publish(SEEDS, 0, Seed(JOB, url(path)))
    world.run()


async def crawled(tmp_path, **spec):
    world = await World(tmp_path, PAGES).start()
    world.crawl(url("/"), **spec)
    return world.run()


async def restarted(tmp_path, world):
    await world.scheduler.close()
    return await World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0)).start()


def fetches(world, path):
    return [one.fetch_no for one in world.fetched if one.url == url(path)]


async def test_a_forgotten_url_is_fetched_again_when_it_is_found_again(tmp_path):
    world = await crawled(tmp_path)
    assert forget(world, "/1", "/never") == (1, 0, 1)
    find_again(world, "/1", "/2")
    assert fetches(world, "/1") == [1, 2]
    assert fetches(world, "/2") == [1]
    assert world.rows[parse_url(url("/1")).fingerprint].fetch_no == 2  # the row of the first fetch is replaced


async def test_a_link_of_a_page_finds_it_again(tmp_path):
    world = await crawled(tmp_path)
    assert forget(world, "/", "/1") == (2, 0, 0)
    find_again(world, "/")
    assert fetches(world, "/1") == [1, 2]
    assert fetches(world, "/2") == [1]


@pytest.mark.parametrize("snapshot", [False, True])
async def test_forgotten_before_a_restart_is_forgotten_after_it(tmp_path, snapshot):
    """Applied from the log or read from a snapshot, it is the state of a scheduler that ran on."""
    world = await crawled(tmp_path)
    forget(world, "/1")
    if snapshot:
        world.scheduler.snapshot()
    again = await restarted(tmp_path, world)
    for one in (world.scheduler, again.scheduler):
        job = one.frontier.jobs[JOB]
        assert parse_url(url("/1")).fingerprint not in job.seen
        assert parse_url(url("/2")).fingerprint in job.seen
        assert (job.counts.ended[STORED], job.fetch_numbers.first) == (2, 2)
    find_again(again, "/1", "/2")
    assert fetches(again, "/1") == [2]
    assert fetches(again, "/2") == []
    assert again.scheduler.ended(JOB)[STORED] == 3
    once_more = await restarted(tmp_path, again)
    assert once_more.scheduler.ended(JOB)[STORED] == 3


async def test_counts_are_those_of_urls_not_of_fetches(tmp_path):
    world = await crawled(tmp_path)
    assert world.scheduler.ended(JOB)[STORED] == 3
    forget(world, "/1")
    assert world.scheduler.ended(JOB)[STORED] == 2
    find_again(world, "/1")
    assert world.scheduler.ended(JOB)[STORED] == 3


async def test_a_url_whose_end_is_not_known_stays_in_the_counts(tmp_path):
    world = await crawled(tmp_path)
    assert forget(world, "/1", outcome=Outcome.UNSPECIFIED) == (1, 0, 0)
    assert world.scheduler.ended(JOB)[STORED] == 3


async def test_open_urls_stay(tmp_path):
    """Queued or in flight: they are fetched anyway."""
    world = await World(tmp_path, lambda request: Answer([url("/1"), url("/2")], took_s=5)).start()
    world.crawl(url("/"))
    world.clock.advance(1.0)
    assert forget(world, "/") == (0, 1, 0)
    world.clock.advance(6.0)
    assert forget(world, "/1", "/2") == (0, 2, 0)


async def test_a_watched_url_is_no_longer_watched_until_it_is_found(tmp_path):
    world = await World(tmp_path, PAGES).start()
    world.crawl(url("/"), recrawl=Recrawl(every="3600s"))
    world.clock.advance(60.0)
    job = world.scheduler.frontier.jobs[JOB]
    assert forget(world, "/1") == (1, 0, 0)
    assert parse_url(url("/1")).fingerprint not in job.due_table
    world.clock.advance(4000.0)
    assert fetches(world, "/2") == [1, 2]
    assert fetches(world, "/1")[1:] == [2]  # by the link of the start page, which was fetched again


async def test_a_host_with_the_same_prefix_loses_nothing(tmp_path):
    """Two hosts whose keys begin with the same four bytes are told apart by the whole key."""
    world = await crawled(tmp_path)
    job = world.scheduler.frontier.jobs[JOB]
    key = parse_url(url("/1")).fingerprint
    other = key[:4] + bytes(12)
    job.seen.add(other)
    assert forget(world, "/1") == (1, 0, 0)
    assert key not in job.seen
    assert other in job.seen


async def test_first_fetches_are_told_from_later_ones_after_urls_were_forgotten(tmp_path):
    """URLs that were queued before have a lower number and are first fetches; pages fetched again are not."""
    world = await crawled(tmp_path)
    forget(world, "/1")
    job = world.scheduler.frontier.jobs[JOB]
    assert job.is_first_fetch(b"queued before...", 1)
    assert job.is_first_fetch(b"found afterwards", 2)
    assert not job.is_first_fetch(b"redirected hop..", 3)


async def test_a_job_without_room_continues_when_its_pages_are_forgotten(tmp_path):
    world = await World(tmp_path, PAGES).start()
    world.crawl(url("/"), scope=Scope(max_depth=-1, max_pages=2))
    world.run()
    assert world.scheduler.ended(JOB)[STORED] == 2
    assert forget(world, "/") == (1, 0, 0)
    world.run()
    assert sorted(one.url for one in world.fetched) == [url("/"), url("/1"), url("/2")]


async def test_a_deleted_job_takes_its_forgotten_urls_with_it(tmp_path):
    world = await crawled(tmp_path)
    world.scheduler.forget(JOB, [(url("/1"), STORED)])
    world.crawl(deleted=True)
    again = await restarted(tmp_path, world)
    assert JOB not in again.scheduler.frontier.jobs
    assert again.scheduler.forget(JOB, [(url("/1"), STORED)]) is None
