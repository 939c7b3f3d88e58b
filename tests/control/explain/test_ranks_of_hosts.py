"""explain and the list of hosts name the rank of a host's domain."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.documents.budget_schema import DomainBudget
from nephila_control.explain.explain import explain
from nephila_control.explain.host_list import host_list
from nephila_control.explain.render import show

from tests.scheduler.world import JOB, World, site

RANKED = DomainBudget(ranks=["first.test", "a.test"])
SEEDS = ("http://www.a.test/0", "http://b.test/0")


async def listed(directory: Path, **jobs: DomainBudget) -> World:
    world = await World(directory, site({})).start()
    for job, domains in jobs.items():
        world.crawl(*SEEDS, job=job, paused=True, domains=domains)
    return world


@pytest.mark.parametrize(
    ("domains", "lines"),
    [(RANKED, ["rank: 2 of 2 domains", "rank: none; 2 domains have one"]), (DomainBudget(), [])],
)
async def test_explain_names_the_rank_where_a_job_has_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], domains: DomainBudget, lines: list[str]
) -> None:
    world = await listed(tmp_path, **{JOB: domains})
    job = world.scheduler.frontier.jobs[JOB]
    for url in SEEDS:
        show(explain(world.scheduler.dispatcher, job, url, world.clock.monotonic(), running=True))
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in printed if line.startswith("rank")] == lines


async def test_the_list_of_hosts_has_the_highest_rank_of_the_jobs(tmp_path: Path) -> None:
    longer = DomainBudget(ranks=["x.test", "y.test", "a.test", "b.test"])
    world = await listed(tmp_path, plain=DomainBudget(), ranked=RANKED, longer=longer)
    hosts = host_list(world.scheduler.dispatcher, world.clock.monotonic())
    assert {host.name: host.rank for host in hosts} == {"www.a.test": 2, "b.test": 4}
