"""A job over several schedulers: its budget, its end and its anchors, whoever comes and goes."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import JobStatus, Seed
from nephila.kernel.topics import JOB_STATUS, JOBS, SEEDS
from nephila_cluster.scheduler.jobs.job_view import JobView

from tests.cluster.scheduler.cluster_rig import PARTITIONS, Site, World, web
from tests.jobs import crawl_job

HOSTS, PAGES = 6, 9


@pytest.fixture
def world(tmp_path):
    """Six sites of nine pages; nobody is there yet."""
    return World(tmp_path, web(HOSTS, PAGES))


def begin(world: World, **scope: object) -> None:
    """All sites are told by their first pages."""
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), **scope)


def status_of(world: World) -> JobStatus:
    """What who watches the job has heard last."""
    result = JobView("t")
    for status in world.broker.all(JOB_STATUS, 0):
        result.take_status(status)
    return result.status


async def until_done(world: World, limit_s: float = 200.0) -> JobStatus:
    """Until it is told that nothing is left to do."""
    end = world.clock.monotonic() + limit_s
    while not (status := status_of(world)).done:
        assert world.clock.monotonic() < end, f"{status} {len(world.rows)} rows"
        await world.run(0.5)
    return status


async def test_the_end_is_told_once_everything_is_stored(world):
    """With the sums of all partitions."""
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    begin(world)
    await world.give("b", 2, 3)
    status = await until_done(world)
    assert len(world.rows) == HOSTS * PAGES
    assert (status.stored, status.queued, status.in_flight) == (HOSTS * PAGES, 0, 0)


@pytest.mark.parametrize("when", ["running", "done", "taken over"])
async def test_a_scope_that_is_widened_leads_to_the_same_pages(world, when):
    """Links one step too deep are held in the partition of their target, also over a takeover."""
    await world.start("a")
    await world.give("a")
    begin(world, max_depth=1)
    if when == "running":
        await world.run(1.5)
        assert not status_of(world).done
    else:
        await until_done(world)
        assert len(world.rows) < HOSTS * PAGES
        assert status_of(world).links_held > 0
    if when == "taken over":
        world.kill("a")
        await world.start("b")
        await world.give("b")
    scope = Scope(mode="any", max_depth=-1)
    world.outside.publish(JOBS, 0, crawl_job("t", "t", 2, [], scope, Politeness(delay="1s", respect_robots=False)))
    await world.until(HOSTS * PAGES)
    status = await until_done(world)
    world.check()
    assert (status.stored, status.links_held, status.links_lost) == (HOSTS * PAGES, 0, 0)


@pytest.mark.parametrize("budget", [1, 7, 20, 53])
async def test_a_budget_is_spent_to_the_page(world, budget):
    """Over two schedulers and four partitions, of which some have less to give than others."""
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    begin(world, max_pages=budget)
    status = await until_done(world)
    assert len(world.rows) == budget
    assert (status.stored, status.spent) == (budget, True)


async def test_a_budget_that_is_larger_than_the_web_does_not_hold_up_the_end(world):
    """Everything is stored, and it is not spent."""
    await world.start("a")
    await world.give("a")
    begin(world, max_pages=1000)
    status = await until_done(world)
    assert (status.stored, status.spent) == (HOSTS * PAGES, False)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", [0, 23])
async def test_budget_and_end_outlive_hand_overs_and_kills(world, seed, budget):
    """Partitions go to and fro, schedulers are killed and come again: as many pages as there should be."""
    rng = random.Random(seed)
    names = ["a", "b"]
    for name in names:
        await world.start(name)
    owner = {p: rng.choice(names) for p in range(PARTITIONS)}
    for p, name in owner.items():
        await world.give(name, p)
    begin(world, max_pages=budget)
    for _ in range(8):
        await world.run(rng.uniform(0.1, 3.0))
        partition = rng.randrange(PARTITIONS)
        source, target = owner[partition], rng.choice(names)
        if rng.random() < 0.5 and source != target:
            await world.hand_over(source, target, partition)
            owner[partition] = target
            continue
        world.kill(source)
        await world.start(source)
        for p in [p for p in owner if owner[p] == source]:
            owner[p] = target
            await world.give(target, p)
    status = await until_done(world)
    expected = budget or HOSTS * PAGES
    assert len(world.rows) == expected
    assert status.stored == expected
    world.check()


async def test_an_anchor_is_known_to_all_partitions(tmp_path):
    """What a seed's redirect leads to widens the scope wherever its domain has hosts; who comes later knows it, too."""
    hosts = [f"h{n}.wide.example.com" for n in range(8)]
    links = {f"http://{host}/0": [f"http://{other}/0" for other in hosts] for host in hosts}
    world = World(tmp_path, Site(links, {"http://first.org/": "http://h0.wide.example.com/0"}))
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    world.submit("http://first.org/", mode="domain")
    await until_done(world)
    assert len(world.rows) == len(hosts) + 1
    world.kill("a")
    await world.start("c")
    await world.give("c", 0, 1)
    await world.run(5)
    for _, owners in world.members.values():
        for owner in owners.owners.values():
            assert owner.frontier.jobs["t"].scope.anchors == {"first.org", "example.com"}


async def test_a_paused_job_takes_its_seeds_and_rests(world):
    """That all of them are in is told; nothing is fetched before it goes on."""
    await world.start("a")
    await world.give("a")
    begin(world)
    (job,) = world.broker.all(JOBS, 0)
    job.generation, job.paused = 2, True
    world.outside.publish(JOBS, 0, job)
    status = await until_done(world)
    assert (status.paused, status.queued) == (True, HOSTS)
    assert not world.fetches
    job.generation, job.paused = 3, False
    world.outside.publish(JOBS, 0, job)
    await world.until(HOSTS * PAGES)
    assert (await until_done(world)).stored == HOSTS * PAGES


async def test_a_deleted_job_is_told_as_such_and_may_begin_anew(world):
    """Its name's next job has the whole budget again."""
    await world.start("a")
    await world.give("a")
    begin(world, max_pages=5)
    await until_done(world)
    (job,) = world.broker.all(JOBS, 0)
    job.generation, job.deleted = 2, True
    world.outside.publish(JOBS, 0, job)
    await world.run(5)
    assert status_of(world).deleted
    job.generation, job.deleted = 3, False
    world.rows.clear()
    world.outside.publish(JOBS, 0, job)
    begin_seeds(world)
    status = await until_done(world)
    assert (status.stored, status.generation) == (5, 3)


def begin_seeds(world: World) -> None:
    """The seeds once more, of the job as it is."""
    for host in range(HOSTS):
        seed = f"http://h{host}.test/0"
        world.outside.publish(SEEDS, world.partition(seed), Seed("t", seed))
