"""Budgets of domains in a crawl: a farm of hosts is held back, its links cost no memory, other hosts and jobs go on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from nephila.kernel.documents.budget_schema import DomainBudget
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import FetchKind, FetchRequest
from nephila.kernel.net.public_suffix import domain_of
from nephila.native import LinkedHosts
from nephila.scheduler.domains.domain_table import FEW_HOSTS, FLOOR, LEAST_PARKED, DomainTable, hash_of
from nephila.scheduler.engine.domain_budgets import count_links
from nephila.scheduler.jobs.queue_entry import host_of

from tests.links import outlinks
from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World

GOOD, PAGES = 40, 6
FARM = 2_000
ANY = Scope(mode="any", max_depth=-1)
SEED = "http://g0.test/0"


def farm_url(number: int) -> str:
    return f"http://x{number % FARM}.farm.test/"


def web(request: FetchRequest) -> Answer:
    """Good hosts that link to each other and to the farm, and farm hosts that link to the farm."""
    if request.kind is FetchKind.ROBOTS:
        return Answer(status=404)
    if request.host.endswith(".farm.test"):
        number = int(request.host[1:].partition(".")[0])
        return Answer([farm_url(number * 31 + step * 7 + 1) for step in range(20)])
    number, page = int(request.host[1:].partition(".")[0]), int(request.url.rsplit("/", 1)[1])
    links = [f"http://g{number}.test/{(page + 1) % PAGES}", farm_url(number * PAGES + page)]
    return Answer([*links, *(f"http://g{(number * 3 + step) % GOOD}.test/{page}" for step in range(1, 6))])


def farm_requests(world: World) -> int:
    return sum(fetched.host.endswith(".farm.test") for fetched in world.fetched)


def table(world: World, job: str = JOB) -> DomainTable:
    domains = world.scheduler.frontier.jobs[job].domains
    assert domains is not None
    return domains


async def begun(directory: Path, budget: int = 1, from_hosts: int = 0, **spec: object) -> World:
    world = await World(directory, web).start()
    world.crawl(SEED, scope=ANY, domains=DomainBudget(budget, from_hosts), **spec)  # type: ignore[arg-type]
    return world


async def test_a_farm_is_held_back_and_the_crawl_ends_without_it(tmp_path: Path) -> None:
    world = (await begun(tmp_path)).run()
    assert world.done
    good = {url for url in world.outcomes() if ".farm." not in url}
    assert len(good) == GOOD * PAGES
    domains = table(world)
    farm = domains.of("x1.farm.test")
    # A request of the farm counts twice where the host was not looked up before.
    assert FEW_HOSTS < farm_requests(world) <= farm.requests <= FLOOR + 2
    assert domains.is_over(farm)
    assert world.scheduler.frontier.jobs[JOB].queue.length >= len(domains.parked) > 0
    check(world.scheduler.dispatcher)


async def test_links_to_further_hosts_of_a_held_domain_take_no_memory(tmp_path: Path) -> None:
    world = (await begun(tmp_path)).run()
    frontier, domains = world.scheduler.frontier, table(world)
    assert domains.left_out > 0
    known = sum(frontier.store.name(number).endswith(".farm.test") for number in frontier.store.ids())
    assert known < FARM / 2
    assert len(domains.parked) >= LEAST_PARKED


async def test_robots_txt_counts_and_its_page_follows(tmp_path: Path) -> None:
    world = (await begun(tmp_path, robots=True)).run()
    assert world.done
    farm = [fetched.url for fetched in world.fetched if fetched.host.endswith(".farm.test")]
    robots = [url for url in farm if url.endswith("/robots.txt")]
    assert len(robots) == len(farm) - len(robots)
    # A look-up and a robots.txt of each host; pages of hosts that were prepared at the end come on top.
    assert FLOOR <= table(world).of("x1.farm.test").requests <= FLOOR + 3 * 100
    check(world.scheduler.dispatcher)


async def test_without_a_budget_the_whole_farm_is_crawled(tmp_path: Path) -> None:
    world = (await begun(tmp_path, budget=0)).run(100_000.0)
    assert world.scheduler.frontier.jobs[JOB].domains is None
    assert farm_requests(world) > FARM / 2


async def test_a_small_crawl_of_any_hosts_is_not_limited_and_a_site_has_no_table(tmp_path: Path) -> None:
    world = await World(tmp_path, web).start()
    world.crawl(SEED, scope=Scope(mode="any", max_depth=-1, max_pages=300))
    world.crawl(SEED, job="site", scope=Scope(max_depth=-1))
    world.run()
    assert farm_requests(world) > FLOOR
    assert world.scheduler.frontier.jobs["site"].domains is None
    assert list(world.scheduler.frontier.jobs.with_domains) == [JOB]


async def test_a_crawl_that_knows_many_hosts_is_limited_by_itself(tmp_path: Path) -> None:
    world = (await begun(tmp_path, from_hosts=1000, delay_s=0.2)).run(100_000.0)
    assert table(world).broad
    assert len({url for url in world.outcomes() if ".farm." not in url}) == GOOD * PAGES
    assert farm_requests(world) < FARM


async def test_another_job_is_fetched_from_held_hosts(tmp_path: Path) -> None:
    world = (await begun(tmp_path)).run()
    domains = table(world)
    host = world.scheduler.frontier.store.name(next(iter(domains.parked)))
    before = len(world.fetched)
    world.crawl(f"http://{host}/", job="other", scope=Scope(max_depth=0))
    world.run()
    assert [(fetched.job, fetched.host) for fetched in world.fetched[before:]] == [("other", host)]
    assert world.done
    check(world.scheduler.dispatcher)


async def test_a_larger_budget_continues_with_the_held_hosts(tmp_path: Path) -> None:
    world = (await begun(tmp_path)).run()
    first = farm_requests(world)
    held = [world.scheduler.frontier.store.name(number) for number in table(world).parked]
    world.crawl(scope=ANY, domains=DomainBudget(3, 0))
    world.run()
    assert farm_requests(world) > first
    world.crawl(scope=ANY, domains=DomainBudget(0))
    world.run(100_000.0)
    assert world.done
    assert set(held) <= {fetched.host for fetched in world.fetched}
    check(world.scheduler.dispatcher)


async def test_a_restart_has_the_same_table_and_ends_with_the_same_pages(tmp_path: Path) -> None:
    whole = (await begun(tmp_path / "whole")).run()
    halves = (await begun(tmp_path / "halves")).run(3.0)
    assert not halves.done
    halves.kill()
    shutil.copytree(tmp_path / "halves", tmp_path / "copy")
    copy = World(tmp_path / "copy", web, halves.clock)
    copy.scheduler.recover()
    states = list(table(halves).dump(JOB))
    assert any(state.requests for state in states)
    assert any(state.sources for state in states)
    assert list(table(copy).dump(JOB)) == states
    again = await World(tmp_path / "halves", web, halves.clock).start()
    again.rows = halves.rows
    again.run()
    assert again.done
    good = {url for url in again.outcomes() if ".farm." not in url}
    assert good == {url for url in whole.outcomes() if ".farm." not in url}
    assert table(again).of("x1.farm.test").requests <= FLOOR + 4
    check(again.scheduler.dispatcher)


async def test_links_between_domains_are_counted_once_however_often_they_are_found(tmp_path: Path) -> None:
    """Beside a count of all links of all pages, while the remembered pairs are forgotten time and again."""
    world = await begun(tmp_path, from_hosts=1000)
    domains, rng = table(world), random.Random(3)
    domains.linked_hosts = LinkedHosts(30)
    sources: dict[str, set[int]] = {}
    for _ in range(300):
        parent = f"http://p{rng.randrange(3)}.d{rng.randrange(12)}.test/"
        urls = [f"http://h{rng.randrange(4)}.d{rng.randrange(12)}.test/{rng.randrange(9)}" for _ in range(6)]
        links = outlinks(*dict.fromkeys(urls), job=JOB, parent_url=parent)
        assert count_links(world.scheduler.frontier, domains, links) is links
        own = domain_of(host_of(parent))
        for domain in {domain_of(host_of(url)) for url in urls} - {own}:
            sources.setdefault(domain, set()).add(hash_of(own))
    assert {name: set(domain.sources) for name, domain in domains.domains.items() if domain.sources} == sources
    assert min(map(len, sources.values())) > 6
    check(world.scheduler.dispatcher)
