"""Hosts whose robots.txt is as large as it may be: what is kept of them is bounded, and all are obeyed."""

from __future__ import annotations

from nephila.kernel.messages import FetchKind
from nephila.native import IMPLEMENTATION
from nephila.scheduler.politeness.robots_cache import RobotsCache

from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World

LONG = b"User-agent: *\nDisallow: /no\n" + b"Disallow: /x\n" * 80
HOSTS = 30


def hostile(request):
    """Every host has a long robots.txt of its own."""
    return Answer(body=LONG + b"# " + request.url.encode()) if request.kind is FetchKind.ROBOTS else Answer()


def shared(request):
    """Every host has the same long robots.txt."""
    return Answer(body=LONG) if request.kind is FetchKind.ROBOTS else Answer()


async def test_few_of_them_are_kept_as_objects(tmp_path):
    """Ten of thirty fit; no host is asked twice for its file, and each is obeyed."""
    limit = 10 * len(LONG)
    world = await World(tmp_path, hostile, hot_robots_bytes=limit, concurrency=4).start()
    world.crawl(*(f"http://h{i}.test/{page}" for i in range(HOSTS) for page in ("no", "a", "b")), robots=True)
    most = 0
    while not world.done:
        world.clock.advance(0.5)
        most = max(most, world.scheduler.frontier.hosts.robots.size_bytes)
        check(world.scheduler.dispatcher)
    assert limit / 4 < most <= limit
    assert sum(f.url.endswith("/robots.txt") for f in world.fetched) == HOSTS
    assert len(world.fetched) == 3 * HOSTS
    await world.scheduler.close()


async def test_one_file_of_many_hosts_is_held_once(tmp_path):
    """A farm of hosts with one robots.txt takes the memory of one; each host is obeyed, also after a restart."""
    world = await World(tmp_path, shared, concurrency=4).start()
    pages = [f"http://h{i}.test/{page}" for i in range(HOSTS) for page in ("no", "a")]
    world.crawl(*pages, robots=True)
    world.run()
    hosts = world.scheduler.frontier.hosts
    check(world.scheduler.dispatcher)
    assert len(hosts.robots) == 1
    assert hosts.robots.size_bytes == hosts.get(0).robots["http://h0.test"].rules.size_bytes
    assert sum(end == "denied(robots)" for end in world.outcomes().values()) == HOSTS
    await world.scheduler.close()


def test_a_file_is_dropped_with_its_last_host():
    """Sizes are those of the files in use, each counted once."""
    cache = RobotsCache("nephila")
    first, again, other = cache.take(LONG), cache.take(bytes(bytearray(LONG))), cache.take(b"")
    assert first is again
    cache.check([first, again, other])
    cache.release(first)
    assert len(cache) == 2
    cache.release(again)
    cache.check([other])
    cache.release(other)
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_what_a_hostile_file_takes_is_bounded():
    """26,000 rules, 64 KB on the wire: some 30 bytes a rule beside its pattern, and the body compressed."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%07d\n" % number for number in range(26_000))
    cache = RobotsCache("nephila")
    robots = cache.take(body)
    assert not robots.allowed("nephila", "/0012345/x")
    assert robots.allowed("nephila", "/9912345/x")
    if IMPLEMENTATION == "rust":
        assert cache.size_bytes < 2 * len(body)
    assert robots.body == body


async def test_a_host_with_many_rules_does_not_hold_up_the_others(tmp_path):
    """Of a host that forbids all with thousands of rules a few are answered in a turn, then the loop goes on."""
    long = b"User-agent: *\n" + b"".join(b"Disallow: /x*y%d\n" % n for n in range(20_000)) + b"Disallow: /\n"

    def web(request):
        return Answer(body=long if "h0" in request.url else b"") if request.kind is FetchKind.ROBOTS else Answer()

    world = await World(tmp_path, web, concurrency=4).start()
    world.crawl("http://h0.test/", robots=True)
    world.run()
    world.crawl(*(f"http://h0.test/{'x' * 400}{i}" for i in range(30)), robots=True)
    dispatch, most = world.scheduler.dispatcher.dispatch, 0

    def watched(now, out):
        nonlocal most
        dispatch(now, out)
        most = max(most, len(out.records))

    world.scheduler.dispatcher.dispatch = watched
    world.crawl(*(f"http://h0.test/{'y' * 400}{i}" for i in range(30)), robots=True)
    world.crawl(f"http://h0.test/{'z' * 1000}", robots=True)
    world.run()
    check(world.scheduler.dispatcher)
    assert 0 < most <= 10
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
