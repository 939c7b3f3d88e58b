"""Pages that are fetched again, over the whole scheduler: its clock, its log, its jobs."""

from __future__ import annotations

from nephila.kernel.messages import Recrawl
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
