"""Every admitted URL ends in exactly one row, and the crawl ends."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import FetchKind, FetchResult, Outcome, Receipt, Receipts, Seed
from nephila.kernel.topics import JOBS, RECEIPTS, SEEDS

from tests.jobs import crawl_job
from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, chain, site


async def test_a_chain_is_crawled_whole_and_each_page_once(tmp_path):
    """Thirty pages that link to each other twice are fetched thirty times."""
    world = await World(tmp_path, chain(30)).start()
    world.crawl("http://a.test/0")
    world.run()
    assert world.done
    assert len(world.rows) == 30
    assert len({f.url for f in world.fetched}) == len(world.fetched) == 30
    await world.scheduler.close()


async def test_breadth_first_within_a_host(tmp_path):
    """Pages of smaller depth are fetched first, in the order in which they were found."""
    web = site({"/": ["/a", "/b"], "/a": ["/a1", "/a2"], "/b": ["/b1"], "/a1": [], "/a2": [], "/b1": []})
    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/")
    world.run()
    paths = [f.url.removeprefix("http://a.test") for f in world.fetched]
    assert paths == ["/", "/a", "/b", "/a1", "/a2", "/b1"]
    await world.scheduler.close()


@pytest.mark.parametrize(
    ("answer", "row", "tries"),
    [
        (Answer(status=404), "failed(http_404)", 1),
        (Answer(status=500), "failed(http_500)", 3),
        (Answer(status=429), "failed(http_429)", 3),
        (Answer(reason="timeout"), "failed(timeout)", 3),
        (Answer(reason="dns"), "failed(dns)", 3),
        (Answer(reason="too_large"), "failed(too_large)", 1),
        (Answer(result=FetchResult.DENIED, reason="address"), "denied(address)", 1),
        (Answer(result=FetchResult.CONTENT_TYPE), "dropped(content_type)", 1),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
async def test_each_end_has_its_row(tmp_path, answer, row, tries):
    """The table 'How a fetch ends': outcome, reason, number of tries."""
    world = await World(tmp_path, lambda request: answer).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.outcomes() == {"http://a.test/": row}
    assert len(world.fetched) == tries
    await world.scheduler.close()


async def test_a_server_that_recovers_is_stored(tmp_path):
    """Two 503 and then a 200: one stored row, attempt 3."""
    answers = [Answer(status=503, retry_after_s=7), Answer(status=503), Answer()]
    world = await World(tmp_path, lambda request: answers[request.attempt - 1]).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.outcomes() == {"http://a.test/": "stored"}
    starts = [f.start for f in world.fetched]
    ends = [f.end for f in world.fetched]
    assert 7 <= starts[1] - ends[0] < 8
    assert starts[2] - ends[1] >= 10
    await world.scheduler.close()


async def test_a_silent_downloader_loses_nothing(tmp_path):
    """A request that never comes back is handed out again when its lease ends, with its attempt counted."""
    answers = [Answer(silent=True), Answer()]
    world = await World(tmp_path, lambda request: answers[request.attempt - 1]).start()
    world.crawl("http://a.test/")
    world.run()
    assert world.outcomes() == {"http://a.test/": "stored"}
    assert [f.attempt for f in world.fetched] == [1, 2]
    await world.scheduler.close()


async def test_given_back_counts_no_attempt(tmp_path):
    """A request that was never dialled costs neither a try nor a rest of the host."""
    answers = iter([Answer(result=FetchResult.UNSPECIFIED), Answer(result=FetchResult.EXPIRED), Answer()])
    world = await World(tmp_path, lambda request: next(answers)).start()
    world.crawl("http://a.test/")
    world.run()
    assert [f.attempt for f in world.fetched] == [1, 1, 1]
    assert world.outcomes() == {"http://a.test/": "stored"}
    await world.scheduler.close()


async def test_max_pages_is_exact_although_some_fail(tmp_path):
    """Five stored pages at most, and five although every third page is missing; the rest stays queued."""
    base = chain(40)

    def web(request):
        number = int(request.url.rsplit("/", 1)[1])
        return Answer(status=404) if number % 3 == 2 else base(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/0", scope=Scope(max_depth=-1, max_pages=5))
    world.run(2_000)
    assert sorted(world.outcomes().values()).count("stored") == 5
    assert world.scheduler.idle
    assert world.scheduler.queued > 0
    await world.scheduler.close()


async def test_depth_and_patterns_keep_urls_out(tmp_path):
    """Out of scope means no row at all."""
    web = site({"/": ["/keep/1", "/skip/1", "http://other.test/"], "/keep/1": ["/keep/2"], "/keep/2": []})
    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/", scope=Scope(exclude=["/skip"], max_depth=1))
    world.run()
    assert set(world.outcomes()) == {"http://a.test/", "http://a.test/keep/1"}
    await world.scheduler.close()


async def test_a_changed_scope_applies_to_what_is_queued(tmp_path):
    """A URL that a later scope excludes ends as dropped(excluded), without a fetch."""
    web = site({"/": ["/x", "/y"], "/x": [], "/y": []})
    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/")
    world.run(0.5)
    world.crawl(scope=Scope(exclude=["/y$"], max_depth=-1))
    world.run()
    assert world.outcomes()["http://a.test/y"] == "dropped(excluded)"
    assert "http://a.test/y" not in {f.url for f in world.fetched}
    await world.scheduler.close()


async def test_scope_any_reaches_other_hosts_in_parallel(tmp_path):
    """Hosts are independent: two of them are fetched at the same time."""
    web = site({"/": ["http://b.test/", "http://c.test/"], "http://b.test/": [], "http://c.test/": []})
    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/", scope=Scope(mode="any", max_depth=-1))
    world.run()
    by_host = {f.host: f for f in world.fetched}
    assert by_host["b.test"].start == by_host["c.test"].start
    await world.scheduler.close()


async def test_the_window_bounds_what_has_no_receipt(tmp_path):
    """Without receipts no more than `window` URLs leave their queues."""
    web = site({f"http://h{i}.test/": [] for i in range(50)})
    world = await World(tmp_path, web, window=8).start()
    world.hold_receipts = True
    world.crawl(*[f"http://h{i}.test/" for i in range(50)])
    world.run(50)
    assert len(world.fetched) == 8
    for record in world.held:
        world._receipt(record)
    world.run(50)
    assert len(world.fetched) == 16
    await world.scheduler.close()


async def test_ten_thousand_forbidden_urls_do_not_hold_up_another_host(tmp_path):
    """A host whose robots.txt forbids everything ends its URLs without a fetch, in turns."""
    links = [f"/{i}" for i in range(2_000)] + ["http://b.test/"]

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return (
                Answer(body=b"User-agent: *\nDisallow: /\nAllow: /$")
                if request.host == "a.test"
                else Answer(status=404)
            )
        return site({"/": links, "http://b.test/": []})(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/", scope=Scope(mode="any", max_depth=-1), robots=True)
    world.run()
    outcomes = world.outcomes()
    assert outcomes["http://b.test/"] == "stored"
    assert list(outcomes.values()).count("denied(robots)") == 2_000
    assert len(world.fetched) == 4
    await world.scheduler.close()


@pytest.mark.parametrize("kind", [FetchKind.UNSPECIFIED, FetchKind.ROBOTS], ids=["page", "robots"])
async def test_a_url_that_never_comes_back_ends_after_its_tries(tmp_path, kind):
    """Three leases without an outcome are three failed tries: a URL that swallows its fetcher ends as well."""
    world = await World(tmp_path, lambda request: Answer(silent=request.kind == kind)).start()
    world.crawl("http://a.test/", robots=True)
    world.run()
    row = "denied(robots)" if kind is FetchKind.ROBOTS else "failed(lease_expired)"
    assert world.outcomes() == {"http://a.test/": row}
    assert [f.attempt for f in world.fetched if f.end == f.start] == [1, 2, 3]
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


async def test_a_utc_clock_set_forward_expires_nothing(tmp_path):
    """After a machine's sleep, or an hour put forward, requests have their full time again: else all would be given
    back as too late, handed out again, and so on without end."""
    world = await World(tmp_path, chain(20)).start()
    world.crawl("http://a.test/0", delay_s=1.0)
    world.run(5)
    world.clock.jump(7200.0)
    asked = world.scheduler.requests
    world.run(60)
    assert world.done
    assert len(world.rows) == 20
    assert world.scheduler.requests - asked <= 20
    await world.scheduler.close()


async def test_a_dead_letter_that_overtakes_its_outcome_is_counted_as_what_it_is(tmp_path):
    """The receipt says how the row reads; an outcome that comes after it must not turn it into a stored page."""
    world = await World(tmp_path, lambda request: Answer(took_s=5)).start()
    world.crawl("http://a.test/")
    world.hold_receipts = True
    world.clock.advance(1)
    [waiting] = world.scheduler.frontier.in_flight.urls.values()
    receipts = Receipts(JOB, [Receipt(waiting.entry.url_key, 1, Outcome.FAILED)])
    world.bus.publish(RECEIPTS, waiting.host.partition, receipts)
    world.run()
    assert world.scheduler.ended(JOB) == {Outcome.FAILED: 1}
    await world.scheduler.close()


async def test_a_paused_job_keeps_a_host_once(tmp_path):
    """Beside an open job on the same host a paused one sets the host aside at each fetch, and remembers it once."""
    world = await World(tmp_path, chain(50)).start()
    world.crawl("http://a.test/x")
    paused = crawl_job("p", "p", 1, [], Scope(max_depth=0), Politeness(delay="0.1s", respect_robots=False))
    world.bus.publish(JOBS, 0, paused)
    world.bus.publish(SEEDS, 0, Seed("p", "http://b.test/x"))
    world.clock.run_due()
    world.bus.publish(SEEDS, 0, Seed("p", "http://a.test/0"))
    world.bus.publish(
        JOBS,
        0,
        crawl_job("p", "p", 2, [], Scope(max_depth=0), Politeness(delay="0.1s", respect_robots=False), paused=True),
    )
    for number in range(40):
        world.bus.publish(SEEDS, 0, Seed(JOB, f"http://a.test/{number}"))
    world.run(200)
    job = world.scheduler.frontier.jobs["p"]
    assert len(job.queue.waiting_hosts) <= 1
    check(world.scheduler.dispatcher)
    world.bus.publish(
        JOBS, 0, crawl_job("p", "p", 3, [], Scope(max_depth=0), Politeness(delay="0.1s", respect_robots=False))
    )
    world.run()
    assert world.done
    await world.scheduler.close()
