"""Quotas over several schedulers: what is fetched beyond them, hand-over, kill, the next day."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Politeness, Quota, Scope
from nephila.kernel.messages import JobStatus, QuotaUse, Seed
from nephila.kernel.topics import JOB_STATUS, JOBS, SEEDS
from nephila.scheduler.tenants.quota_uses import quota_uses
from nephila_cluster.scheduler.jobs.job_view import JobView

from tests.cluster.scheduler.cluster_rig import Site, World
from tests.jobs import crawl_job

DAY = 86_400.0
HOSTS = 600
OVER = 14
"""Fetches beyond a quota of 150: less than a tenth."""


@pytest.fixture
def world(tmp_path):
    """Hosts of one page; a fetch takes four seconds, 16 at once in each partition. Midnight is in 100 s."""
    settings = {"concurrency": 4, "status_interval_s": 0.5, "tenants": ("news pages=60",)}
    world = World(tmp_path, Site({page(n): [] for n in range(HOSTS)}), took_s=4.0, **settings)
    world.clock.jump(DAY - world.clock.now() % DAY - 100.0)
    return world


def page(number: int) -> str:
    return f"http://h{number}.test/"


def submit(world: World, pages: range, name: str = "t", **spec: object) -> None:
    politeness = Politeness(delay="1s", respect_robots=False)
    scope = Scope(mode="any", max_depth=-1)
    world.outside.publish(JOBS, 0, crawl_job(name, name, 1, [], scope, politeness, **spec))
    for number in pages:
        world.outside.publish(SEEDS, world.partition(page(number)), Seed(name, page(number)))


def status_of(world: World, uid: str = "t") -> JobStatus:
    view = JobView(uid)
    for status in world.broker.all(JOB_STATUS, 0):
        if status.uid == uid:
            view.take_status(status)
    return view.status


async def test_a_quota_holds_in_all_partitions_and_a_killed_scheduler_does_not_lift_it(world):
    """Two schedulers; one is killed when the quota of 150 pages is used up, the other takes over and fetches nothing.
    The next day has 150 more."""
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    submit(world, range(HOSTS), quota=Quota(pages=150, per="day"))
    await world.run(40.0)
    first = len(world.rows)
    assert 150 <= first <= 150 + OVER
    assert "150 pages per day" in status_of(world).quota
    world.kill("b")
    await world.give("a", 2, 3)
    await world.run(30.0)
    assert len(world.rows) == first
    assert status_of(world).quota
    await world.run(90.0)
    assert first + 150 <= len(world.rows) <= first + 150 + OVER
    assert status_of(world).quota
    world.check()


async def test_a_tenant_is_used_up_by_two_jobs_together(world):
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    submit(world, range(150), "one", tenant="news")
    submit(world, range(150, 300), "two", tenant="news")
    submit(world, range(300, HOSTS), "free")
    await world.run(90.0)
    news = sum(row.job != "free" for row in world.rows.values())
    assert 60 <= news <= 60 + OVER
    assert sum(row.job == "free" for row in world.rows.values()) == HOSTS - 300
    for name in ("one", "two"):
        status = status_of(world, name)
        assert not status.queued or "tenant news" in status.quota


def test_the_sums_have_the_latest_period_and_each_partition_once():
    """Two jobs of a tenant report the same total of a partition; partition 2 has not reported since midnight."""
    news = "tenant:news"
    reported = [(0, DAY, 5), (1, DAY, 7), (0, DAY, 6), (2, 0.0, 9)]
    uses = [(number, [QuotaUse(news, since, pages)]) for number, since, pages in reported]
    found = quota_uses(uses, {3: [QuotaUse(news, DAY, 1)], 4: []})
    assert found == {3: {news: QuotaUse(news, DAY, 13)}, 4: {news: QuotaUse(news, DAY, 14)}}
