"""Partitions that go from one scheduler to another: by a hand-over, after a kill, after a freeze."""

from __future__ import annotations

import logging
import random
from itertools import pairwise

import pytest
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import CrawlJob, Seed
from nephila.kernel.topics import FRONTIER, JOBS, SEEDS
from nephila.scheduler.config import SchedulerConfig

from tests.cluster.scheduler.cluster_rig import PARTITIONS, World, ends, jobs_of, web
from tests.jobs import crawl_job

HOSTS, PAGES = 6, 9
URLS = HOSTS * (PAGES + 3)


@pytest.fixture
def world(tmp_path):
    """Six sites of nine pages and three more URLs, to be crawled; nobody is there yet."""
    return World(tmp_path, web(HOSTS, PAGES, more=True))


def begin(world: World, **scope: object) -> None:
    """All sites are told by their first pages."""
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), **scope)


async def in_the_air(world: World) -> None:
    """Until something is being fetched."""
    while not world.busy and len(world.rows) < len(world.site.links):
        await world.run(0.05)


async def test_one_scheduler_has_all_partitions(world):
    """Each partition has a frontier of its own, links to others find their way, and all is stored once."""
    owners = await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert world.twice == 0
    assert set(owners.owners) == set(range(PARTITIONS))
    jobs = jobs_of(owners)
    assert (sum(job.queue.length for job in jobs), sum(job.counts.ended.total() for job in jobs)) == (0, URLS)


async def test_partitions_go_to_another_scheduler_and_back(world):
    """In the middle of a crawl, with requests in the air: nothing is lost, fetched twice, or asked for too early."""
    await world.start("a")
    await world.start("b")
    await world.give("a")
    begin(world)
    for rows, source, target in ((5, "a", "b"), (15, "b", "a"), (25, "a", "b")):
        await world.until(rows)
        await in_the_air(world)
        await world.hand_over(source, target, 0, 1, 2)
        world.check()
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS
    assert world.twice == 0


async def test_the_logs_of_a_takeover_are_read_at_once(tmp_path):
    """Each reading costs a connection, and partitions of the first layout have no birth to look for."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), blobs="")
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(5)
    await world.start("b")
    member, reads = world.members["b"][0], []
    read = member.read
    member.read = lambda topic, ranges: (reads.append((topic, sorted(ranges))), read(topic, ranges))[1]
    await world.hand_over("a", "b", *range(PARTITIONS))
    assert [partitions for topic, partitions in reads if topic is FRONTIER] == [list(range(PARTITIONS))]
    await world.until(URLS)
    world.check()


async def test_a_takeover_is_one_line_of_the_log(world, caplog):
    """However many partitions; those of each partition are for debugging."""
    caplog.set_level(logging.INFO, "nephila_cluster.scheduler")
    await world.start("a")
    await world.start("b")
    await world.give("a")
    begin(world)
    await world.until(15)
    caplog.clear()
    await world.hand_over("a", "b", 0, 1, 2)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert len(lines) == 1, lines
    assert lines[0].startswith("3 partitions taken over: ")


@pytest.mark.parametrize("rows", [0, 1, 7, 20, 35])
async def test_a_scheduler_is_killed(world, rows):
    """Another takes everything over; what was on its way is waited for, not asked for again."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(rows)
    await in_the_air(world)
    world.kill("a")
    await world.start("b")
    await world.run(0.05)
    await world.give("b")
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS


@pytest.mark.parametrize("lease_s", [SchedulerConfig().lease_s, 2000.0])
async def test_requests_are_published_again_only_when_they_were_not(world, lease_s):
    """The log of requests says which of the leases have one, also after `lease_s` was lowered."""
    await world.start("a", lease_s=lease_s)
    await world.give("a")
    begin(world)
    await world.until(10)
    await in_the_air(world)
    world.kill("a")
    published = sum(len(world.broker.logs["requests", p]) for p in range(PARTITIONS))
    world.hold_outcomes = True
    await world.start("b")
    await world.give("b")
    assert sum(len(world.broker.logs["requests", p]) for p in range(PARTITIONS)) == published
    world.hold_outcomes = False
    await world.until(URLS)
    world.check()


@pytest.mark.parametrize("seed", range(12))
async def test_kills_between_any_two_messages(world, seed):
    """The broker takes what a scheduler publishes message by message, and it is killed before any of them: whatever was
    not taken is done again by the next, and no server hears of it."""
    world.rng = rng = random.Random(seed)
    begin(world)
    for life in range(12):
        name = f"s{life}"
        await world.start(name)
        await world.give(name)
        world.check()
        for _ in range(rng.randrange(40)):
            world.clock.advance(rng.choice((0.0, 0.0, 0.05, 0.3)))
            world.step()
        world.kill(name)
    await world.start("last")
    await world.give("last")
    await world.until(URLS, limit_s=200)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS


