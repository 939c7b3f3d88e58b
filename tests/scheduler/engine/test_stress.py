"""Random operations on a whole frontier: whatever happens in whatever order, nothing is lost, doubled or miscounted."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import FetchKind, FetchRequest, FetchResult
from nephila.kernel.runtime.clock import ManualClock

from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World

HOSTS = [f"h{i}.test" for i in range(7)]
PAGES = 8
DELAY_S = 2.0
ROBOTS = [
    Answer(body=b""),
    Answer(body=b"User-agent: *\nCrawl-delay: 5\nDisallow: /3"),
    Answer(body=b"User-agent: *\nDisallow: /"),
    Answer(status=404),
    Answer(status=500),
    Answer(status=429),
    Answer(reason="dns"),
    Answer(reason="timeout"),
    Answer(result=FetchResult.UNSPECIFIED),
    Answer(status=503, retry_after_s=40),
    Answer(silent=True),
]


class Chaos:
    """A web that answers at random, the same way for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def url(self) -> str:
        scheme = self.rng.choice(["http", "https"])
        return f"{scheme}://{self.rng.choice(HOSTS)}/{self.rng.randrange(PAGES)}"

    def __call__(self, request: FetchRequest) -> Answer:
        answer = self._robots() if request.kind is FetchKind.ROBOTS else self._page(request)
        answer.took_s = self.rng.random() * 3
        return answer

    def _robots(self) -> Answer:
        known = ROBOTS[self.rng.choice([0, 0, 1, 1, 3, *range(len(ROBOTS))])]
        return Answer(
            status=known.status,
            reason=known.reason,
            body=known.body,
            result=known.result,
            retry_after_s=known.retry_after_s,
            silent=known.silent,
        )

    def _page(self, request: FetchRequest) -> Answer:
        dice = self.rng.random()
        if dice < 0.45:
            return Answer(links=[self.url() for _ in range(self.rng.randrange(6))])
        if dice < 0.55:
            return Answer(status=302, location=self.rng.choice([self.url(), request.url, "mailto:x@y"]))
        if dice < 0.65:
            return Answer(status=self.rng.choice([404, 500, 429]))
        if dice < 0.70:
            return Answer(status=503, retry_after_s=self.rng.random() * 100)
        if dice < 0.78:
            return Answer(reason=self.rng.choice(["timeout", "dns", "connect", "too_large"]))
        if dice < 0.86:
            return Answer(result=self.rng.choice([FetchResult.UNSPECIFIED, FetchResult.EXPIRED]))
        if dice < 0.92:
            return Answer(result=self.rng.choice([FetchResult.DENIED, FetchResult.CONTENT_TYPE]), reason="address")
        if dice < 0.96:
            return Answer(silent=True)
        return Answer()


def step(world: World, rng: random.Random, jumps: tuple[float, ...]) -> None:
    """One thing happens: time passes, receipts come, a clock jumps, the job is sent again."""
    dice = rng.random()
    if dice < 0.75:
        due = world.clock.next_due
        if due is not None:
            world.clock.advance(max(0.0, due - world.clock.monotonic()))
    elif dice < 0.85:
        world.clock.advance(rng.random() * 20)
    elif dice < 0.90:
        world.hold_receipts = not world.hold_receipts
    elif dice < 0.97:
        world.release(rng.randrange(5))
    else:
        world.clock.jump(rng.choice(jumps))


def check_manners(world: World) -> None:
    """No two fetches of one host overlap, and its delay lies between them, restarts included."""
    for host in HOSTS:
        mine = sorted((f for f in world.fetched if f.host == host), key=lambda f: f.start)
        for before, after in itertools.pairwise(mine):
            assert after.start - before.end >= DELAY_S - 1e-6, f"{before} {after}"


@pytest.mark.parametrize("crashes", [0, 12], ids=["one run", "twelve kills"])
@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_nothing_is_lost(tmp_path: Path, seed: int, crashes: int) -> None:
    """Invariants hold after every step, manners towards every host, and each URL seen ends in one row."""
    rng = random.Random(seed)
    settings: dict[str, object] = {
        "window": 9,
        "concurrency": 5,
        "segment_bytes": rng.choice([4_000, 1 << 26]),
        "robots_ttl_s": 300.0,
        "robots_retry_s": 100.0,
    }
    # A clock set forward between two runs may free a host early; within a run, or set back, it may not.
    jumps = (-7200.0,) if crashes else (-7200.0, 7200.0)
    scope = Scope(mode="any", max_depth=-1)
    web = Chaos(seed)
    world = await World(tmp_path, web, **settings).start()
    world.crawl(*(web.url() for _ in range(4)), scope=scope, delay_s=DELAY_S, robots=True)
    fetched = []
    for _ in range(crashes):
        for _ in range(rng.randrange(60)):
            step(world, rng, jumps)
            check(world.scheduler.dispatcher)
        world.kill()
        fetched += world.fetched
        clock = ManualClock(world.clock.now(), world.clock.monotonic())
        rows = world.rows
        world = await World(tmp_path, web, clock, **settings).start()
        world.rows = rows | world.rows
        check(world.scheduler.dispatcher)
    for _ in range(5_000):
        if world.done and not world.held:
            break
        step(world, rng, jumps)
        check(world.scheduler.dispatcher)
    assert world.done
    job = world.scheduler.frontier.jobs["t"]
    assert sum(job.counts.ended.values()) == len(job.seen) == len(world.rows)
    world.fetched += fetched
    check_manners(world)
    await world.scheduler.close()
