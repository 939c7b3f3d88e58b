"""Model test of lanes: members own whole lanes, get new partitions when they read the layout, and lose all of a lane.

Messages of a partition that the owner of its lane does not serve yet wait in the lane, at a scheduler and at a
downloader, which reads of a growth at an instant of its own. The rows are those of an undisturbed crawl in every order
of growths, moves, kills and snapshots.
"""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.topics import REQUESTS, TOPICS

from tests.cluster.scheduler.cluster_rig import FetchEnds
from tests.cluster.scheduler.test_orders_of_growth import GROWTHS, SEEDS, Group, right

LANES = 4
OWNED = {topic.name for topic in TOPICS if topic.owned}
SEE = 0.01
"""Chance in each step that the downloaders read the layout."""


class LaneGroup(Group):
    """The model group, whose unit is the lane."""

    def __init__(self, root, seed: int, growths: list[int], lanes: int, **config: object) -> None:
        super().__init__(root, seed, growths, lanes=lanes, **config)
        self.lanes = lanes
        self.waited = self.requests_waited = False
        """Whether a message for a scheduler, a request, has waited in a lane for its partition."""
        self.world.served = self.world.broker.partitions
        self.world.downloader_of = lambda partition: (partition % lanes + self.shift) % len(self.world.downloaders)

    def within(self, name: str, lanes: set[int]) -> set[int]:
        """The partitions of these lanes that a member knows."""
        return {p for p in range(self.world.members[name][0].layout.count) if p % self.lanes in lanes}

    def lanes_of(self, name: str) -> set[int]:
        return {p % self.lanes for p, holder in self.holders.items() if holder == name}

    async def step(self, seconds: float = 0.05) -> None:
        await super().step(seconds)
        self.extend()
        world = self.world
        for lane in range(self.lanes):
            requests = world.broker.in_lane(REQUESTS, lane, world.done[REQUESTS.name, lane])
            self.requests_waited |= any(partition >= world.served for partition, _ in requests)
        if self.rng.random() < SEE:
            world.served = world.broker.partitions
        for member, _ in self.world.members.values():
            for (name, partition), log in list(self.world.broker.logs.items()):
                at = self.world.broker.committed["scheduler", name, partition]
                ours = {p % self.lanes for p in member.held}
                if name in OWNED and partition in ours and at < len(log):
                    self.waited |= log[at].partition - 1 not in member.held

    def extend(self) -> None:
        """Members that have read the layout get the new partitions of their lanes."""
        for name in sorted(self.world.members):
            self.assign(name, self.within(name, self.lanes_of(name)) - self.holders.keys())

    def give_new(self) -> None:
        """Lanes without a member get one."""
        free = sorted(set(range(self.lanes)) - {p % self.lanes for p in self.holders})
        self.rng.shuffle(free)
        name = self.rng.choice(sorted(self.world.members))
        self.assign(name, self.within(name, set(free[: self.rng.randrange(1, len(free) + 2)])))

    async def move(self) -> None:
        """Some lanes of one member go to another one."""
        busy = {p % self.lanes for partitions in self.assignments for p in partitions}
        source, target = self.rng.sample(sorted(self.world.members), 2)
        lanes = sorted(self.lanes_of(source) - busy)
        lanes = set(self.rng.sample(lanes, self.rng.randrange(len(lanes) + 1)))
        going = {p for p, name in self.holders.items() if name == source and p % self.lanes in lanes}
        if not going:
            return
        self.history.append(f"{source} gives lanes {sorted(lanes)}")
        member, scheduler = self.world.members[source]
        revoking = asyncio.ensure_future(scheduler.on_revoking(frozenset(going)))
        self.holders |= dict.fromkeys(self.within(source, lanes), source)  # no new ones meanwhile
        while not revoking.done():
            await super().step()
        revoking.result()
        member.forget(self.within(source, lanes) | going)
        self.holders = {p: name for p, name in self.holders.items() if p % self.lanes not in lanes}
        self.assign(target, self.within(target, lanes))


@pytest.mark.parametrize("blobs", [True, False], ids=["blobs", "logs"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_order_of_operations_on_lanes_leads_to_the_rows_of_the_undisturbed_crawl(tmp_path, seed, blobs):
    """Growths by one bit and by several; four lanes for up to 32 partitions."""
    group = LaneGroup(tmp_path, seed, GROWTHS[seed % len(GROWTHS)], LANES, **({} if blobs else {"blobs": ""}))
    await group.run()
    right(group)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_beat_keeps_rows_and_gaps_in_every_order_of_operations_on_lanes(tmp_path, seed):
    """Two lanes. Requests are planned ahead; downloaders have other clocks and other partitions all the time."""
    group = LaneGroup(tmp_path, seed, GROWTHS[seed % len(GROWTHS)], 2, beat_s=0.5, per_address=0, address_gap_s=0.0)
    group.world.downloaders = [FetchEnds(0.4), FetchEnds(-0.4), FetchEnds()]
    await group.run()
    right(group)


async def test_messages_wait_in_their_lane_in_the_model(tmp_path):
    """The model reaches the states that it is about. What threads do in real time decides the runs in which it does."""
    waited = requests_waited = False
    for seed in range(3, 43):
        group = LaneGroup(tmp_path / str(seed), seed, [16, 32], 2, kills=0)
        await group.run()
        right(group)
        waited, requests_waited = waited or group.waited, requests_waited or group.requests_waited
        if waited and requests_waited:
            return
    raise AssertionError(f"in ten runs: a message waited for a scheduler {waited}, for a downloader {requests_waited}")
