"""A claim that comes when another has the partition already: its owner finds out before anything is lost."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import FrontierClaim, FrontierRecord, Seed
from nephila.kernel.topics import FRONTIER, SEEDS

from tests.scheduler.shard_rig import PARTITIONS, Site, World, ends

SITES = [f"http://h0.test/{page}" for page in range(8)]


@pytest.fixture
def world(tmp_path):
    """Eight pages of a site, none leads to another."""
    return World(tmp_path, Site({url: [] for url in SITES}))


async def test_whose_log_was_claimed_says_nothing_more(world):
    """What the owner commits from then on would count for nobody: it ends, and its successor crawls the rest."""
    await world.start("a")
    await world.give("a")
    world.submit(SITES[0])
    await world.run(3)
    late = FrontierRecord(FrontierClaim("frozen", world.clock.now() - 60, world.clock.now() - 30))
    for partition in range(PARTITIONS):
        world.broker.append(FRONTIER, partition, late)
    for seed in SITES[1:]:
        world.outside.publish(SEEDS, world.partition(seed), Seed("t", seed))
    await world.run(2.0)
    assert len(world.rows) <= 4, "it goes on, and nothing of it would count"
    with pytest.raises(
        AssertionError, match=r"frontier/\d was claimed by 'frozen' at \d+, .* start this scheduler again"
    ):
        await world.run(60.0)
    world.errors.clear()
    world.kill("a")
    await world.start("b")
    await world.give("b")
    await world.until(len(SITES))
    world.check()
    assert world.outcomes() == ends(world.site)
    assert world.twice == 0
