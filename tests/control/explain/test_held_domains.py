"""The list of hosts and explain name the domain that holds a host back, with its figures."""

from __future__ import annotations

from pathlib import Path

from nephila.kernel.documents.budget_schema import DomainBudget
from nephila.kernel.documents.job_schema import Scope
from nephila_control.explain.explain import explain
from nephila_control.explain.host_list import HostQuery, host_list

from tests.scheduler.world import JOB, World, site


async def test_explain_and_the_list_of_hosts_name_the_domain(tmp_path: Path) -> None:
    farm = [f"http://x{number}.farm.test/" for number in range(300)]
    world = await World(tmp_path, site({"/": farm, **{url: [] for url in farm}})).start()
    world.crawl("http://a.test/", scope=Scope(mode="any", max_depth=-1), domains=DomainBudget(1, from_hosts=0))
    world.run()
    scheduler = world.scheduler
    frontier = scheduler.frontier
    job, now = frontier.jobs[JOB], world.clock.monotonic()
    assert job.domains is not None
    host = frontier.store.name(next(iter(job.domains.parked)))
    words = job.domains.spent(host)
    assert words == "its domain farm.test has used 100 of 100 requests"
    waiting = explain(scheduler.dispatcher, job, f"http://{host}/", now, running=True)
    assert (waiting.kind, waiting.state) == ("budget_domain", "waiting")
    assert waiting.sentence == f"Waiting: held back: {words}; the budget grows with the crawl."
    (listed,) = host_list(scheduler.dispatcher, now, HostQuery(search=host))
    assert (listed.why, listed.domain) == ("domain", words)
