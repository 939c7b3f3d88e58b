"""The number of partitions grows while a system works: each partition is split, and nothing is lost, early or twice."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from nephila.kernel.layout import layout_of
from nephila.kernel.topics import FRONTIER, OUTCOMES, RECEIPTS, REQUESTS

from tests.cluster.scheduler.cluster_rig import PARTITIONS, World, ends, jobs_of, web

HOSTS, PAGES = 12, 9
URLS = HOSTS * (PAGES + 3)
GROWN = 2 * PARTITIONS


@pytest.fixture(params=["blobs", "logs"])
def world(tmp_path, request):
    """Twelve sites, with snapshots in a blob store or with logs alone."""
    blobs = {} if request.param == "blobs" else {"blobs": ""}
    return World(tmp_path, web(HOSTS, PAGES, more=True), **blobs)


def begin(world: World, **scope: object) -> None:
    """All sites are told by their first pages."""
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), **scope)


async def born(world: World, name: str, *partitions: int) -> None:
    """The group gives the new partitions to a member."""
    await world.give(name, *(partitions or range(PARTITIONS, world.broker.partitions)))


async def complete(world: World, limit_s: float = 30.0) -> None:
    """Until each partition has one owner, which has its part alone."""
    end = world.clock.monotonic() + limit_s
    while True:
        owners = [owner for _, one in world.members.values() for owner in one.owners.values()]
        if sorted(owner.number for owner in owners) == list(range(world.broker.partitions)) and all(
            owner.layout.count == world.broker.partitions for owner in owners
        ):
            return
        assert world.clock.monotonic() < end, sorted((owner.number, owner.layout.count) for owner in owners)
        await world.breathe()
        await world.run(0.05)


def right(world: World) -> None:
    """All rows are there, once, and no server was asked too early."""
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS
    assert world.twice == 0


async def test_partitions_are_split_while_a_crawl_runs(world):
    """Requests are in the air; the hosts of both halves go on."""
    scheduler = await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN)
    await born(world, "a")
    await complete(world)
    await world.until(URLS)
    right(world)
    layout = layout_of(PARTITIONS, GROWN)
    for owner in scheduler.owners.values():
        names = {host.key for host in owner.frontier.hosts.hot.values()}
        assert all(layout.of(_key(name)) == owner.number for name in names)
    jobs = jobs_of(scheduler)
    assert (sum(job.queue.length for job in jobs), sum(job.counts.ended.total() for job in jobs)) == (0, URLS)


def _key(host: str) -> bytes:
    from hashlib import md5

    return md5(host.encode(), usedforsecurity=False).digest()


async def test_partitions_grow_fourfold_and_again(world):
    """4 become 16 in one step, then 32."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(16)
    await born(world, "a")
    await complete(world)
    await world.until(URLS // 2)
    world.grow(32)
    await world.give("a", *range(16, 32))
    await complete(world)
    await world.until(URLS)
    right(world)


async def test_children_of_the_second_growth_belong_to_the_split_that_has_their_urls(world):
    """Another scheduler takes the first partitions over from their logs, and splits them for the second growth before
    their siblings are split. The siblings have worked on since the first growth, and split their own children."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN)
    await born(world, "a")
    await complete(world)
    await world.until(URLS // 2)
    await world.start("b")
    world.grow(2 * GROWN, "b")
    await world.hand_over("a", "b", *range(PARTITIONS))
    births = [bool(world.broker.logs[FRONTIER.name, p]) for p in range(GROWN, 2 * GROWN)]
    assert births == [True] * PARTITIONS + [False] * PARTITIONS
    world.grow(2 * GROWN, "a")
    await world.give("b", *range(GROWN, 2 * GROWN))
    await complete(world)
    await world.until(URLS)
    right(world)


async def test_new_partitions_belong_to_another_scheduler_that_knows_first(world):
    """It waits until the owner of the old partitions has split them; what it gets meanwhile is kept."""
    await world.start("a")
    second = await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN, "b")
    world.outside.see_layout()
    await born(world, "b")
    await world.run(3.0)
    assert not second.owners
    world.grow(GROWN, "a")
    await complete(world)
    assert sorted(second.owners) == list(range(PARTITIONS, GROWN))
    await world.until(URLS)
    right(world)


async def test_messages_by_the_layout_before_are_forwarded(world):
    """Outcomes and receipts of requests from before the split come on the old partition."""
    scheduler = await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.hold_outcomes = True
    await world.run(2.0)
    in_flight = len(world.busy)
    assert in_flight > 3
    world.grow(GROWN)
    await born(world, "a")
    await complete(world)
    world.hold_outcomes = False
    await world.until(URLS)
    right(world)
    assert scheduler.forwarding.forwarded > 0
    assert all(
        any(world.broker.logs[topic.name, p] for p in range(PARTITIONS, GROWN)) for topic in (OUTCOMES, RECEIPTS)
    )


async def test_requests_of_the_partition_before_are_not_published_again(tmp_path):
    """Nobody takes them for a time; the log of requests of a new partition does not have them."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), blobs="", lease_s=5.0, start_by_s=5.0)
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    for count in (GROWN, 2 * GROWN):
        await world.run(20.0)
        world.away = True
        await world.run(0.5)
        world.grow(count)
        await world.give("a", *range(count // 2, count))
        await complete(world)
        world.away = False
        await world.run(0.5)
    check_published_once(world)
    await world.until(URLS)
    right(world)


def check_published_once(world: World) -> None:
    published = [
        (request.url, request.fetch_no, request.attempt)
        for p in range(world.broker.partitions)
        for request in world.broker.all(REQUESTS, p)
    ]
    assert len(published) == len(set(published))


async def test_longer_leases_of_the_partition_before_are_not_published_again(tmp_path):
    """`lease_s` was lowered before the growth."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), blobs="", lease_s=5.0, start_by_s=5.0)
    scheduler = await world.start("a", lease_s=2000.0)
    await world.give("a")
    world.away = True
    begin(world)
    await world.run(1.0)
    layout = layout_of(PARTITIONS, GROWN)
    leases = [key for owner in scheduler.owners.values() for _, key in owner.frontier.in_flight.leases]
    assert any(layout.of(key) >= PARTITIONS for key in leases)
    world.kill("a")
    await world.start("b")
    world.grow(GROWN)
    await world.give("b")
    await complete(world)
    world.away = False
    await world.run(0.5)
    check_published_once(world)
    await world.until(URLS)
    right(world)


@pytest.mark.parametrize("moment", range(8))
async def test_the_owner_is_killed_at_each_moment_of_a_split(tmp_path, moment):
    """The next owner finds a log that was claimed, or births, or parts that have begun."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), lease_s=5.0, start_by_s=5.0)
    world.rng = random.Random(moment)
    await world.start("a")
    await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN)
    for _ in range(4 * moment + 1):
        await world.breathe()
        world.members["a"][0].take(1)
        world.step()
    world.kill("a")
    await world.give("b", *range(GROWN))
    await complete(world)
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)


async def test_a_new_partition_begins_again_from_its_parent_until_it_has_a_snapshot(world):
    """It moves at once; its parent has worked on and taken a snapshot meanwhile."""
    await world.start("a")
    await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN)
    await born(world, "a")
    await complete(world)
    for source, target in (("a", "b"), ("b", "a")):
        await world.hand_over(source, target, *range(0, GROWN, 2))
        await world.until(min(len(world.rows) + 10, URLS))
    await world.until(URLS)
    right(world)


