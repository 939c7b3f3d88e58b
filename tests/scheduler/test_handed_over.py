"""Partitions that go from one scheduler to another: by a hand-over, after a kill, after a freeze."""

from __future__ import annotations

import pytest

from tests.scheduler.shard_rig import PARTITIONS, World, web

HOSTS, PAGES = 6, 9


@pytest.fixture
def world(tmp_path):
    """Six sites of nine pages, to be crawled; nobody is there yet."""
    return World(tmp_path, web(HOSTS, PAGES))


def everything(world: World) -> dict[str, str]:
    """What a crawl of all of it ends with."""
    return dict.fromkeys(world.site.links, "stored")


def begin(world: World, **scope: object) -> None:
    """All sites are told by their first pages."""
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), **scope)


async def in_the_air(world: World) -> None:
    """Until something is being fetched."""
    while not world.busy and len(world.rows) < len(world.site.links):
        await world.run(0.05)


async def test_one_scheduler_has_all_partitions(world):
    """Each partition has a frontier of its own, links to others find their way, and all is stored once."""
    shards = await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(HOSTS * PAGES)
    world.check()
    assert world.outcomes() == everything(world)
    assert world.twice == 0
    assert set(shards.shards) == set(range(PARTITIONS))
    status = shards.standings.jobs["t"]
    assert (status.queued, status.ended.total()) == (0, HOSTS * PAGES)


async def test_partitions_go_to_another_scheduler_and_back(world):
    """In the middle of a crawl, with requests in the air: nothing is lost, fetched twice, or asked for too early."""
    await world.start("a")
    await world.start("b")
    await world.give("a")
    begin(world)
    for rows, source, target in ((5, "a", "b"), (15, "b", "a"), (25, "a", "b")):
        await world.until(rows)
        await in_the_air(world)
        await world.hand_over(source, target, 0, 1, 2)
        world.check()
    await world.until(HOSTS * PAGES)
    world.check()
    assert world.outcomes() == everything(world)
    assert len(world.fetches) == HOSTS * PAGES
    assert world.twice == 0


@pytest.mark.parametrize("rows", [0, 1, 7, 20, 35])
async def test_a_scheduler_is_killed(world, rows):
    """Another takes everything over; what was on its way is waited for, not asked for again."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(rows)
    await in_the_air(world)
    world.kill("a")
    await world.start("b")
    await world.run(0.05)
    await world.give("b")
    await world.until(HOSTS * PAGES)
    world.check()
    assert world.outcomes() == everything(world)
    assert len(world.fetches) == HOSTS * PAGES


async def test_requests_are_published_again_only_when_they_were_not(world):
    """The log of requests says which of the leases have one."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(10)
    await in_the_air(world)
    world.kill("a")
    published = sum(len(world.broker.logs["requests", p]) for p in range(PARTITIONS))
    world.hold_outcomes = True
    await world.start("b")
    await world.give("b")
    assert sum(len(world.broker.logs["requests", p]) for p in range(PARTITIONS)) == published
    world.hold_outcomes = False
    await world.until(HOSTS * PAGES)
    world.check()
