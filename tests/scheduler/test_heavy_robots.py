"""Hosts whose robots.txt is as large as it may be: what is kept of them is bounded, and all are obeyed."""

from __future__ import annotations

from nephila.kernel.messages import FetchKind
from nephila.scheduler.audit import check

from tests.scheduler.world import Answer, World

LONG = b"User-agent: *\nDisallow: /no\n" + b"Disallow: /x\n" * 80
HOSTS = 30


def hostile(request):
    """Every host has a long robots.txt."""
    return Answer(body=LONG) if request.kind is FetchKind.ROBOTS else Answer()


async def test_few_of_them_are_kept_as_objects(tmp_path):
    """Ten of thirty fit; no host is asked twice for its file, and each is obeyed."""
    world = await World(tmp_path, hostile, hot_robots_bytes=10 * len(LONG), concurrency=4).start()
    world.crawl(*(f"http://h{i}.test/{page}" for i in range(HOSTS) for page in ("no", "a", "b")), robots=True)
    most = 0
    while not world.done:
        world.clock.advance(0.5)
        most = max(most, world.scheduler.frontier.hosts.robots_bytes)
        check(world.scheduler.dispatcher)
    assert most <= 10 * len(LONG)
    assert sum(f.url.endswith("/robots.txt") for f in world.fetched) == HOSTS
    assert len(world.fetched) == 3 * HOSTS
    await world.scheduler.close()


async def test_a_host_with_many_rules_does_not_hold_up_the_others(tmp_path):
    """Of a host that forbids all with thousands of rules a few are answered in a turn, then the loop goes on."""
    long = b"User-agent: *\n" + b"Disallow: /x*y\n" * 20_000 + b"Disallow: /\n"

    def web(request):
        return Answer(body=long if "h0" in request.url else b"") if request.kind is FetchKind.ROBOTS else Answer()

    world = await World(tmp_path, web, concurrency=4).start()
    world.crawl("http://h0.test/", robots=True)
    world.run()
    world.crawl(*(f"http://h0.test/{'x' * 80}{i}" for i in range(30)), robots=True)
    dispatch, most = world.scheduler.dispatcher.dispatch, 0

    def watched(now, out):
        nonlocal most
        dispatch(now, out)
        most = max(most, len(out.records))

    world.scheduler.dispatcher.dispatch = watched
    world.crawl(*(f"http://h0.test/{'y' * 80}{i}" for i in range(30)), robots=True)
    world.crawl(f"http://h0.test/{'z' * 1000}", robots=True)
    world.run()
    check(world.scheduler.dispatcher)
    assert 0 < most <= 8
    assert len(world.rows) == 62
    assert set(world.outcomes().values()) == {"denied(robots)"}
    await world.scheduler.close()


async def test_what_the_host_store_keeps_of_them_goes_to_disk(tmp_path):
    """States that were written again and again lead to a snapshot, though the log has hardly grown."""
    world = await World(
        tmp_path, hostile, hot_hosts=2, hot_robots_bytes=len(LONG), segment_bytes=2 * HOSTS * len(LONG)
    ).start()
    world.crawl(*(f"http://h{i}.test/{page}" for i in range(HOSTS) for page in range(6)), robots=True)
    most = 0
    while not world.done:
        world.clock.advance(0.5)
        most = max(most, world.scheduler.frontier.hosts.written_bytes)
    assert world.scheduler.log.snapshots() != []
    assert most <= 4 * world.scheduler.config.segment_bytes + 8 * len(LONG)
    assert len(world.fetched) == 7 * HOSTS
    await world.scheduler.close()
