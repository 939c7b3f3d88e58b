"""Schedulers that share a job: its page budget is kept to the page and its end is view in time, whoever dies."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.cluster.scheduler.jobs.coordination_rig import JOB, World, counted


def crawl(seed, budget, pages, trouble):
    """A crawl with trouble in its first half; returns the world when the job is done."""
    rng = random.Random(seed)
    world = World(rng, budget, pages)
    while not world.watcher.status.generation:
        world.thaw()
        world.run(200, trouble)
    world.submit()
    world.jobs[JOB] = msgspec.structs.replace(world.jobs[JOB], generation=2)
    for member in world.members:
        member.protocol.on_job(JOB)
    world.run(3000, trouble)
    world.thaw()
    for _ in range(400):
        if world.watcher.status.done and world.watcher.status.generation == 2:
            return world
        world.run(200, trouble / 20)
        world.thaw()
    raise AssertionError(f"it never ends: {counted(world)} {world.watcher.status}")


@pytest.mark.parametrize("trouble", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("seed", range(12))
def test_a_budget_is_spent_to_the_last_page(seed, trouble):
    """Never more in storage than there are pages, and exactly so many at the end where there are enough pages."""
    rng = random.Random(seed + 1000)
    world = crawl(seed, rng.randrange(1, 120), 150, trouble)
    assert len(world.stored) == min(world.budget, world.reachable())
    assert world.watcher.status.spent == (len(world.stored) == world.budget)


@pytest.mark.parametrize("trouble", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("seed", range(12))
def test_the_end_is_told_when_everything_was_fetched(seed, trouble):
    """Not before (the world looks at each status that says so), and not never."""
    world = crawl(seed, 0, 100, trouble)
    assert len(world.stored) == world.reachable()
    assert world.watcher.status.stored == len(world.stored)
