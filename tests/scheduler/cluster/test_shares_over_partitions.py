"""Shares of jobs and tenants over several partitions that have few hosts each."""

from __future__ import annotations

from collections import Counter

import pytest
from nephila.kernel.messages import CrawlJob, Politeness, Scope, ScopeMode, Seed
from nephila.kernel.topics import JOBS, SEEDS

from tests.scheduler.cluster.cluster_rig import Site, World

HOSTS, PAGES, SLOTS = 24, 60, 8


def pages(job: str, hosts: int = HOSTS) -> list[str]:
    return [f"http://{job}{n}.test/{page}" for page in range(PAGES) for n in range(hosts)]


def world_of(tmp_path, jobs: dict[str, int], **config) -> World:
    """Hosts of each job with 60 pages each, six hosts in a partition; a fetch takes a second, as does the delay."""
    site = Site({page: [] for job, hosts in jobs.items() for page in pages(job, hosts)})
    return World(tmp_path, site, took_s=1.0, **{"concurrency": SLOTS, "per_address": 0, "address_gap_s": 0.0, **config})


def submit(world: World, job: str, hosts: int = HOSTS, **spec: object) -> None:
    scope = Scope(mode=ScopeMode.ANY, max_depth=-1)
    world.outside.publish(JOBS, 0, CrawlJob(job, job, 1, [], scope, Politeness(1.0, 1, True), **spec))
    for page in pages(job, hosts):
        world.outside.publish(SEEDS, world.partition(page), Seed(job, page))


async def fetched(world: World, seconds: float = 40.0) -> Counter[str]:
    """Fetches by job, without those of the first seconds."""
    await world.run(5.0)
    begin = world.clock.monotonic()
    await world.run(seconds)
    return Counter(fetch.host[0] for fetch in world.fetches if fetch.start >= begin)


def most_at_once(world: World) -> int:
    events = sorted([(fetch.start, 1) for fetch in world.fetches] + [(fetch.end - 1e-9, -1) for fetch in world.fetches])
    now = most = 0
    for _, change in events:
        now += change
        most = max(most, now)
    return most


async def test_two_jobs_share_the_slots_of_a_scheduler_by_their_weights(tmp_path):
    world = world_of(tmp_path, {"a": HOSTS, "b": HOSTS}, member_concurrency=SLOTS)
    await world.start("m")
    await world.give("m")
    submit(world, "a", weight=3.0)
    submit(world, "b")
    found = await fetched(world)
    print(found, most_at_once(world))
    assert most_at_once(world) <= SLOTS + SLOTS // 4
    assert found["a"] / found["b"] == pytest.approx(3.0, rel=0.1)
    assert sum(found.values()) >= 0.95 * 40 * SLOTS
    world.check()