@pytest.mark.parametrize("seed", range(8))
async def test_an_outcome_that_is_read_again_ends_no_later_lease(world, seed):
    """A request is given back and leased again, as the same attempt. After a kill the old outcome is read again: the
    new lease stays, no server gets two requests at once, and no host waits for the end of a lease."""
    world.rng = rng = random.Random(seed)
    refused = set()

    def refuses(request):
        key = request.url, request.lease_until
        if key not in refused and rng.random() < 0.4:
            refused.add(key)
            return True
        return False

    world.refuses = refuses
    begin(world)
    for life in range(12):
        name = f"s{life}"
        await world.start(name)
        await world.give(name)
        world.check()
        for _ in range(rng.randrange(40)):
            world.clock.advance(rng.choice((0.0, 0.0, 0.05, 0.3)))
            world.step()
        world.kill(name)
    await world.start("last")
    await world.give("last")
    await world.until(URLS, limit_s=80)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS


async def test_what_belongs_to_others_is_sent_before_the_commit(world):
    """The target of a redirect lies in another partition: where the broker takes commits alone before a kill,
    the outcome is not in the log, comes again, and leads there again."""
    moved, there = next(
        (moved, there)
        for moved, there in world.site.redirects.items()
        if world.partition(moved) != world.partition(there)
    )
    await world.start("a")
    await world.give("a")
    world.submit(moved)
    member, _ = world.members["a"]
    while not any(fetch.url == moved for fetch in world.busy.values()):
        await world.run(0.05)
    member.slow = True
    await world.run(1.0)
    for _ in range(5):
        member.take_only(FRONTIER)
        world.step()
    assert member.unsent
    world.kill("a")
    await world.start("b")
    await world.give("b")
    await world.until(2)
    assert world.outcomes() == {moved: "dropped", there: "stored"}


async def test_a_frozen_owner_says_nothing_and_what_it_writes_counts_for_nobody(world):
    """It goes on without knowing that its partitions were given to another: its requests stay in, and its commits,
    which the broker takes, are ignored by the third owner."""
    old = await world.start("old")
    await world.give("old")
    begin(world)
    await world.until(10)
    await in_the_air(world)
    member, _ = world.members["old"]
    member.emits = False
    del world.members["old"]
    await world.start("new")
    await world.give("new")
    await world.until(15)
    published = {p: len(world.broker.logs["requests", p]) for p in range(PARTITIONS)}
    commits = old.counts.commits
    member.deliver()
    world.clock.run_due()
    assert old.counts.commits > commits
    assert old.counts.blocked
    assert {p: len(world.broker.logs["requests", p]) for p in range(PARTITIONS)} == published
    old.on_lost(frozenset(range(PARTITIONS)))
    member.alive = False
    world.kill("new")
    third = await world.start("third")
    await world.give("third")
    world.check()
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS
    assert third.counts.blocked == 0


async def test_partitions_share_the_pace_of_a_server_address(tmp_path):
    """All sites are on one machine that bears one fetch at a time: the partitions wait in one line."""
    world = World(tmp_path, web(HOSTS, PAGES), per_address=1, address_gap_s=0.4)
    await world.start("a")
    await world.give("a")
    begin(world, delay_s=0.1)
    await world.until(HOSTS * PAGES)
    world.check(delay_s=0.1)
    paced = [fetch for fetch in world.fetches if fetch.address]
    assert len({world.partition(fetch.url) for fetch in paced}) > 1
    assert len(paced) > HOSTS * PAGES // 2
    for before, fetch in pairwise(paced):
        assert fetch.start >= max(before.end, before.start + 0.4) - 1e-6, f"{fetch} follows {before}"


async def test_a_job_is_deleted_while_its_pages_are_fetched(world):
    """Whoever takes over waits for what is in the air, for the sake of the host; another job on it has to wait, too."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(10)
    world.hold_outcomes = True
    while len(world.busy) < 2:
        await world.run(0.05)
    world.outside.publish(JOBS, 0, CrawlJob("t", "t", 2, deleted=True))
    await world.settle()
    scope = Scope(mode="any", max_depth=-1)
    world.outside.publish(JOBS, 0, crawl_job("u", "u", 1, [], scope, Politeness(delay="1s", respect_robots=False)))
    for host in range(HOSTS):
        url = f"http://h{host}.test/0"
        world.outside.publish(SEEDS, world.partition(url), Seed("u", url))
    await world.run(0.1)
    world.kill("a")
    await world.start("b")
    await world.give("b")
    await world.run(3.0)
    world.hold_outcomes = False
    await world.run(400.0)
    world.check()
    jobs = jobs_of(world.members["b"][1])
    assert {job.uid for job in jobs} == {"u"}
    assert sum(job.counts.ended.total() for job in jobs) == URLS


async def test_what_was_held_back_goes_out_when_the_broker_has_heard_of_us(world):
    """Without a word from anybody: a moment in which no heartbeat got through costs that moment."""
    await world.start("a")
    await world.give("a")
    begin(world)
    await world.until(5)
    await in_the_air(world)
    member, owners = world.members["a"]
    member.emits = False
    await world.run(5.0)
    published = sum(len(world.broker.logs["requests", p]) for p in range(PARTITIONS))
    await world.run(5.0)
    assert sum(len(world.broker.logs["requests", p]) for p in range(PARTITIONS)) == published
    assert any(owner.pipeline.blocked for owner in owners.owners.values())
    assert owners.counts.blocked < 1000
    member.emits = True
    await world.run(0.15)
    assert not any(owner.pipeline.blocked for owner in owners.owners.values())
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)
