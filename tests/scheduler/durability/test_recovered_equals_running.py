"""A frontier that is read back equals the one that ran: jobs, queues, hosts, quotas, watched pages, counts."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import Politeness, Quota, Recrawl, Scope
from nephila.kernel.messages import FetchKind, FetchRequest, Outcome, Quarantine
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS
from nephila.native import parse_url
from nephila.scheduler.frontier.host_table import novelty_of

from tests.jobs import crawl_job
from tests.scheduler.durability.observed_state import in_flight, observed
from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World

HOSTS = [f"h{i}.test" for i in range(6)]
URLS = [f"http://{host}/{page}" for host in HOSTS for page in range(8)]
KEYS = [parse_url(url).fingerprint for url in URLS]


def web(request: FetchRequest) -> Answer:
    """Pages with links to other hosts, errors, refusals, redirects, robots.txt of each kind, and silence."""
    host, page = request.url.split("/")[2], request.url.rsplit("/", 1)[1]
    if request.kind is FetchKind.ROBOTS:
        known = {"h1.test": Answer(body=b"User-agent: *\nDisallow: /7\nCrawl-delay: 3"), "h2.test": Answer(status=503)}
        return known.get(host, Answer(status=404))
    number = int(page)
    rank = (HOSTS.index(host) * 8 + number) % 11
    if rank == 3:
        return Answer(status=503)
    if rank == 5:
        return Answer(status=429, retry_after_s=40.0)
    if rank == 7:
        return Answer(status=301, location=f"http://h5.test/{(number + 1) % 8}")
    if rank == 9 and request.attempt == 1:
        return Answer(silent=True)
    return Answer([f"http://{other}/{(number + 1) % 8}" for other in HOSTS] + [f"http://{host}/{(number + 2) % 8}"])


async def running(directory: Path, **config: object) -> World:
    """Four jobs over the same hosts: one with all that a job may have, one plain, one that will be deleted, one that
    holds links for a wider scope."""
    world = await World(
        directory,
        web,
        tenants={"library": {"share": 2.0, "pages": 1000, "per": "month"}},
        **config,
    ).start()
    world.crawl(
        *URLS[:3],
        robots=True,
        scope=Scope(mode="any", max_depth=-1, max_pages=40),
        recrawl=Recrawl(every="60s"),
        quota=Quota(pages=500, per="day"),
        tenant="library",
        host_budget=HostBudget(pages=9),
    )
    world.crawl(*URLS[8:10], job="plain", delay_s=0.3, scope=Scope(mode="any", max_depth=-1))
    world.crawl(URLS[20], job="gone", delay_s=0.5)
    world.crawl(URLS[26], job="narrow", delay_s=0.5, scope=Scope(max_depth=1))
    return world


async def copy(world: World, directory: Path, **config: object) -> World:
    """A new scheduler on a copy of the directory, at the same instant."""
    shutil.copytree(world.scheduler.config.directory, directory)
    clock = ManualClock(world.clock.now(), world.clock.monotonic())
    again = World(directory, web, clock, tenants={"library": {"share": 2.0, "pages": 1000, "per": "month"}}, **config)
    again.scheduler.recover()
    return again


def compare(world: World, again: World) -> None:
    """Every difference must be one that a restart makes on purpose: what was in flight is at the head of its queue, and
    its host waits for one delay."""
    config = world.scheduler.config
    before, after = (observed(w.scheduler.dispatcher, KEYS) for w in (world, again))
    flying = in_flight(world.scheduler.frontier)
    assert not in_flight(again.scheduler.frontier)
    robots = {host for (uid, _), (host, *_) in flying.items() if not uid}
    for uid, job in before["jobs"].items():
        found = after["jobs"][uid]
        mine = {url: row for (owner, url), row in flying.items() if owner == uid}
        stored = {key for key, state in job["watched"].items() if state["outcome"] is Outcome.STORED}
        keys = {parse_url(url).fingerprint for url in mine}
        limited = bool(spec_of(job["spec"]).scope.max_pages)
        ending = {parse_url(url).fingerprint for (owner, url), row in flying.items() if owner == uid and row[3]}
        assert found.pop("reserved") - ending == job.pop("reserved") | (keys & stored - ending if limited else set())
        assert found.pop("priority") - ending == job.pop("priority") | (keys - stored - ending), uid
        compare_queues(found.pop("queued"), job.pop("queued"), mine, config.tries)
        for part in job:
            assert found[part] == job[part], (uid, part)
    del before["jobs"], after["jobs"]
    for host, state in before["hosts"].items():
        found = after["hosts"].get(host, {**state, "not_before": None})
        if host in robots or any(row[0] == host for row in flying.values()):
            assert found.pop("not_before") is not None
            state.pop("not_before")
        assert found == state, host
    del before["hosts"], after["hosts"]
    assert after == before


def compare_queues(
    found: dict[str, Any], known: dict[str, Any], flying: dict[str, tuple[str, int, int, bool]], tries: int
) -> None:
    for host in found.keys() | known.keys():
        mine = {url: row for url, row in flying.items() if row[0] == host}
        queue = found.get(host, [])
        heads, rest = queue[: len(mine)], queue[len(mine) :]
        assert {url for url, *_ in heads} == set(mine), host
        for url, fetch_no, attempts, _ in heads:
            assert (fetch_no, attempts) == (mine[url][1], min(mine[url][2], tries - 1)), url
        assert rest == known.get(host, []), host


@pytest.mark.parametrize("segment_bytes", [1 << 26, 4000], ids=["log only", "with snapshots"])
@pytest.mark.parametrize("hot_hosts", [100, 1], ids=["hosts in memory", "hosts in the store"])
async def test_a_frontier_that_is_read_back_equals_the_one_that_ran(
    tmp_path: Path, segment_bytes: int, hot_hosts: int
) -> None:
    """At 16 instants of a crawl, from its start to the wait for the next recrawl; and once more from a snapshot of what
    was read back, which holds only what recovery has marked as changed."""
    config = {"segment_bytes": segment_bytes, "hot_hosts": hot_hosts, "tries": 3}
    world = await running(tmp_path / "run", **config)
    rng = random.Random(4)
    held: set[bytes] = set()
    for number in range(16):
        world.hold_receipts = number % 4 == 3
        if number == 4:
            quarantine(world, released=False)
        if number == 7:
            quarantine(world, released=True)
        if number == 9:
            world.bus.publish(
                JOBS, 0, crawl_job("gone", "gone", 9, [], Scope(max_depth=0), Politeness(delay="0"), deleted=True)
            )
            world.clock.run_due()
        if number == 12:
            world.crawl(job="plain", delay_s=0.4, scope=Scope(mode="any", exclude=["/6"], max_depth=3))
        for _ in range(rng.randrange(3, 25)):
            if world.clock.next_due is not None:
                world.clock.advance(max(0.0, world.clock.next_due - world.clock.monotonic()))
        # The log rounds instants: at the very instant of an event it may be over here and due there.
        world.clock.advance(0.001)
        check(world.scheduler.dispatcher)
        again = await copy(world, tmp_path / f"copy-{number}", **config)
        check(again.scheduler.dispatcher)
        compare(world, again)
        for job in again.scheduler.frontier.jobs.values():
            job.refused.held.lost = number
        again.scheduler.log.open()
        again.scheduler.snapshot()
        third = await copy(again, tmp_path / f"third-{number}", **config)
        known, found = (observed(w.scheduler.dispatcher, KEYS) for w in (again, third))
        assert found == known
        held |= {url_key for job in known["jobs"].values() for url_key in job["held"]}
        await third.scheduler.close()
        await again.scheduler.close()
        world.release(len(world.held))
    assert len(world.rows) > 40
    assert held
    assert max(fetched.fetch_no for fetched in world.fetched) >= 2, "no page was fetched again"
    await world.scheduler.close()


def quarantine(world: World, *, released: bool) -> None:
    """A directory of one host is closed, or opened again."""
    if released:
        assert world.scheduler.release("t", "h0.test", "/")
        return
    frontier = world.scheduler.frontier
    job, host = frontier.jobs["t"], frontier.hosts.get_or_create("h0.test")
    closed = Quarantine("t", "h0.test", "/", "nothing new", world.clock.now(), 9)
    novelty_of(host, job).restore(closed)
    frontier.note_quarantine(job, host, closed)
    host.changed = True
    world.scheduler.partition.wake()
    world.clock.run_due()
