"""The depth of a scheduler that is changed while it runs."""

from __future__ import annotations

from tests.cluster.scheduler.cluster_rig import World, ends, web


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


async def everything_fetched(tmp_path, name, change):
    """URLs of the rows of a crawl during which `change(world)` sets the live depth."""
    world = World(tmp_path / name, web(2, 12))
    scheduler = await world.start("a")
    await world.give("a")
    world.submit("http://h0.test/0", "http://h1.test/0")
    await change(world, scheduler)
    await world.run(120.0)
    world.check()
    return set(world.rows)


async def test_links_that_a_lowered_depth_refuses_come_back_when_it_is_raised(tmp_path):
    """Lowered while pages of deeper levels are queued, then raised in two steps, or the partitions go to a member that
    has no limit: the same pages as without a limit."""

    async def nothing(world, scheduler):
        pass

    async def raised(world, scheduler):
        await world.run(3.0)
        scheduler.live_settings["depth"](1)
        await world.run(60.0)
        scheduler.live_settings["depth"](2)
        await world.run(60.0)
        scheduler.live_settings["depth"](None)

    async def taken_over(world, scheduler):
        scheduler.live_settings["depth"](0)
        await world.run(60.0)
        world.kill("a")
        await world.start("b")
        await world.give("b")

    undisturbed = await everything_fetched(tmp_path, "undisturbed", nothing)
    assert len(undisturbed) > 10
    assert await everything_fetched(tmp_path, "raised", raised) == undisturbed
    assert await everything_fetched(tmp_path, "taken over", taken_over) == undisturbed
