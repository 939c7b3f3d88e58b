"""Ended URLs that are queued again on request: over a kill, beside what is still open, under a page budget."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from nephila.kernel.documents.job_schema import Recrawl, Scope
from nephila.kernel.documents.job_schema import Seed as SeedOfJob
from nephila.kernel.messages import Outcome, UrlState
from nephila.native import parse_url

from tests.jobs import changed
from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, site

PAGES = {"/": ["/a", "/b"], "/a": ["/c"], "/b": [], "/c": []}


def key_of(url):
    """As in the tables."""
    return parse_url(url).fingerprint


def row(url, outcome, fetch_no=1, depth=0, status=0):
    """What the table says of a URL."""
    return UrlState(
        job=JOB, url_key=parse_url(url).fingerprint, url=url, depth=depth, outcome=outcome, fetch_no=fetch_no,
        fetched_at=1.0, missing=int(status == 404),
    )  # fmt: skip


def states(world):
    """The rows of a world, as they are read for a refetch."""
    return [row(r.url, r.outcome, r.fetch_no, r.depth) for r in world.rows.values()]


async def restarted(world, directory, web):
    """The same directory after a kill: nothing was closed."""
    world.kill()
    after = await World(directory, web, world.clock).start()
    after.rows = world.rows
    return after


@pytest.mark.parametrize("killed", [False, True])
async def test_ended_urls_are_fetched_once_more(tmp_path, killed):
    world = await World(tmp_path, site(PAGES)).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.scheduler.ended(JOB) == {Outcome.STORED: 4}
    refetch = world.scheduler.refetch(JOB)
    assert [refetch.ended(state) for state in states(world)] == [True] * 4
    assert not any(refetch.ended(state) for state in states(world)), "what is queued is left alone"
    world.scheduler.refetched()
    world.scheduler.hold(True)
    world.clock.run_due()
    check(world.scheduler.dispatcher)
    if killed:
        world = await restarted(world, tmp_path, site(PAGES))
    else:
        world.scheduler.hold(False)
    assert world.scheduler.ended(JOB)[Outcome.STORED] == 0
    again = world.scheduler.refetch(JOB)
    assert not any(again.ended(state) for state in states(world)), "nor after a restart"
    world.run()
    check(world.scheduler.dispatcher)
    assert world.scheduler.ended(JOB)[Outcome.STORED] == 4
    assert {record.fetch_no for record in world.rows.values()} == {2}
    assert [(f.url, f.fetch_no) for f in world.fetched if f.fetch_no == 2] == [
        (f"http://a.test{path}", 2) for path in ("/", "/a", "/b", "/c")
    ]


async def test_a_row_whose_receipt_was_lost_is_fetched_once(tmp_path):
    """Killed between the row and its receipt: the URL is open for the frontier, which fetches it anyway."""
    world = World(tmp_path, site(PAGES))
    world.hold_receipts = True
    await world.start()
    world.crawl("http://a.test/", scope=Scope(max_depth=0))
    world.clock.advance(0.2)
    assert len(world.rows) == 1
    world = await restarted(world, tmp_path, site(PAGES))
    refetch = world.scheduler.refetch(JOB)
    assert not any(refetch.ended(state) for state in states(world))
    world.run()
    check(world.scheduler.dispatcher)
    assert len(world.fetched) == 1
    assert world.scheduler.ended(JOB) == {Outcome.STORED: 1}


async def test_a_url_that_is_queued_again_is_not_due_as_well(tmp_path):
    """The time of its next check is that of the table; it is fetched once, and then at its interval."""
    world = await World(tmp_path, site({})).start()
    world.crawl(recrawl=Recrawl(every="1h"))
    refetch = world.scheduler.refetch(JOB)
    lost = row("http://a.test/lost", Outcome.STORED, fetch_no=4)
    world.scheduler.hold(True)
    assert refetch.ended(replace(lost, next_at=world.clock.now() + 60))
    world.scheduler.refetched()
    world.clock.advance(120.0)
    check(world.scheduler.dispatcher)
    assert world.scheduler.frontier.jobs[JOB].due_table.next_due() == math.inf
    world.scheduler.hold(False)
    world.clock.advance(120.0)
    assert [(fetch.url, fetch.fetch_no) for fetch in world.fetched] == [("http://a.test/lost", 5)]
    check(world.scheduler.dispatcher)


async def test_a_page_budget_counts_each_page_once(tmp_path):
    world = await World(tmp_path, site(PAGES)).start()
    world.crawl("http://a.test/", scope=Scope(max_depth=-1, max_pages=2))
    world.run()
    assert len(world.rows) == 2
    refetch = world.scheduler.refetch(JOB)
    assert sum(refetch.ended(state) for state in states(world)) == 2
    world.scheduler.refetched()
    world.run()
    check(world.scheduler.dispatcher)
    assert world.scheduler.ended(JOB)[Outcome.STORED] == len(world.rows) == 2
    assert {record.fetch_no for record in world.rows.values()} == {2}


async def test_a_host_that_could_not_be_reached_is_asked_again(tmp_path):
    """robots.txt is believed to be out of reach for ten minutes; whoever asks for a retry does not wait for that."""
    up = False

    def web(request):
        return Answer(status=404 if request.url.endswith("robots.txt") else 200) if up else Answer(reason="connect")

    world = await World(tmp_path, web, retry_delay_s=0.1).start()
    world.crawl("http://a.test/", robots=True)
    world.run()
    assert world.outcomes() == {"http://a.test/": "failed(connect)"}
    up = True
    refetch = world.scheduler.refetch(JOB)
    assert [refetch.ended(state) for state in states(world)] == [True]
    world.scheduler.refetched()
    world.run()
    assert world.outcomes() == {"http://a.test/": "stored"}
    check(world.scheduler.dispatcher)


async def test_a_page_that_is_gone_is_left_after_three_times(tmp_path):
    world = await World(tmp_path, site({})).start()
    world.crawl("http://a.test/")
    world.run()
    refetch = world.scheduler.refetch(JOB)
    gone = row("http://a.test/", Outcome.FAILED, status=404)
    assert not refetch.ended(replace(gone, missing=3), due=True)
    assert refetch.ended(gone, due=True)


async def test_what_the_scope_does_not_admit_stays_ended(tmp_path):
    world = await World(tmp_path, site(PAGES)).start()
    world.crawl("http://a.test/")
    world.run()
    world.crawl("http://a.test/", scope=Scope(exclude=["/b"], max_depth=-1))
    refetch = world.scheduler.refetch(JOB)
    assert [refetch.ended(state) for state in states(world)] == [True, True, False, True]
    assert not refetch.link("http://b.test/", key_of("http://b.test/"), 1)
    assert refetch.link("http://a.test/new", key_of("http://a.test/new"), 1)
    assert not refetch.link("http://a.test/new", key_of("http://a.test/new"), 1)
    assert not refetch.link("no url", b"", 1)


async def test_rows_of_a_seed_with_credentials_are_fetched_with_them(tmp_path):
    """Only those whose key was made with them: the key tells it."""
    world = await World(tmp_path, site({"/": []})).start()
    world.crawl("http://u:p@a.test/")
    world.run()
    job = world.scheduler.frontier.jobs[JOB]
    job.change(changed(job.spec, seeds=[SeedOfJob(url="http://u:p@a.test/")]))
    refetch = world.scheduler.refetch(JOB)
    inside, outside = "http://u:p@a.test/x", "http://a.test/y"
    assert refetch.ended(replace(row(inside, Outcome.FAILED), url="http://a.test/x"))
    assert refetch.ended(row(outside, Outcome.FAILED))
    assert refetch.link("http://a.test/z", key_of("http://u:p@a.test/z"), 1)
    assert refetch.link("http://a.test/open", key_of("http://a.test/open"), 1)
    before = len(world.fetched)
    world.scheduler.refetched()
    world.run()
    asked = {one.url for one in world.fetched[before:]}
    assert asked >= {inside, outside, "http://u:p@a.test/z", "http://a.test/open"}
