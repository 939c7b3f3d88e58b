"""Several jobs in one frontier: each has its own URLs, order and budget, all share the pace of a host."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_schema import Politeness, Recrawl, Scope
from nephila.kernel.messages import CrawlJob, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, SEEDS
from nephila.scheduler.engine import dispatch

from tests.jobs import changed, crawl_job
from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World, site

HOST = {f"/{i}": [f"/{j}" for j in range(12)] for i in range(12)}


def fetched_by(world: World, job: str) -> list[str]:
    """URLs in the order in which a job fetched them."""
    return [f.url for f in world.fetched if f.job == job]


def one_pace(world: World, delay_s: float) -> None:
    """No two fetches of a host lie closer together than its delay, whoever asked for them."""
    for host in {f.host for f in world.fetched}:
        mine = sorted((f for f in world.fetched if f.host == host), key=lambda f: f.start)
        for before, after in itertools.pairwise(mine):
            assert after.start - before.end >= delay_s - 1e-6


async def test_two_jobs_on_the_same_host_have_all_their_rows_and_one_pace(tmp_path):
    """Both crawl all twelve pages, in turns, and the server sees one pace."""
    world = await World(tmp_path, site(HOST)).start()
    world.crawl("http://a.test/0", job="one")
    world.crawl("http://a.test/0", job="two")
    world.run()
    check(world.scheduler.dispatcher)
    assert world.done
    for job in ("one", "two"):
        assert sorted(fetched_by(world, job)) == sorted(f"http://a.test/{i}" for i in range(12))
    turns = [f.job for f in world.fetched]
    assert max(len(list(group)) for _, group in itertools.groupby(turns)) <= 2
    one_pace(world, 1.0)
    await world.scheduler.close()


async def test_a_job_with_many_hosts_does_not_hold_up_one_with_few(tmp_path):
    """Among ready hosts the job is chosen first: two of the first four fetches are for the small job."""
    pages = {f"http://h{i}.test/": [] for i in range(300)} | {f"http://s{i}.test/": [] for i in range(3)}
    world = await World(tmp_path, site(pages), concurrency=2).start()
    world.crawl(*(f"http://h{i}.test/" for i in range(300)), job="big")
    world.crawl(*(f"http://s{i}.test/" for i in range(3)), job="small")
    world.run()
    assert max(i for i, f in enumerate(world.fetched) if f.job == "small") < 12
    assert len(world.fetched) == 303
    await world.scheduler.close()


@pytest.mark.parametrize("paused", [True, False])
async def test_a_job_is_not_behind_all_that_is_ready_for_another(tmp_path, monkeypatch, paused):
    """As many hosts are ready for one job as are kept, and more wait: another still has its share at once, and all of
    it when the first is paused."""
    monkeypatch.setattr(dispatch, "READY_MAX", 50)
    pages = {f"http://h{i}.test/": [] for i in range(300)} | {f"http://s{i}.test/": [] for i in range(3)}
    world = await World(tmp_path, site(pages), concurrency=2).start()
    world.crawl(*(f"http://h{i}.test/" for i in range(300)), job="big")
    world.run(1.0)
    if paused:
        world.crawl(job="big", paused=True)
    before = len(world.fetched)
    world.crawl(*(f"http://s{i}.test/" for i in range(3)), job="small")
    world.run(1.0)
    assert max(i for i, f in enumerate(world.fetched) if f.job == "small") < before + 12
    assert len(fetched_by(world, "small")) == 3
    await world.scheduler.close()


async def test_a_job_that_wants_one_fetch_at_a_time_has_it_beside_one_that_wants_more(tmp_path):
    """Of several jobs on a host the most careful one says how many fetches there are at once, as with the delay."""
    pages = [f"http://a.test/{i}" for i in range(8)]
    world = await World(tmp_path, lambda request: Answer(took_s=3.0), per_address=0).start()
    world.crawl(*pages, job="one", paused=True)
    world.bus.publish(
        JOBS,
        0,
        crawl_job(
            "two",
            "two",
            1,
            [],
            Scope(max_depth=-1),
            Politeness(delay="1s", concurrency_per_host=4, respect_robots=False),
        ),
    )
    for page in pages[:5]:
        world.bus.publish(SEEDS, 0, Seed("two", page))
    world.crawl(job="one")
    world.clock.advance(4.0)
    most = 0
    while not world.done:
        world.clock.advance(0.5)
        if any(f.job == "one" for f in world.under_way):
            most = max(most, len(world.under_way))
    assert most == 1
    assert (len(fetched_by(world, "one")), len(fetched_by(world, "two"))) == (8, 5)
    await world.scheduler.close()


async def test_two_jobs_on_one_busy_address_have_equal_shares(tmp_path):
    """A host that waits for its server address is chosen for one job and served for another: only the fetch counts."""
    pages = [f"http://a.test/{i}" for i in range(100)]
    world = await World(tmp_path, site({page: [] for page in pages})).start()
    world.crawl(*pages, job="one", delay_s=0.05)
    world.crawl(*pages, job="two", delay_s=0.05)
    world.run(20.0)
    counts = [len(fetched_by(world, job)) for job in ("one", "two")]
    assert min(counts) > 20
    assert max(counts) - min(counts) <= 2
    await world.scheduler.close()


async def test_weights_are_shares(tmp_path):
    """A job of weight 3 gets three fetches for one of weight 1 as long as both have work."""
    pages = {f"http://h{i}.test/": [] for i in range(400)}
    world = await World(tmp_path, site(pages), concurrency=4).start()
    world.crawl(*pages, job="three", weight=3.0)
    world.crawl(*pages, job="one", weight=1.0)
    world.run()
    first = [f.job for f in world.fetched[8:200]]
    assert 2.5 <= first.count("three") / first.count("one") <= 3.5
    await world.scheduler.close()


async def test_a_paused_job_fetches_nothing_until_it_is_resumed(tmp_path):
    """Pause applies to what is queued; the other job goes on; a restart keeps it paused."""
    world = await World(tmp_path, site(HOST)).start()
    world.crawl("http://a.test/0", job="one")
    world.crawl("http://a.test/0", job="two")
    world.run(8.0)
    world.crawl(job="one", paused=True)
    world.run(2.0)
    before = len(fetched_by(world, "one"))
    world.run(100.0)
    assert len(fetched_by(world, "one")) == before < 12
    assert len(fetched_by(world, "two")) == 12
    check(world.scheduler.dispatcher)
    await world.scheduler.close()
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), world.clock.monotonic())).start()
    again.run(50.0)
    assert again.fetched == []
    again.crawl(job="one")
    again.run()
    assert again.done
    assert before + len(again.fetched) == 12
    check(again.scheduler.dispatcher)
    await again.scheduler.close()


@pytest.mark.parametrize("deleted", [False, True], ids=["paused", "deleted"])
async def test_a_resumed_job_is_not_behind_hosts_that_another_left_ready(tmp_path, deleted):
    """Hosts were ready for one job alone when it was stopped: the other, resumed since, has all of them."""
    pages = {f"http://h{i}.test/{j}": [] for i in range(20) for j in range(2)}
    world = await World(tmp_path, site(pages), concurrency=1).start()
    world.crawl(*pages, job="one", paused=True)
    world.crawl(*pages, job="two")
    world.run(1.0)
    world.crawl(job="two", paused=True, deleted=deleted)
    world.crawl(job="one")
    world.run(1000.0)
    check(world.scheduler.dispatcher)
    assert sorted(fetched_by(world, "one")) == sorted(pages)
    await world.scheduler.close()


async def test_a_host_that_a_budget_keeps_from_one_job_is_not_lost_to_another(tmp_path):
    """The last place of a page budget is kept for a page that is due again on a host that rests for long: the other
    hosts, where that job may take nothing, go on for the other job."""
    held = "http://a.test/"
    others = [f"http://b.test/{i}" for i in range(1000)]
    world = await World(tmp_path, site({url: [] for url in (held, *others)})).start()
    world.crawl(held, *others[:2], job="one", scope=Scope(max_depth=-1, max_pages=1), recrawl=Recrawl(every="600s"))
    world.clock.advance(10.0)
    assert fetched_by(world, "one") == [held]
    world.crawl(*others, job="two")
    world.scheduler.frontier.hosts.get_or_create("a.test").pace.after_fetch(world.clock.monotonic(), 50_000.0)
    world.clock.advance(2000.0)
    check(world.scheduler.dispatcher)
    assert len(fetched_by(world, "two")) == 1000
    world.clock.advance(50_000.0)
    assert fetched_by(world, "one")[:2] == [held, held]
    await world.scheduler.close()


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
async def test_a_deleted_job_leaves_nothing_behind(tmp_path, restart):
    """Its queue and seen URLs go; what is being fetched still frees its host; one of the same name starts afresh."""
    world = await World(tmp_path, site(HOST)).start()
    world.crawl("http://a.test/0", job="one")
    while len(world.fetched) < 3 or not len(world.scheduler.frontier.in_flight.leases):
        world.clock.advance(0.05)
    world.crawl(job="one", deleted=True)
    check(world.scheduler.dispatcher)
    assert world.scheduler.frontier.jobs == {}
    if restart:
        world.kill()
        await world.scheduler.close()
        before = world
        world = await World(tmp_path, before.web, ManualClock(before.clock.now(), before.clock.monotonic())).start()
        world.fetched = before.fetched
        assert world.scheduler.frontier.jobs == {}
    count = len(world.fetched)
    world.crawl("http://a.test/0", job="one")
    check(world.scheduler.dispatcher)
    world.run()
    check(world.scheduler.dispatcher)
    assert sorted(f.url for f in world.fetched[count:]) == sorted(f"http://a.test/{i}" for i in range(12))
    if not restart:
        one_pace(world, 1.0)
    await world.scheduler.close()


async def test_the_files_of_a_deleted_job_go_with_the_next_snapshot(tmp_path):
    """Those of its seen URLs and of its queue; the other job keeps its own."""
    urls = [f"http://h{i}.test/{j}" for i in range(9) for j in range(9)]
    world = await World(tmp_path, site({url: [] for url in urls})).start()
    world.crawl(*urls, job="one")
    world.crawl(*urls, job="two")
    world.scheduler.snapshot()
    assert len(list(tmp_path.glob("seen-*.run"))) == 2
    world.crawl(job="one", deleted=True)
    world.scheduler.snapshot()
    assert [path.name.split("-")[1] for path in tmp_path.glob("seen-*.run")] == ["00001"]
    world.run()
    assert len(fetched_by(world, "two")) == 81
    await world.scheduler.close()


async def test_a_job_deleted_and_made_anew_in_one_turn(tmp_path):
    """What the first had admitted in that turn is not in the log of the second."""
    world = await World(tmp_path, site(HOST)).start()
    old, new = crawl_job("t", "t", 1, scope=Scope(max_depth=0)), crawl_job("t", "t", 1, scope=Scope(max_depth=0))
    gone = CrawlJob("t", "t", 2, deleted=True)
    for job, seeds in ((old, ["http://a.test/1", "http://b.test/1"]), (gone, []), (new, ["http://a.test/2"])):
        world.bus.publish(JOBS, 0, job)
        for seed in seeds:
            world.bus.publish(SEEDS, 0, Seed("t", seed))
    world.clock.run_due()
    check(world.scheduler.dispatcher)
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0)).start()
    for scheduler in (world.scheduler, again.scheduler):
        assert len(scheduler.frontier.jobs["t"].seen) == 1
    assert again.scheduler.frontier.jobs["t"].scope.anchors == {"a.test"}
    check(again.scheduler.dispatcher)
    await again.scheduler.close()


async def test_what_a_deleted_job_spent_is_not_charged_to_one_of_its_name(tmp_path):
    """Its hosts may be bytes in the store when it is deleted, and its budgets and quarantines in them."""
    pages = {f"http://h{i}.test/{j}": [] for i in range(8) for j in range(4)}
    world = await World(tmp_path, site(pages), hot_hosts=1).start()
    world.crawl(*pages, host_budget=HostBudget(pages=2), delay_s=0.1)
    world.run()
    assert len(world.fetched) == 16
    world.crawl(deleted=True)
    world.crawl(*pages, host_budget=HostBudget(pages=3), delay_s=0.1)
    world.run()
    assert len(world.fetched) == 16 + 24
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


async def test_a_retry_of_a_deleted_job_is_nothing_to_one_of_its_name(tmp_path):
    """A URL that was set aside goes with its job: the next job of that name has not seen it."""
    world = await World(tmp_path, lambda request: Answer(status=500 if request.url.endswith("/old") else 200)).start()
    world.crawl("http://a.test/old")
    world.clock.advance(0.2)
    assert world.scheduler.dispatcher.frontier.delayed.items()
    world.crawl(deleted=True)
    world.crawl("http://a.test/new")
    check(world.scheduler.dispatcher)
    world.run()
    check(world.scheduler.dispatcher)
    assert [f.url for f in world.fetched] == ["http://a.test/old", "http://a.test/new"]
    await world.scheduler.close()


async def test_an_exclusion_applies_to_what_is_queued(tmp_path):
    """Pages that a changed scope excludes are dropped, though they were admitted before."""
    world = await World(tmp_path, site(HOST)).start()
    world.crawl("http://a.test/0")
    world.run(2.5)
    world.crawl(scope=Scope(mode="host", exclude=["/1."], max_depth=-1))
    world.run()
    ended = world.outcomes()
    assert ended["http://a.test/10"] == ended["http://a.test/11"] == "dropped(excluded)"
    assert ended["http://a.test/9"] == "stored"
    await world.scheduler.close()


async def test_a_budget_per_host_stops_the_job_on_that_host_only(tmp_path):
    """Five fetches on each host; the rest stays queued, is not waited for, and a larger budget takes it up."""
    pages = {f"http://{h}.test/{i}": [f"http://{h}.test/{j}" for j in range(12)] for h in "ab" for i in range(12)}
    world = await World(tmp_path, site(pages)).start()
    world.crawl("http://a.test/0", "http://b.test/0", host_budget=HostBudget(pages=5))
    world.run()
    assert world.done
    assert sorted(f.host for f in world.fetched) == ["a.test"] * 5 + ["b.test"] * 5
    assert world.scheduler.queued == 14
    check(world.scheduler.dispatcher)
    await world.scheduler.close()
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), world.clock.monotonic())).start()
    again.run()
    assert again.fetched == [], "the budget outlives a restart"
    again.crawl(host_budget=HostBudget(pages=7))
    again.run()
    assert len(again.fetched) == 4
    check(again.scheduler.dispatcher)
    await again.scheduler.close()


async def test_a_host_holds_no_more_urls_than_it_may(tmp_path):
    """Links beyond the cap are not admitted; they are when they are found again and there is room."""
    pages = {f"/{i}": [f"/{j}" for j in range(40)] for i in range(40)}
    world = await World(tmp_path, site(pages)).start()
    world.crawl("http://a.test/0", host_budget=HostBudget(queued=6))
    most = 0
    while not world.done:
        most = max(most, world.scheduler.queued)
        world.clock.advance(0.5)
    assert most <= 6
    assert len(world.rows) == 40
    await world.scheduler.close()


async def test_jobs_order_their_urls_each_in_its_own_way(tmp_path):
    """The same tree breadth-first for one job, depth-first for the other."""
    tree = {"/": ["/a", "/b"], "/a": ["/a/1", "/a/2"], "/b": ["/b/1"], "/a/1": [], "/a/2": [], "/b/1": []}
    world = await World(tmp_path, site(tree)).start()
    world.crawl("http://a.test/", job="wide")
    world.crawl("http://a.test/", job="deep", strategy="dfs")
    world.run()
    assert [u.removeprefix("http://a.test") for u in fetched_by(world, "wide")] == [
        "/",
        "/a",
        "/b",
        "/a/1",
        "/a/2",
        "/b/1",
    ]
    assert [u.removeprefix("http://a.test") for u in fetched_by(world, "deep")] == [
        "/",
        "/b",
        "/b/1",
        "/a",
        "/a/2",
        "/a/1",
    ]
    await world.scheduler.close()


async def test_a_host_in_another_jobs_way_is_answered_once(tmp_path):
    """robots.txt is asked for once, for both jobs."""
    asked = []

    def web(request):
        if request.url.endswith("/robots.txt"):
            asked.append(request.url)
            return Answer(body=b"User-agent: *\nDisallow: /3")
        return Answer()

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/1", "http://a.test/3", job="one", robots=True)
    world.crawl("http://a.test/2", "http://a.test/3", job="two", robots=True)
    world.run()
    assert len(asked) == 1
    assert sum(record.reason == "robots" for record in world.rows.values()) == 2
    await world.scheduler.close()


async def test_a_job_that_is_told_again_as_it_is_costs_no_commit(tmp_path):
    """A program that starts tells all services the jobs it found in the log: the log need not hear of them."""
    world = await World(tmp_path, site(HOST)).start()
    world.crawl("http://a.test/0", job="one")
    world.run()
    size, spec = world.scheduler.log.size, world.scheduler.frontier.jobs["one"].spec
    world.bus.publish(JOBS, 0, msgspec.structs.replace(spec))
    world.clock.run_due()
    assert world.scheduler.log.size == size
    world.bus.publish(JOBS, 0, changed(spec, weight=2.0))
    world.clock.run_due()
    assert world.scheduler.log.size > size
    await world.scheduler.close()
