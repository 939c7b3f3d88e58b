"""A claim that comes when another has the partition already: its owner finds out before anything is lost."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import FrontierClaim, FrontierCommit, FrontierRecord, Seed
from nephila.kernel.topics import FRONTIER, SEEDS

from tests.cluster.scheduler.cluster_rig import PARTITIONS, Site, World, ends

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
    world.members["a"][0].emits = False
    await world.run(60.0)
    world.members["a"][0].emits = True
    with pytest.raises(AssertionError, match=r"frontier/\d was claimed by 'frozen' at \d+, .* restart it"):
        await world.run(60.0)
    world.errors.clear()
    world.kill("a")
    await world.start("b")
    await world.give("b")
    await world.until(len(SITES))
    world.check()
    assert world.outcomes() == ends(world.site)
    assert world.twice == 0


async def test_who_has_lost_the_partition_meanwhile_goes_on(world):
    """Its last commit comes behind the claim of the next owner, and the answer when it knows of it: nothing to do."""
    owners = await world.start("a")
    await world.start("b")
    await world.give("a")
    member = world.members["a"][0]
    member.slow = True
    world.submit(*SITES)
    world.step()
    member.deliver()
    world.clock.run_due()
    assert any(topic is FRONTIER for topic, *_ in member.unsent)
    owners.on_lost(frozenset(range(PARTITIONS)))
    member.forget(set(range(PARTITIONS)))
    await world.give("b")
    member.slow = False
    member.take()
    await world.until(len(SITES))
    await world.run(60.0)
    world.check()
    assert world.twice == 0


async def test_what_others_have_written_before_they_knew_is_passed_over(world):
    """Commits of who was here before lie between those of the owner: they are looked at, and all goes on."""
    await world.start("a")
    await world.give("a")
    world.submit(SITES[0])
    await world.run(3)
    for partition in range(PARTITIONS):
        world.broker.append(FRONTIER, partition, FrontierRecord(None, FrontierCommit(partition, 77, 1)))
    for seed in SITES[1:]:
        world.outside.publish(SEEDS, world.partition(seed), Seed("t", seed))
    await world.until(len(SITES), limit_s=30)
    world.check()
