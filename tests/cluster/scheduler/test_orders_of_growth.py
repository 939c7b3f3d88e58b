"""Model test: growths, splits, joins, kills and snapshots in random orders lead to the rows of an undisturbed crawl.

The group of the model names one member for each partition and takes its time. A member reads the layout late, and may
take a partition over before it has. The broker takes what members publish bit by bit.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.cluster.scheduler.cluster_rig import THREAD_S, FetchEnds, World, ends, jobs_of, web

HOSTS, PAGES = 12, 9
URLS = HOSTS * (PAGES + 3)
STEP_S = 0.05
LIMIT_S = 600.0
DISTURBED_S = 120.0
"""Disturbances end after so long, once the growths are over. A lease whose request was lost with its member ends after
20 s at one owner, and a partition that moves each second has none for so long."""
CHANGE = 0.02
"""Chance in each step that the downloaders have other partitions, where there are several."""
LAST = 0.8
"""Share of the URLs before which all growths have begun."""


class Group:
    """The members of a world and who has which partition; one random operation at a time."""

    def __init__(self, root: Path, seed: int, growths: list[int], *, kills: int = 3, **config: object) -> None:
        self.rng = random.Random(seed)
        self.world = World(root, web(HOSTS, PAGES, more=True), lease_s=20.0, start_by_s=20.0, **config)
        self.world.rng = self.rng
        self.growths = list(growths)
        self.kills = kills
        self.holders: dict[int, str] = {}
        self.assignments: dict[frozenset[int], tuple[str, asyncio.Task[None]]] = {}
        """Partitions that a member takes over now."""
        self.started = 0
        self.shift = 0
        self.world.downloader_of = lambda partition: (partition + self.shift) % len(self.world.downloaders)
        self.history: list[str] = []

    # ---- time

    async def step(self, seconds: float = STEP_S) -> None:
        """Let tasks, threads and the broker go on, and time pass."""
        if len(self.world.downloaders) > 1 and self.rng.random() < CHANGE:
            self.shift = self.rng.randrange(len(self.world.downloaders))
        for _ in range(4):
            await asyncio.sleep(0)
            self.world.step()
        if not self.complete() or self.world._snapshots():
            await asyncio.sleep(THREAD_S)
        self.world.clock.advance(seconds)
        for partitions, (name, task) in list(self.assignments.items()):
            if task.done():
                task.result()
                del self.assignments[partitions]
                self.world.members[name][0].held |= partitions
        assert not self.world.errors, (self.world.errors, self.history)

    # ---- operations

    async def member(self) -> str:
        """A new member without partitions."""
        name = f"m{self.started}"
        self.started += 1
        await self.world.start(name)
        return name

    def assign(self, name: str, partitions: set[int]) -> None:
        """The member takes partitions over; it has their deliveries when it has."""
        if partitions:
            self.holders |= dict.fromkeys(partitions, name)
            task = asyncio.ensure_future(self.world.members[name][1].on_assigned(frozenset(partitions)))
            self.assignments[frozenset(partitions)] = name, task
            self.history.append(f"{name} takes {sorted(partitions)}")

    def grow(self) -> None:
        """The topics have more partitions; one member reads it now."""
        count = self.growths.pop(0)
        self.world.broker.grow(count)
        if self.rng.random() < 0.5:
            self.world.outside.see_layout()
        self.history.append(f"grow to {count} at {len(self.world.rows)} rows")
        self.see()

    def see(self) -> None:
        """One member reads the layout."""
        name = self.rng.choice(sorted(self.world.members))
        self.world.members[name][0].see_layout()
        self.history.append(f"{name} sees {self.world.broker.partitions}")

    def give_new(self) -> None:
        """Partitions without a member get one, in one or more parts."""
        free = [p for p in range(self.world.broker.partitions) if p not in self.holders]
        self.rng.shuffle(free)
        self.assign(self.rng.choice(sorted(self.world.members)), set(free[: self.rng.randrange(1, len(free) + 2)]))

    async def move(self) -> None:
        """Some partitions of one member go to another one, as at a join or leave."""
        busy = {p for partitions in self.assignments for p in partitions}
        source, target = self.rng.sample(sorted(self.world.members), 2)
        going = {p for p, name in self.holders.items() if name == source and p not in busy}
        going = set(self.rng.sample(sorted(going), self.rng.randrange(len(going) + 1)))
        if not going:
            return
        self.history.append(f"{source} gives {sorted(going)}")
        member, scheduler = self.world.members[source]
        revoking = asyncio.ensure_future(scheduler.on_revoking(frozenset(going)))
        while not revoking.done():
            await self.step()
        revoking.result()
        member.forget(going)
        self.assign(target, going)

    async def kill(self) -> None:
        """A member is gone, with all that the broker had not taken; its partitions are free."""
        if not self.kills:
            return
        self.kills -= 1
        name = self.rng.choice(sorted(self.world.members))
        for partitions, (holder, task) in list(self.assignments.items()):
            if holder == name:
                task.cancel()
                del self.assignments[partitions]
        scheduler = self.world.members[name][1]
        self.world.kill(name)
        await scheduler.splits.close()
        self.holders = {p: holder for p, holder in self.holders.items() if holder != name}
        self.history.append(f"{name} is killed")
        await self.member()

    def snapshot(self) -> None:
        """Some owners take a snapshot with their next turn."""
        for _, scheduler in self.world.members.values():
            for owner in scheduler.owners.values():
                if self.rng.random() < 0.5:
                    owner.snapshots.limit_bytes = 1

    # ---- the run

    async def run(self) -> None:
        """Operations in random order while the crawl runs, then all that is left of it."""
        for _ in range(self.rng.randrange(2, 4)):
            await self.member()
        self.give_new()
        self.world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)))
        first = len(self.growths)
        until = self.world.clock.monotonic() + DISTURBED_S
        while (
            self.growths
            or len(self.holders) < self.world.broker.partitions
            or (len(self.world.rows) < LAST * URLS and self.world.clock.monotonic() < until)
        ):
            if len(self.world.rows) >= URLS * LAST * (1 - len(self.growths) / first) + 5 and self.growths:
                self.grow()
            await self.operate()
            for _ in range(self.rng.choice((0, 0, 1, 1, 2, 8))):
                await self.step()
        for member, _ in self.world.members.values():
            member.see_layout()
        self.world.outside.see_layout()
        end = self.world.clock.monotonic() + LIMIT_S
        while len(self.world.rows) < URLS or not self.complete():
            assert self.world.clock.monotonic() < end, (len(self.world.rows), self.history)
            await self.step(0.25)
        await self.world.run(60.0)

    async def operate(self) -> None:
        """One operation."""
        operation = self.rng.choice("sssnnnmmmmkp")
        if operation == "s":
            self.see()
        elif operation == "n" and len(self.holders) < self.world.broker.partitions:
            self.give_new()
        elif operation == "m":
            await self.move()
        elif operation == "k":
            await self.kill()
        elif operation == "p":
            self.snapshot()

    def complete(self) -> bool:
        """Whether each partition has one owner, which has its part alone."""
        owners = [owner for _, one in self.world.members.values() for owner in one.owners.values()]
        count = self.world.broker.partitions
        return sorted(owner.number for owner in owners) == list(range(count)) and all(
            owner.layout.count == count for owner in owners
        )


def right(group: Group) -> None:
    """The rows are those of the undisturbed crawl, no server was asked too early, and nothing is counted twice."""
    world = group.world
    world.check()
    assert world.outcomes() == ends(world.site), group.history
    jobs = [job for _, scheduler in world.members.values() for job in jobs_of(scheduler)]
    assert (sum(job.queue.length for job in jobs), sum(job.counts.ended.total() for job in jobs)) == (0, URLS), (
        group.history
    )
    assert sum(job.counts.split_pages for job in jobs) == 0, group.history
    again = [one for one in world.fetches if sum(one.url == other.url for other in world.fetches) > 1]
    assert not again, (again, "\n".join(group.history))
    assert len({(fetch.url, fetch.by[1]) for fetch in world.fetches}) == len(world.fetches), group.history


GROWTHS = ([8], [8, 16], [8, 16, 32], [16, 32], [8, 32], [32])
SEEDS = range(10 if os.environ.get("NEPHILA_LONG") else len(GROWTHS))


@pytest.mark.parametrize("blobs", [True, False], ids=["blobs", "logs"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_order_of_operations_leads_to_the_rows_of_the_undisturbed_crawl(tmp_path, seed, blobs):
    """Growths by one bit and by several, two and three times, in one crawl."""
    group = Group(tmp_path, seed, GROWTHS[seed % len(GROWTHS)], **({} if blobs else {"blobs": ""}))
    await group.run()
    right(group)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_beat_keeps_rows_and_gaps_in_every_order_of_operations(tmp_path, seed):
    """Requests are planned ahead. The clocks of the downloaders differ, and their partitions move all the time."""
    group = Group(tmp_path, seed, GROWTHS[seed % len(GROWTHS)], beat_s=0.5, per_address=0, address_gap_s=0.0)
    group.world.downloaders = [FetchEnds(0.4), FetchEnds(-0.4), FetchEnds()]
    await group.run()
    right(group)
    assert any(request.wait_s for request in group.world.requests()), "no request was planned"
