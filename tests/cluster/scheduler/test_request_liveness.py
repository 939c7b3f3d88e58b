"""Requests of which nothing is heard, over a broker: a URL's fault, or that of downloaders that are all away."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import Outcome
from nephila.scheduler.config import SchedulerConfig

from tests.cluster.scheduler.cluster_rig import World, ends, web

HOSTS, PAGES = 4, 6
URLS = HOSTS * PAGES
LEASE_S = SchedulerConfig().start_by_s + SchedulerConfig().lease_s


@pytest.fixture
async def world(tmp_path):
    """Four sites; one scheduler has all partitions."""
    world = World(tmp_path, web(HOSTS, PAGES))
    await world.start("a")
    await world.give("a")
    return world


def seeds() -> list[str]:
    """The first page of each site."""
    return [f"http://h{host}.test/0" for host in range(HOSTS)]


@pytest.mark.full
@pytest.mark.parametrize("also", ["", "a scheduler is killed", "the broker answers no questions"])
async def test_no_url_fails_while_all_downloaders_are_away(world, also):
    """For three hours what is handed out is taken by nobody; then everything is fetched after all."""
    world.submit(*seeds())
    await world.until(5)
    world.away = True
    await world.run(1.5 * 3600)
    world.broker.failures = 10**9 if "broker" in also else 0
    if "killed" in also:
        world.kill("a")
        await world.start("b")
        await world.give("b")
    await world.run(1.5 * 3600)
    assert len(world.rows) < URLS
    world.away = False
    await world.until(URLS, limit_s=4 * LEASE_S)
    assert world.outcomes() == ends(world.site)


@pytest.mark.parametrize("delay_s", [1.0, 60.0], ids=["last of all", "among others"])
async def test_a_url_that_ends_its_downloader_ends_after_its_tries(world, delay_s):
    """It was taken each time, as other outcomes say, or the broker where nothing else is left."""
    deadly = "http://h0.test/3"
    world.deaf = lambda request: request.url == deadly
    world.submit(*seeds(), delay_s=delay_s)
    await world.until(URLS, limit_s=4 * LEASE_S + 1000)
    row = world.rows.pop(deadly)
    assert (row.outcome, row.reason) == (Outcome.FAILED, "lease_expired")
    assert {row.outcome for row in world.rows.values()} == {Outcome.STORED}


async def test_what_came_back_while_nobody_had_the_partition_is_read_first(world):
    """Outcomes wait in their topic until long after the leases would have ended: nothing is fetched again."""
    world.submit(*seeds())
    await world.until(5)
    while not world.busy:
        await world.run(0.05)
    world.kill("a")
    await world.run(10 * LEASE_S)
    await world.start("b")
    await world.give("b")
    await world.until(URLS)
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS
