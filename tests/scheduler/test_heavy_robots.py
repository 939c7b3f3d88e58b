"""Hosts whose robots.txt is as large as it may be: what is kept of them is bounded, and all are obeyed."""

from __future__ import annotations

from nephila.kernel.messages import FetchKind
from nephila.scheduler.audit import check

from tests.scheduler.world import Answer, World

LONG = b"User-agent: *\nDisallow: /no\n" + b"Disallow: /x\n" * 800
HOSTS = 60


def hostile(request):
    """Every host has a long robots.txt."""
    return Answer(body=LONG) if request.kind is FetchKind.ROBOTS else Answer()


async def test_few_of_them_are_kept_as_objects(tmp_path):
    """Ten of sixty fit; no host is asked twice for its file, and each is obeyed."""
    world = await World(tmp_path, hostile, hot_robots_bytes=10 * len(LONG), concurrency=4).start()
    world.crawl(*(f"http://h{i}.test/{page}" for i in range(HOSTS) for page in ("no", "a", "b")), robots=True)
    most = 0
    while not world.done:
        world.clock.advance(0.1)
        most = max(most, world.scheduler.frontier.hosts.robots_bytes)
        check(world.scheduler.dispatcher)
    assert most <= 10 * len(LONG)
    assert sum(f.url.endswith("/robots.txt") for f in world.fetched) == HOSTS
    assert len(world.fetched) == 3 * HOSTS
    await world.scheduler.close()


async def test_what_the_host_store_keeps_of_them_goes_to_disk(tmp_path):
    """States that were written again and again lead to a snapshot, though the log has hardly grown."""
    world = await World(
        tmp_path, hostile, hot_hosts=2, hot_robots_bytes=len(LONG), segment_bytes=2 * HOSTS * len(LONG)
    ).start()
    world.crawl(*(f"http://h{i}.test/{page}" for i in range(HOSTS) for page in range(12)), robots=True)
    most = 0
    while not world.done:
        world.clock.advance(0.5)
        most = max(most, world.scheduler.frontier.hosts.written_bytes)
    assert world.scheduler.log.snapshots() != []
    assert most <= 4 * world.scheduler.config.segment_bytes + 8 * len(LONG)
    assert len(world.fetched) == 13 * HOSTS
    await world.scheduler.close()
