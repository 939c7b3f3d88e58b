"""Real schedulers over a broker whose sites share one server address: what they have counted there keeps one pace."""

from __future__ import annotations

from itertools import pairwise

import pytest
from nephila.kernel.messages import AddressAnnouncement, PartitionOwned
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import ADDRESSES, REQUESTS
from nephila_cluster.scheduler import takeover

from tests.cluster.scheduler.cluster_rig import PARTITIONS, World, web

HOSTS, PAGES = 8, 9


@pytest.fixture
async def world(tmp_path):
    """Two schedulers with two partitions each; the whole web is on one address, and a fetch takes 1.5 s."""
    world = World(tmp_path, web(HOSTS, PAGES), took_s=1.5)
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), delay_s=0.5)
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    return world


def check(world: World) -> None:
    """First contacts are for the downloader to hold back; all others are 0.25 s apart, and four at once at most."""
    counted = sorted((fetch for fetch in world.fetches if fetch.address), key=lambda fetch: fetch.start)
    assert len(counted) >= HOSTS * PAGES // 2
    assert min(later.start - earlier.start for earlier, later in pairwise(counted)) >= 0.25 - 1e-6
    for fetch in counted:
        at_once = [one for one in counted if one.start <= fetch.start < one.end]
        assert len(at_once) <= 4, f"{len(at_once)} at once at {fetch.start}"
    world.check(0.5)


async def test_two_schedulers(world):
    """From beginning to end, and both have fetched."""
    await world.until(HOSTS * PAGES)
    check(world)
    for name in "ab":
        assert world.members[name][1].counts.requests >= PAGES


async def test_partitions_that_move_take_what_is_in_flight_with_them(world):
    """To the other and back, in the middle of fetches."""
    for rows, source, target in ((12, "a", "b"), (30, "b", "a"), (45, "a", "b")):
        await world.until(rows)
        await world.hand_over(source, target, 1)
    await world.until(HOSTS * PAGES)
    check(world)


async def test_a_scheduler_that_dies_in_its_turn(world):
    """Its successor goes on, with what was in flight."""
    await world.until(20)
    world.kill("a")
    await world.run(6.0)
    await world.give("b", 0, 1)
    await world.until(HOSTS * PAGES)
    check(world)


async def test_a_take_over_that_fails_leaves_nothing_in_flight(world, monkeypatch):
    """The broker goes away when leases have been taken over already: what is counted is what is on its way, once."""
    monkeypatch.setattr(takeover, "AGAIN_S", 0.0)
    await world.until(20)
    dying = world.members["a"][1].owners
    while not any(one.address for owner in dying.values() for one in owner.frontier.in_flight.urls.values()):
        await world.run(0.05)
    world.kill("a")
    member, owners = world.members["b"]
    bounds, failing = member.bounds, [3]

    async def failing_bounds(topic, partitions):
        if topic is REQUESTS and failing[0]:
            failing[0] -= 1
            raise TemporaryError("the broker is away")
        return await bounds(topic, partitions)

    member.bounds = failing_bounds
    world.hold_outcomes = True
    await world.give("b", 0, 1)
    assert not failing[0], "nothing was on its way, so nothing was tried"
    address = "10.0.0.1"
    counted = [one for owner in owners.owners.values() for one in owner.frontier.in_flight.urls.values()]
    assert owners.address_queue.in_flight(address) == sum(one.address == address for one in counted) > 0
    world.hold_outcomes = False
    await world.until(HOSTS * PAGES)
    check(world)
    assert owners.address_queue.in_flight(address) == 0


async def test_owners_of_a_log_that_is_no_more_hold_nobody_up(tmp_path):
    """The log of the frontier was made anew, and with it its epochs: what was said of higher ones counts as long as who
    has said it might be there."""
    world = World(tmp_path, web(HOSTS, PAGES))
    owns = [PartitionOwned(partition, 5000) for partition in range(PARTITIONS)]
    world.broker.append(ADDRESSES, 0, AddressAnnouncement("a", 1, partitions=owns))
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), delay_s=0.5)
    await world.start("a")
    await world.give("a")
    await world.until(HOSTS * PAGES)
    world.check(0.5)
