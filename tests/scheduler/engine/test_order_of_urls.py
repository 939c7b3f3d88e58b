"""What decides which URL of a job is next survives restarts: inherited relevance, places in the budget."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Recrawl, Scope
from nephila.kernel.messages import FetchRequest, Outcome
from nephila.kernel.pages.link_position import IN_MAIN, IN_NAV
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import OUTLINKS
from nephila.native import parse_url

from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, links_of, site


def later(world: World, directory, **config) -> World:
    """The same directory after a restart."""
    return World(directory, world.web, ManualClock(world.clock.now(), world.clock.monotonic()), **config)


def pass_time(world: World, seconds: float) -> None:
    """Let all happen that is due within this time, though nothing may be queued for a while."""
    end = world.clock.monotonic() + seconds
    while (due := world.clock.next_due) is not None and due <= end:
        world.clock.advance(max(0.0, due - world.clock.monotonic()))
    world.clock.advance(max(0.0, end - world.clock.monotonic()))


async def test_best_first_inherits_what_led_to_a_page(tmp_path):
    """Below a seed a chain without a word goes on before a later page of little relevance."""
    world = await World(tmp_path, site({"/": ["/a"], "/a": ["/b"], "/b": ["/c"], "/c": []})).start()
    world.crawl("http://a.test/", strategy="best-first")
    priorities = []
    while not world.done:
        priorities += [w.entry.priority for w in world.scheduler.frontier.in_flight.urls.values() if w.job]
        world.clock.advance(0.1)
    assert list(dict.fromkeys(priorities)) == [255, 127, 63, 31]
    await world.scheduler.close()


@pytest.mark.parametrize("flags", [bytes((IN_NAV, IN_MAIN, IN_NAV | IN_MAIN)), b"", bytes(3)])
async def test_best_first_goes_by_the_text_before_the_menu(tmp_path, flags):
    """Of silent links of one page those of its text are first; those of a message that says nothing come in its
    order."""
    world = await World(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", strategy="best-first")
    world.run()
    seed = parse_url("http://a.test/")
    found = links_of(
        FetchRequest(JOB, seed.fingerprint, seed.href, priority=255), [f"http://a.test/{n}" for n in "mtb"]
    )
    found.flags = flags
    world.crawl("http://a.test/", strategy="best-first", paused=True)
    world.bus.publish(OUTLINKS, 0, found)
    world.crawl("http://a.test/", strategy="best-first")
    world.run()
    order = "".join(f.url.rpartition("/")[2] for f in world.fetched)
    assert order == ("tbm" if any(flags) else "mtb")
    await world.scheduler.close()


async def test_what_is_fetched_again_keeps_its_place_in_the_page_budget(tmp_path):
    """Three pages of a site with thirty, every hour, over a restart: always the same three."""
    pages = {f"/{i}": [f"/{j}" for j in range(30)] for i in range(30)}
    world = await World(tmp_path, site(pages)).start()
    scope = Scope(max_depth=-1, max_pages=3)
    world.crawl("http://a.test/0", scope=scope, recrawl=Recrawl(every="3600s"))
    pass_time(world, 2.5 * 3600.0)
    await world.scheduler.close()
    first = [f.url for f in world.fetched]
    assert len(first) == 9
    world = await later(world, tmp_path).start()
    pass_time(world, 2.5 * 3600.0)
    check(world.scheduler.dispatcher)
    assert set(first) == {f.url for f in world.fetched}
    assert len(set(first)) == 3
    assert len(world.fetched) >= 6
    await world.scheduler.close()


async def test_a_job_of_a_deleted_ones_name_counts_its_fetches_on(tmp_path):
    """Rows of the deleted one are left in the tables: those of the new one have higher numbers and win, also after a
    restart in between."""
    world = await World(tmp_path, site({"/": ["/a"], "/a": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every="3600s"))
    pass_time(world, 2.5 * 3600)
    highest = max(f.fetch_no for f in world.fetched)
    assert highest == 3
    world.crawl(deleted=True)
    await world.scheduler.close()
    world = await later(world, tmp_path).start()
    world.crawl("http://a.test/")
    world.run()
    assert {f.fetch_no for f in world.fetched} == {highest + 1}
    assert len(world.fetched) == 2
    await world.scheduler.close()


async def test_a_place_that_was_kept_ends_with_its_fetch_over_a_restart(tmp_path):
    """A page on its way when the snapshot was taken, ended behind it: the log keeps no place for it any more."""
    world = await World(tmp_path, site({"/": []}), retry_delay_s=1.0).start()
    world.crawl("http://a.test/", scope=Scope(max_depth=-1, max_pages=3), recrawl=Recrawl(every="3600s"))
    pass_time(world, 3600.0 - 1.0)
    while not len(world.scheduler.frontier.in_flight.leases):
        world.clock.advance(0.05)
    world.scheduler.snapshot()
    pass_time(world, 60.0)
    await world.scheduler.close()
    world = await later(world, tmp_path).start()
    check(world.scheduler.dispatcher)
    assert not world.scheduler.frontier.jobs["t"].budget.reserved
    await world.scheduler.close()


async def test_what_was_ending_at_a_kill_takes_no_place_of_a_stored_page(tmp_path):
    """Two URLs without a page were about to end, and answer with one after the restart: the budget is still for the
    three pages that are stored and due again."""
    mended = False

    def web(request: FetchRequest) -> Answer:
        broken = request.url.endswith(("/1", "/2")) and not mended
        return Answer(links=[f"http://a.test/{n}" for n in range(1, 9)], status=404 if broken else 200)

    world = await World(tmp_path, web).start()
    world.hold_receipts = True
    world.crawl("http://a.test/0", scope=Scope(max_depth=-1, max_pages=3), recrawl=Recrawl(every="3600s"))
    pass_time(world, 30.0)
    assert [f.url[-1] for f in world.fetched] == list("01234")
    stored = {record.url for record in world.held if record.outcome is Outcome.STORED}
    for record in world.held:
        if record.url in stored:
            world._receipt(record)
    pass_time(world, 3600.0)
    assert world.scheduler.frontier.jobs["t"].counts.ended[Outcome.STORED] < 3
    world.kill()
    await world.scheduler.close()
    mended = True
    world = await later(world, tmp_path).start()
    pass_time(world, 2 * 3600.0)
    check(world.scheduler.dispatcher)
    assert {f.url for f in world.fetched} == stored
    await world.scheduler.close()


@pytest.mark.parametrize("strategy", ["bfs", "dfs"])
async def test_a_limit_set_later_keeps_a_place_for_each_page_that_is_due(tmp_path, strategy):
    """Ten pages are due again when the job is limited to ten: none is lost to a new one, also over a restart."""
    world = await World(tmp_path, site({f"/{n}": [f"/{n + 1}"] for n in range(30)})).start()
    every = {"recrawl": Recrawl(every="3600s")}
    world.crawl("http://a.test/0", scope=Scope(max_depth=9), **every)
    pass_time(world, 1800.0)
    first = [f.url for f in world.fetched]
    assert len(first) == 10
    world.crawl(scope=Scope(max_depth=9), delay_s=60.0, **every)
    pass_time(world, 1800.0 + 120.0)
    limited = Scope(max_depth=-1, max_pages=10)
    world.crawl("http://a.test/19", scope=limited, delay_s=60.0, strategy=strategy, **every)
    assert len(world.scheduler.frontier.jobs["t"].budget.reserved) >= 5
    await world.scheduler.close()
    world = await later(world, tmp_path).start()
    pass_time(world, 2 * 3600.0)
    check(world.scheduler.dispatcher)
    assert {f.url for f in world.fetched} == set(first)
    await world.scheduler.close()
