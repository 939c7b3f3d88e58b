"""Hosts of domains with a high rank are fetched from first: at once, after a change of the job, after a restart."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from nephila.kernel.documents.budget_schema import DomainBudget
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.runtime.clock import ManualClock
from nephila.scheduler.domains.domain_ranks import DomainRanks

from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Fetched, World, site

HOSTS = 60
RANKED = [f"d{number}.test" for number in range(40)]
"""The last third of the domains has no rank."""
SEEDS = [f"http://www.d{number}.test/" for number in range(HOSTS)]
random.Random(2).shuffle(SEEDS)
WEB = site({url: [f"{url}more"] for url in SEEDS} | {f"{url}more": [] for url in SEEDS})


def levels(fetched: list[Fetched]) -> list[int]:
    ranks = DomainRanks(RANKED)
    return [ranks.level(request.host) for request in fetched]


async def begun(directory: Path, ranks: list[str], *, paused: bool = False, **spec: object) -> World:
    """A crawl of one fetch at a time, whose seeds are all queued."""
    world = await World(directory, WEB, concurrency=1).start()
    world.crawl(*SEEDS, delay_s=0.0, paused=True, domains=DomainBudget(ranks=ranks), **spec)
    if not paused:
        world.crawl(delay_s=0.0, domains=DomainBudget(ranks=ranks), **spec)
    return world


@pytest.mark.parametrize("mode", ["host", "any"])
async def test_pages_of_high_ranks_come_first_and_each_level_in_the_order_of_the_strategy(tmp_path, mode):
    world = (await begun(tmp_path, RANKED, scope=Scope(mode=mode, max_depth=-1))).run()
    assert world.done
    assert len(world.fetched) == 2 * HOSTS
    assert levels(world.fetched) == sorted(levels(world.fetched))
    of_one_level = [request.url for request in world.fetched if levels([request]) == [4]]
    assert [url.endswith("more") for url in of_one_level] == [False] * 16 + [True] * 16
    check(world.scheduler.dispatcher)


async def test_without_ranks_all_seeds_come_before_links(tmp_path):
    world = (await begun(tmp_path, [])).run()
    assert [request.url.endswith("more") for request in world.fetched] == [False] * HOSTS + [True] * HOSTS


async def test_ranks_that_come_later_give_the_order_of_ranks_that_were_there(tmp_path):
    at_once = (await begun(tmp_path / "once", RANKED)).run()
    late = await begun(tmp_path / "late", [], paused=True)
    late.crawl(delay_s=0.0, domains=DomainBudget(ranks=RANKED))
    late.run()
    assert [request.url for request in late.fetched] == [request.url for request in at_once.fetched]
    check(late.scheduler.dispatcher)


async def test_ranks_are_given_and_taken_back_while_hosts_are_ready(tmp_path):
    world = (await begun(tmp_path, [])).run(2.0)
    first = len(world.fetched)
    assert 2 < first < HOSTS
    world.crawl(delay_s=0.0, domains=DomainBudget(ranks=RANKED))
    world.run(2.0)
    ranked = levels(world.fetched[first + 2 :])  # one was under way
    assert len(ranked) > 5
    assert ranked == sorted(ranked)
    second = len(world.fetched)
    world.crawl(delay_s=0.0)
    world.run()
    assert world.done
    rest = levels(world.fetched[second + 2 :])
    assert rest != sorted(rest)


async def test_a_restart_continues_in_the_same_order(tmp_path):
    """The ranks are in the log with the job."""
    world = (await begun(tmp_path, RANKED)).run(4.0)
    assert not world.done
    world.kill()
    again = World(tmp_path, WEB, ManualClock(world.clock.now(), world.clock.monotonic()), concurrency=1)
    await again.start()
    again.run()
    assert again.done
    later = levels(again.fetched[1:])  # the first is the lease of before
    assert len(later) > HOSTS
    assert later == sorted(later)


async def test_each_job_has_its_own_order_of_the_same_hosts(tmp_path):
    """A host that is ready for one job already gets the order of the other job when that queues a URL there."""
    world = await World(tmp_path, WEB, concurrency=1).start()
    world.crawl(*SEEDS, delay_s=0.0, scope=Scope(max_depth=0), weight=0.001)
    world.run(1.0)
    world.crawl(
        *(f"{url}more" for url in SEEDS),
        job="ranked",
        delay_s=0.0,
        scope=Scope(max_depth=0),
        domains=DomainBudget(ranks=RANKED),
    )
    world.run()
    ranked = levels([request for request in world.fetched if request.job == "ranked"])
    assert len(ranked) == HOSTS
    # Hosts of the first fetches of the other job were away for a moment.
    assert sum(a > b for a, b in itertools.pairwise(ranked)) <= 3
    plain = levels([request for request in world.fetched if request.job == JOB])
    assert plain != sorted(plain)
