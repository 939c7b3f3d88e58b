"""Pages that are fetched again, over the whole scheduler: its clock, its log, its jobs."""

from __future__ import annotations

from nephila.kernel.clock import ManualClock
from nephila.kernel.messages import Recrawl, Scope
from nephila.scheduler.audit import check

from tests.scheduler.world import World, site

HOUR = 3600.0


def pass_time(world: World, seconds: float) -> World:
    """Let time pass whether or not anything is left to do."""
    world.clock.advance(seconds)
    return world


async def test_a_fetch_that_ends_while_nothing_is_watched_is_not_the_last(tmp_path):
    """The policy is taken away while a page is being fetched again, and comes back: so does the page."""
    world = await World(tmp_path, site({"/": []})).start()
    world.crawl("http://a.test/", recrawl=Recrawl(every_s=HOUR))
    pass_time(world, 10)
    world.hold_receipts = True
    pass_time(world, 1.1 * HOUR)
    assert [f.fetch_no for f in world.fetched] == [1, 2]
    world.crawl()
    world.hold_receipts = False
    world.release(9)
    pass_time(world, 2 * HOUR)
    assert len(world.fetched) == 2
    world.crawl(recrawl=Recrawl(every_s=HOUR))
    pass_time(world, 1.1 * HOUR)
    check(world.scheduler.dispatcher)
    assert world.fetched[2].fetch_no == 3
    await world.scheduler.close()


async def test_fetching_again_makes_no_room_for_more_pages(tmp_path):
    """A page that is due keeps its place under max_pages, before a restart and after: no other page takes it."""
    urls = [f"http://a.test/{i}" for i in range(6)]
    web = site({url: [] for url in urls})
    world = await World(tmp_path, web).start()
    scope = Scope(max_depth=-1, max_pages=3)
    world.crawl(*urls, scope=scope, recrawl=Recrawl(every_s=HOUR))
    for restart in (False, True, True):
        if restart:
            world.scheduler._snapshot()
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
    world.crawl("http://a.test/", scope=scope, recrawl=Recrawl(every_s=HOUR), strategy=1)
    pass_time(world, 5.5 * HOUR)
    assert [f.fetch_no for f in world.fetched] == [1, 2, 3, 4, 5, 6]
    check(world.scheduler.dispatcher)
    await world.scheduler.close()
