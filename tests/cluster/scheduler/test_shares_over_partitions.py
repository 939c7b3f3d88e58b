"""Shares of jobs and tenants over several partitions that have few hosts each."""

from __future__ import annotations

from collections import Counter

import pytest
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import Seed
from nephila.kernel.topics import JOBS, SEEDS

from tests.cluster.scheduler.cluster_rig import Site, World
from tests.jobs import crawl_job

HOSTS, PAGES, SLOTS = 24, 60, 8


def pages(job: str, hosts: int = HOSTS) -> list[str]:
    return [f"http://{job}{n}.test/{page}" for page in range(PAGES) for n in range(hosts)]


def world_of(tmp_path, jobs: dict[str, int], **config) -> World:
    """Hosts of each job with 60 pages each, six hosts in a partition; a fetch takes a second, as does the delay."""
    site = Site({page: [] for job, hosts in jobs.items() for page in pages(job, hosts)})
    return World(tmp_path, site, took_s=1.0, **{"concurrency": SLOTS, "per_address": 0, "address_gap_s": 0.0, **config})


def submit(world: World, job: str, hosts: int = HOSTS, **spec: object) -> None:
    scope = Scope(mode="any", max_depth=-1)
    world.outside.publish(
        JOBS, 0, crawl_job(job, job, 1, [], scope, Politeness(delay="1s", respect_robots=False), **spec)
    )
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


def check_slots(world: World) -> None:
    """No slot is free while a ready host waits."""
    for _, member in world.members.values():
        assert member._slots is not None
        member._slots.check()
    world.check()


@pytest.mark.parametrize("tenants", [False, True])
async def test_two_jobs_share_the_slots_of_a_scheduler_by_their_weights(tmp_path, tenants):
    """3:1, and all slots are used: as weights, and as shares of tenants of which one has two jobs."""
    names = {"a": HOSTS, "b": HOSTS, **({"c": HOSTS} if tenants else {})}
    world = world_of(tmp_path, names, member_concurrency=SLOTS, tenants=("news share=3", "legal"))
    await world.start("m")
    await world.give("m")
    for job in names:
        tenant = {"a": "news", "b": "legal", "c": "news"}[job] if tenants else ""
        submit(world, job, weight=3.0 if job == "a" and not tenants else 1.0, tenant=tenant)
    found = await fetched(world)
    assert most_at_once(world) == SLOTS + SLOTS // 4
    assert (found["a"] + found["c"]) / found["b"] == pytest.approx(3.0, rel=0.1)
    if tenants:
        assert found["a"] / found["c"] == pytest.approx(1.0, rel=0.1)
    assert sum(found.values()) >= 0.95 * 40 * (SLOTS + SLOTS // 4)
    check_slots(world)


async def test_what_a_job_cannot_use_goes_to_the_others(tmp_path):
    """The law: a host is fetched from at most once per delay and fetch, here every two seconds, and then waits for the
    next free slot, here up to a second. So four hosts of weight 3 have less than two fetches a second of ten, and the
    job of weight 1 has all others."""
    world = world_of(tmp_path, {"a": 4, "b": HOSTS}, member_concurrency=SLOTS)
    await world.start("m")
    await world.give("m")
    submit(world, "a", 4, weight=3.0)
    submit(world, "b", weight=1.0)
    found = await fetched(world)
    assert 0.7 * 80 <= found["a"] <= 80
    assert sum(found.values()) >= 0.95 * 40 * (SLOTS + SLOTS // 4)
    check_slots(world)


async def test_slots_of_partitions_that_move_are_not_lost(tmp_path):
    """A hand-over, a kill and a takeover: every page is fetched, and the slots are full until the end."""
    world = world_of(tmp_path, {"a": 8, "b": 8}, member_concurrency=4)
    await world.start("m")
    await world.start("n")
    await world.give("m")
    submit(world, "a", 8, weight=3.0)
    submit(world, "b", 8)
    await world.run(10.0)
    await world.hand_over("m", "n", 0, 1)
    await world.run(10.0)
    check_slots(world)
    world.kill("n")
    await world.give("m", 0, 1)
    found = await fetched(world, 20.0)
    assert sum(found.values()) >= 0.95 * 20 * 5
    check_slots(world)
    await world.run(300.0)
    assert len(world.rows) == 16 * PAGES
    world.check()
