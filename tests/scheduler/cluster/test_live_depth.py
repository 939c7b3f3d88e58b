"""The depth of a scheduler that is changed while it runs."""

from __future__ import annotations

from tests.scheduler.cluster.cluster_rig import World, ends, web


async def test_links_below_the_depth_of_a_member_are_not_admitted(tmp_path):
    """In the partitions that it has and in those that it gets; taken back, what is found from then on is admitted."""
    world = World(tmp_path, web(2, 7))
    scheduler = await world.start("a")
    await world.give("a", 0, 1)
    scheduler.live_settings["depth"](1)
    await world.give("a", 2, 3)
    world.submit("http://h0.test/0", "http://h1.test/0")
    await world.run(60.0)
    assert set(world.rows) == {f"http://h{host}.test/{page}" for host in range(2) for page in (0, 1, 2)}
    scheduler.live_settings["depth"](None)
    for seed in ("http://h0.test/1", "http://h0.test/2", "http://h1.test/1", "http://h1.test/2"):
        owner = world.owner_of(seed)
        assert owner.frontier.depth_limit == -1
    world.check()
    assert len(ends(world.site)) > len(world.rows)