@pytest.mark.parametrize("seed", range(4))
async def test_owners_are_killed_and_move_while_partitions_grow(tmp_path, seed):
    """At random instants, with a broker that takes messages bit by bit: no server is asked too early, and the budget is
    exact."""
    rng = random.Random(seed)
    blobs = {} if seed % 2 else {"blobs": ""}
    world = World(tmp_path, web(HOSTS, PAGES, more=True), lease_s=20.0, start_by_s=10.0, **blobs)
    world.rng = rng
    await world.start("m0")
    await world.give("m0")
    begin(world, max_pages=80)
    name, count = "m0", PARTITIONS
    for number in range(1, 6):
        await world.until(number * 9)
        if number in (2, 4):
            count *= 2
            world.grow(count)
            moving = asyncio.create_task(world.give(name, *range(count // 2, count)))
            for _ in range(rng.randrange(0, 40)):
                await asyncio.sleep(0)
                world.members[name][0].take(1)
            moving.cancel()
            with contextlib.suppress(asyncio.CancelledError, AssertionError):
                await moving
        world.kill(name)
        name = f"m{number}"
        await world.start(name)
        await world.give(name, *range(count))
    await complete(world)
    await world.run(300.0)
    world.check()
    stored = [row for row in world.rows.values() if row.outcome.name == "STORED"]
    assert len(stored) == 80


async def test_maxpages_is_exact_over_a_split(world):
    """Pages in use go with their URLs: the budget is neither overrun nor lost."""
    await world.start("a")
    await world.give("a")
    begin(world, max_pages=70)
    await world.until(30)
    world.hold_outcomes = True
    await world.run(2.0)
    world.grow(GROWN)
    await born(world, "a")
    await complete(world)
    world.hold_outcomes = False
    await world.run(200.0)
    stored = [row for row in world.rows.values() if row.outcome.name == "STORED"]
    assert len(stored) == 70
    parts = [job.counts.split_pages for _, one in world.members.values() for job in jobs_of(one)]
    assert sum(parts) == 0
    assert any(parts)


async def test_a_log_of_more_partitions_waits_for_the_setting(world):
    """A member that has not read the setting takes a split partition over when it has."""
    await world.start("a")
    second = await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN, "a")
    await born(world, "a")
    await complete(world)
    world.kill("a")
    taking = asyncio.create_task(world.give("b", *range(GROWN)))
    for _ in range(5):
        await world.breathe()
        world.clock.advance(0.1)
        world.step()
    assert 0 not in second.owners
    world.grow(GROWN, "b")
    while not taking.done():
        await world.breathe()
        world.clock.advance(0.1)
        world.step()
    await complete(world)
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)


@pytest.mark.parametrize(("base", "count"), [(1, 16), (4, 4), (4, 8), (4, 64)])
def test_each_new_partition_has_one_parent_whatever_the_growths(base, count):
    """The parent is the second number of the lineage."""
    layout = layout_of(base, count)
    parents = {child: number for number in range(count) for child in layout.children(number)}
    assert parents == {number: layout.lineage(number)[1] for number in range(base, count)}


@pytest.mark.parametrize(("base", "count", "most"), [(1, 16, 16), (4, 64, 16), (64, 256, 16), (64, 64, 4)])
def test_the_partitions_of_a_set_have_their_lineage_and_their_lanes_in_it(base, count, most):
    layout = layout_of(base, count)
    sets = layout.sets(most)
    assert sorted(number for part in sets for number in part) == list(range(count))
    assert len(sets) == min(most, base)
    for part in sets:
        assert {one for number in part for one in layout.lineage(number)} == set(part)
        assert len({number % len(sets) for number in part}) == 1


async def test_a_claim_on_its_way_reaches_the_broker_before_the_partition_is_released(tmp_path):
    """A member loses partitions while it takes them over: its claim does not come after that of the next owner."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True))
    first = await world.start("a")
    await world.start("b")
    world.rng = random.Random(1)
    member = world.members["a"][0]
    member.slow = True
    taking = asyncio.create_task(first.on_assigned(frozenset(range(PARTITIONS))))
    await world.breathe()
    revoking = asyncio.create_task(first.on_revoking(frozenset(range(PARTITIONS))))
    await world.breathe()
    assert not revoking.done()
    member.take()
    await revoking
    member.slow = False
    await world.give("b")
    begin(world)
    await taking
    await world.until(URLS)
    right(world)


async def test_a_partition_that_is_handed_over_is_not_split_before(world):
    """The layout comes while a partition finishes: its claim would come after that of the next owner."""
    first = await world.start("a")
    await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    claims = sum(record.claim is not None for _, record in world.broker.records(FRONTIER, 0))
    revoking = asyncio.create_task(first.on_revoking(frozenset({0})))
    await asyncio.sleep(0)
    world.grow(GROWN)
    while not revoking.done():
        await world.breathe()
        world.step()
    await complete_without(world, 0)
    assert sum(record.claim is not None for _, record in world.broker.records(FRONTIER, 0)) == claims
    world.members["a"][0].forget({0})
    await world.give("b", 0, *range(PARTITIONS, GROWN))
    await complete(world)
    await world.until(URLS)
    right(world)


@pytest.mark.parametrize("owned", [True, False])
async def test_a_partition_that_is_handed_over_while_its_log_is_looked_for_is_not_claimed(tmp_path, owned):
    """Its birth comes while another partition of the member finishes, or before its first look has ended."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True))
    first = await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.broker.grow(GROWN)
    second = await world.start("b")
    world.members["b"][0].see_layout()
    leaving = frozenset(range(PARTITIONS, GROWN))
    taking = asyncio.ensure_future(second.on_assigned(leaving))
    if owned:
        await taking
    revoking = asyncio.ensure_future(second.on_revoking(leaving))
    await revoking
    await taking
    world.members["a"][0].see_layout()
    await born(world, "a")
    await complete(world)
    assert not second.owners
    for partition in leaving:
        claims = [record.claim.member for _, record in world.broker.records(FRONTIER, partition) if record.claim]
        assert set(claims) == {"a"}
    assert first.owners.keys() == set(range(GROWN))
    await world.until(URLS)
    right(world)


async def complete_without(world: World, partition: int) -> None:
    """Until all old partitions but this one are split."""
    others = set(range(PARTITIONS)) - {partition}
    owners = world.members["a"][1].owners
    while set(owners) != others or any(owner.layout.count != GROWN for owner in owners.values()):
        await world.breathe()
        await world.run(0.05)


async def test_a_member_that_waits_for_the_setting_claims_no_partition_that_it_has_lost(world):
    """Each claim would fence the owner that follows."""
    await world.start("a")
    second = await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(URLS // 4)
    world.grow(GROWN, "a")
    await born(world, "a")
    await complete(world)
    world.kill("a")
    taking = asyncio.create_task(second.on_assigned(frozenset(range(PARTITIONS))))
    for _ in range(20):
        await world.breathe()
    second.on_lost(frozenset(range(PARTITIONS)))
    claims = len(world.broker.logs[FRONTIER.name, 0])
    while not taking.done():
        await world.breathe()
        world.clock.advance(0.1)
        world.step()
    assert len(world.broker.logs[FRONTIER.name, 0]) == claims
    assert not second.owners


def test_births_are_records_of_their_own(tmp_path):
    """A log of a new partition begins with where its state is."""
    assert FRONTIER.message.__struct_fields__ == ("claim", "commit", "birth")
