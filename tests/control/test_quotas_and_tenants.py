"""Jobs with quotas in one frontier: what they fetch, when they are held, what a restart keeps, shares of tenants."""

from __future__ import annotations

from collections import Counter

from nephila.kernel.documents.job_schema import Quota
from nephila_control import job_view

from tests.scheduler.invariants import check
from tests.scheduler.world import World, site

DAY = 86_400.0


def hosts(name: str, count: int) -> dict[str, list[str]]:
    """Pages of one host each."""
    return {f"http://{name}{i}.test/": [] for i in range(count)}


def fetched(world: World) -> Counter[str]:
    return Counter(one.job for one in world.fetched)


def state(world: World, job: str):
    return job_view.job(world.scheduler, job)


async def test_a_job_waits_for_the_next_day_when_its_quota_is_used_up(tmp_path):
    """Every page is fetched once. A day has at most the quota and what was in flight when it was used up."""
    pages = hosts("h", 25)
    world = await World(tmp_path, site(pages), concurrency=2).start()
    world.crawl(*pages, quota=Quota(pages=10, per="day"))
    world.run(100.0)
    assert 10 <= fetched(world)["t"] <= 11
    held = state(world, "t")
    assert (held.state, held.in_flight) == ("quota", 0)
    assert held.quota.startswith("the quota of the job t, 10 pages per day, is used up, until ")
    check(world.scheduler.dispatcher)
    world.run(4 * DAY)
    assert world.done
    assert Counter(one.url for one in world.fetched) == Counter(dict.fromkeys(pages, 1))
    offset = world.clock.now() - world.clock.monotonic()
    days = Counter(int((one.start + offset + 0.01) // DAY) for one in world.fetched)
    assert max(days.values()) <= 11
    assert len(days) == 3
    assert state(world, "t").state == "idle"
    await world.scheduler.close()


async def test_a_quota_is_exceeded_by_less_than_a_tenth(tmp_path):
    """Forty slots and a quota of fifty pages of two jobs of a site: the last fetches are begun one by one."""
    pages = hosts("a", 100) | hosts("b", 100)
    world = await World(tmp_path, site(pages), concurrency=40).start()
    quota = Quota(pages=50, per="day")
    world.crawl(*hosts("a", 100), job="a", site="s", site_quota=quota)
    world.crawl(*hosts("b", 100), job="b", site="s", site_quota=quota)
    world.run(100.0)
    assert 50 <= sum(fetched(world).values()) < 55
    assert {state(world, name).state for name in ("a", "b")} == {"quota"}
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


async def test_a_restart_counts_on_and_a_used_up_tenant_stays_held(tmp_path):
    """The tenant `news` is used up in two jobs; after a kill nothing of it is fetched, and the other tenant goes on."""
    pages = hosts("a", 10) | hosts("b", 10) | hosts("o", 10)
    settings = {"tenants": ("news pages=6 per=day", "other"), "concurrency": 1}
    world = await World(tmp_path, site(pages), **settings).start()
    world.crawl(*hosts("a", 10), job="a", tenant="news")
    world.crawl(*hosts("b", 10), job="b", tenant="news")
    world.run(20.0)
    assert fetched(world)["a"] + fetched(world)["b"] == 6
    world.kill()
    again = await World(tmp_path, site(pages), world.clock, **settings).start()
    again.crawl(*hosts("o", 10), job="o", tenant="other")
    again.run(100.0)
    assert fetched(again) == {"o": 10}
    assert {state(again, name).state for name in ("a", "b")} == {"quota"}
    assert state(again, "o").state == "idle"
    again.run(3 * DAY)
    check(again.scheduler.dispatcher)
    assert fetched(again)["a"] + fetched(again)["b"] == 14
    await again.scheduler.close()


async def test_totals_are_in_the_snapshot(tmp_path):
    """The log is replaced by a snapshot, and the quota stays used up."""
    pages = hosts("a", 8)
    world = await World(tmp_path, site(pages), concurrency=1).start()
    world.crawl(*pages, quota=Quota(pages=5, per="month"))
    world.run(20.0)
    world.scheduler.snapshot()
    world.kill()
    again = await World(tmp_path, site(pages), world.clock, concurrency=1).start()
    again.run(100.0)
    assert not again.fetched
    assert state(again, "t").state == "quota"
    await again.scheduler.close()


async def test_a_larger_quota_releases_the_job_and_a_quota_of_a_run_keeps_the_queue(tmp_path):
    pages = hosts("a", 8)
    world = await World(tmp_path, site(pages), concurrency=1).start()
    world.crawl(*pages, quota=Quota(pages=3))
    world.run(3 * DAY)
    assert fetched(world)["t"] == 3
    held = state(world, "t")
    assert (held.state, held.queued, held.quota) == ("quota", 5, "the quota of the job t, 3 pages per run, is used up")
    world.crawl(quota=Quota(pages=6))
    world.run(100.0)
    assert fetched(world)["t"] == 6
    world.crawl()
    world.run(100.0)
    assert fetched(world)["t"] == 8
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


async def test_a_used_up_job_does_not_hold_up_another_on_the_same_hosts(tmp_path):
    pages = hosts("a", 6)
    world = await World(tmp_path, site(pages), concurrency=1).start()
    world.crawl(*pages, job="one", quota=Quota(pages=2, per="day"))
    world.crawl(*pages, job="two")
    world.run(100.0)
    assert fetched(world) == {"one": 2, "two": 6}
    await world.scheduler.close()


async def test_the_share_of_a_tenant_is_divided_among_its_jobs(tmp_path):
    """Two tenants, one with three jobs and one with one, and a job without a tenant: a third each."""
    names = ("a1", "a2", "a3", "b", "n")
    pages = {page: [] for name in names for page in hosts(name + "-", 60)}
    world = await World(tmp_path, site(pages), concurrency=1).start()
    for name in names:
        tenant = {"b": "beta", "n": ""}.get(name, "alpha")
        world.crawl(*hosts(name + "-", 60), job=name, tenant=tenant)
    world.run(9.0)
    found = fetched(world)
    assert abs(found["b"] - found["n"]) <= 2
    assert abs(found["a1"] + found["a2"] + found["a3"] - found["b"]) <= 2
    assert max(found[name] for name in ("a1", "a2", "a3")) - min(found[name] for name in ("a1", "a2", "a3")) <= 1
    await world.scheduler.close()


async def test_the_settings_give_a_tenant_a_larger_share(tmp_path):
    pages = hosts("a", 60) | hosts("b", 60)
    world = await World(tmp_path, site(pages), concurrency=1, tenants=("alpha share=3",)).start()
    world.crawl(*hosts("a", 60), job="a", tenant="alpha")
    world.crawl(*hosts("b", 60), job="b", tenant="beta")
    world.run(6.0)
    found = fetched(world)
    assert abs(found["a"] - 3 * found["b"]) <= 4
    await world.scheduler.close()
