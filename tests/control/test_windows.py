"""Jobs with windows in one frontier: when they fetch, how they stand meanwhile, changes, restarts, other jobs."""

from __future__ import annotations

from datetime import UTC, datetime

from nephila.kernel.documents.job_schema import Quota
from nephila.scheduler import job_facts
from nephila_control import job_view

from tests.scheduler.invariants import check
from tests.scheduler.world import World, site

HOUR, DAY = 3_600.0, 86_400.0
NIGHT = ["22:00-06:00"]
PAGES = {"/": [f"/{n}" for n in range(30)], **{f"/{n}": [] for n in range(30)}}


async def world_at(tmp_path, hour: float, pages=PAGES, **config) -> World:
    world = World(tmp_path, site(pages), **config)
    world.clock.jump(DAY - world.clock.now() % DAY + hour * HOUR)
    return await world.start()


def hours(world: World, job: str = "t") -> list[float]:
    """UTC hour of the day at which each fetch began."""
    offset = world.clock.now() - world.clock.monotonic()
    return [(one.start + offset) % DAY / HOUR for one in world.fetched if one.job == job]


def state(world: World, job: str = "t"):
    return job_view.job(world.scheduler, job)


async def test_a_job_fetches_in_its_window_and_keeps_its_queue_outside_of_it(tmp_path):
    """31 pages, one every 30 minutes: two nights, and nothing in between."""
    world = await world_at(tmp_path, 12.0)
    world.crawl("http://a.test/", delay_s=1800.0, windows=NIGHT)
    world.run(HOUR)
    held = state(world)
    assert (held.state, held.queued, held.in_flight, world.fetched) == ("window", 1, 0, [])
    midnight = world.clock.now() - world.clock.now() % DAY
    opening = datetime.fromtimestamp(midnight + 22 * HOUR, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert held.window == held.held_by == f"waits for its window, 22:00-06:00 UTC, until {opening}"
    world.run(12 * HOUR)
    assert state(world).state == "running"
    assert state(world).window == ""
    check(world.scheduler.dispatcher)
    world.run(3 * DAY)
    assert world.done
    assert len(world.fetched) == 31
    assert all(hour >= 22.0 or hour < 6.0 for hour in hours(world))
    assert hours(world)[0] < 22.01
    assert state(world).state == "idle"
    await world.scheduler.close()


async def test_a_window_that_is_applied_later_is_as_one_that_was_there_at_once(tmp_path):
    """And without windows the job continues at once."""
    worlds = []
    for name, first in (("later", None), ("at once", NIGHT)):
        world = await world_at(tmp_path / name, 5.9)
        world.crawl("http://a.test/", delay_s=30.0, windows=first)
        world.run(60.0)
        world.crawl(windows=NIGHT, delay_s=30.0)
        world.run(10 * HOUR)
        worlds.append(world)
    later, at_once = worlds
    assert [one.url for one in later.fetched] == [one.url for one in at_once.fetched]
    assert state(later) == state(at_once)
    assert state(later).state == "window"
    later.crawl(delay_s=30.0)
    later.run(HOUR)
    assert later.done
    assert len(later.fetched) == 31
    for world in worlds:
        await world.scheduler.close()


async def test_a_restart_outside_of_the_window_fetches_nothing(tmp_path):
    world = await world_at(tmp_path, 5.9)
    world.crawl("http://a.test/", delay_s=30.0, windows=NIGHT)
    world.run(2 * HOUR)
    count = len(world.fetched)
    assert 0 < count < 31
    before = state(world)
    world.kill()
    again = await World(tmp_path, site(PAGES), world.clock).start()
    assert state(again).window == before.window
    again.run(HOUR)
    assert (state(again).state, again.fetched) == ("window", [])
    again.run(DAY)
    assert again.done
    assert all(hour >= 22.0 or hour < 6.0 for hour in hours(again))
    await again.scheduler.close()


async def test_a_closed_window_does_not_hold_up_another_job_on_the_same_host(tmp_path):
    world = await world_at(tmp_path, 12.0)
    world.crawl("http://a.test/", job="night", windows=NIGHT)
    world.crawl("http://a.test/", job="day")
    world.run(HOUR)
    assert (len(hours(world, "day")), hours(world, "night")) == (31, [])
    assert (state(world, "day").state, state(world, "night").state) == ("idle", "window")
    await world.scheduler.close()


async def test_a_quota_and_a_window_hold_together(tmp_path):
    """The end of one leaves the other in force."""
    world = await world_at(tmp_path, 22.5)
    world.crawl("http://a.test/", delay_s=60.0, windows=NIGHT, quota=Quota(pages=5, per="day"))
    world.run(HOUR)
    assert (state(world).state, len(world.fetched)) == ("quota", 5)
    world.run(HOUR)
    assert (state(world).state, len(world.fetched)) == ("quota", 10)
    world.run(6 * HOUR)
    assert state(world).state == "quota"
    assert state(world).window
    world.crawl(delay_s=60.0, windows=NIGHT)
    world.run(10 * HOUR)
    assert (state(world).state, len(world.fetched)) == ("window", 10)
    world.run(10 * HOUR)
    assert world.done
    await world.scheduler.close()


async def test_a_crawl_learns_when_its_window_opens(tmp_path):
    """What --max-wait is compared with."""
    world = await world_at(tmp_path, 12.0)
    world.crawl("http://a.test/", windows=NIGHT)
    world.run(1.0)
    due = job_facts.next_fetch(world.scheduler)
    assert due is not None
    assert abs(due + world.clock.now() - world.clock.monotonic() - world.clock.now() // DAY * DAY - 22 * HOUR) < 0.01
    await world.scheduler.close()
