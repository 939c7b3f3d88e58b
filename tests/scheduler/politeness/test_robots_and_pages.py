"""robots.txt is fetched when a page of its host is about to be, and that page follows before other hosts are begun."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import FetchKind, FetchResult

from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World

HOSTS = 600
SEEDS = [f"http://h{i}.test/" for i in range(HOSTS)]


def open_web(request):
    """Every host allows everything."""
    return Answer(body=b"User-agent: *\nDisallow: /no\n") if request.kind is FetchKind.ROBOTS else Answer()


def counts(world: World) -> tuple[int, int]:
    """Fetched robots.txt files and pages."""
    robots = sum(f.url.endswith("/robots.txt") for f in world.fetched)
    return robots, len(world.fetched) - robots


@pytest.mark.parametrize("delay_s", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("robots_ttl_s", [86_400.0, 0.5])
async def test_a_crawl_of_few_pages_fetches_few_robots(tmp_path, delay_s, robots_ttl_s):
    """600 hosts and 20 pages: one robots.txt per page, whatever the delay and however short robots.txt is valid."""
    world = await World(tmp_path, open_web, robots_ttl_s=robots_ttl_s).start()
    world.crawl(*SEEDS, scope=Scope(max_depth=-1, max_pages=20), robots=True, delay_s=delay_s)
    world.run()
    check(world.scheduler.dispatcher)
    assert counts(world) == (20, 20)
    await world.scheduler.close()


@pytest.mark.parametrize("robots_ttl_s", [86_400.0, 0.5])
@pytest.mark.parametrize("delay_s", [0.0, 1.0, 5.0])
async def test_pages_flow_from_the_first_delay(tmp_path, delay_s, robots_ttl_s):
    """With more hosts than time, pages are as many as robots.txt files, apart from those within one delay."""
    world = await World(tmp_path, open_web, robots_ttl_s=robots_ttl_s, concurrency=2).start()
    world.crawl(*SEEDS, robots=True, delay_s=delay_s)
    world.clock.advance(15.0)
    check(world.scheduler.dispatcher)
    robots, pages = counts(world)
    assert robots + pages > 250
    within_a_delay = 2 / 0.1 * delay_s + 4
    assert robots - pages <= within_a_delay
    await world.scheduler.close()


async def test_pages_go_first_on_one_address(tmp_path):
    """Hosts that wait for one server address: those with a robots.txt come before those without."""
    world = World(tmp_path, open_web, concurrency=4, robots_ttl_s=5.0)
    world.address_of = lambda host: "192.0.2.1"
    await world.start()
    world.crawl(*(f"{seed}{page}" for seed in SEEDS[:40] for page in "ab"), robots=True)
    world.run(10.0)
    begun = len(world.fetched)  # the address is known to all, and most robots.txt files have expired
    world.run(15.0)
    check(world.scheduler.dispatcher)
    later = [fetched.url.endswith("/robots.txt") for fetched in world.fetched[begun:]]
    assert len(later) > 50
    assert abs(later.count(False) - later.count(True)) <= 8
    await world.scheduler.close()


def dead_or_forbidden(request):
    """Of four hosts one is dead, one refuses robots.txt, one forbids all; the fourth has a page."""
    kind = int(request.host[1:].partition(".")[0]) % 4
    if kind == 0:
        return Answer(reason="connect", dialled=False)
    if request.kind is not FetchKind.ROBOTS:
        return Answer()
    return (Answer(), Answer(status=429), Answer(body=b"User-agent: *\nDisallow: /"), Answer(status=404))[kind]


async def test_hosts_without_a_page_hold_nobody_up(tmp_path):
    """Hosts that are dead, pause or forbid give their places in the page budget back."""
    world = await World(tmp_path, dead_or_forbidden).start()
    world.crawl(*SEEDS[:200], scope=Scope(max_depth=-1, max_pages=50), robots=True)
    world.run(300.0)
    check(world.scheduler.dispatcher)
    ends = list(world.outcomes().values())
    assert ends.count("stored") == 50
    await world.scheduler.close()


async def test_a_robots_that_never_comes_frees_its_place(tmp_path):
    """A robots.txt whose lease ends, or that the downloader gives back, counts no longer as a page to come."""

    def silent(request):
        if request.kind is FetchKind.ROBOTS and request.host in ("h0.test", "h1.test"):
            return Answer(silent=True)
        if request.kind is FetchKind.ROBOTS and request.host == "h2.test":
            return Answer(result=FetchResult.UNSPECIFIED, reason="busy", dialled=False)
        return open_web(request)

    world = await World(tmp_path, silent, start_by_s=5.0, lease_s=5.0).start()
    world.crawl(*SEEDS[:20], scope=Scope(max_depth=-1, max_pages=2), robots=True)
    world.run(400.0)
    check(world.scheduler.dispatcher)
    assert list(world.outcomes().values()).count("stored") == 2
    await world.scheduler.close()


async def test_one_job_does_not_hold_the_other_up(tmp_path):
    """Two jobs share hosts; the first is paused while its robots.txt files come. The second ends."""
    world = await World(tmp_path, open_web).start()
    scope = Scope(max_depth=-1, max_pages=10)
    world.crawl(*SEEDS[:50], scope=scope, robots=True)
    world.clock.advance(0.15)
    world.crawl(scope=scope, robots=True, paused=True)
    world.crawl(*(seed + "b" for seed in SEEDS[:50]), scope=scope, robots=True, job="other")
    world.run(200.0)
    check(world.scheduler.dispatcher)
    stored = [row for row in world.rows.values() if row.job == "other"]
    assert len(stored) == 10
    world.crawl(scope=scope, robots=True)
    world.run(200.0)
    check(world.scheduler.dispatcher)
    assert list(world.outcomes().values()).count("stored") >= 10
    await world.scheduler.close()
