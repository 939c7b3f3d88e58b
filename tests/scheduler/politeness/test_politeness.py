"""A host is fetched from one at a time, never earlier than its delay, and never where robots.txt forbids it."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import FetchKind, FetchOutcome, HostUse, Seed
from nephila.kernel.reasons.table import row_of_outcome
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, SEEDS
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.politeness.host_pace import MARGIN_S, HostPace, from_state, is_refusal, took_s

from tests.jobs import crawl_job
from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, chain, site

CONFIG = SchedulerConfig()


def gaps(world: World, host: str) -> list[float]:
    """Seconds from the end of each fetch of a host to the start of its next."""
    mine = [f for f in world.fetched if f.host == host]
    return [round(b.start - a.end, 6) for a, b in itertools.pairwise(mine)]


async def test_no_gap_below_the_delay(tmp_path):
    """Start minus end of the fetch before is at least the delay, whatever a fetch takes."""
    base = chain(12)

    def web(request):
        answer = base(request)
        answer.took_s = 0.05 + (hash(request.url) % 7) / 10
        return answer

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/0", delay_s=2.0)
    world.run()
    assert len(world.rows) == 12
    assert min(gaps(world, "a.test")) >= 2.0
    await world.scheduler.close()


async def test_robots_is_fetched_first_and_is_paced(tmp_path):
    """robots.txt comes before any page of its origin, and the delay lies between them."""

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return Answer(body=b"User-agent: *\nDisallow: /private\nCrawl-delay: 5\n")
        return site({"/": ["/private/1", "/open"], "/open": []})(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/", robots=True)
    world.run()
    assert [f.url for f in world.fetched] == ["http://a.test/robots.txt", "http://a.test/", "http://a.test/open"]
    assert min(gaps(world, "a.test")) >= 5.0
    assert world.outcomes()["http://a.test/private/1"] == "denied(robots)"
    await world.scheduler.close()


@pytest.mark.parametrize(
    ("answer", "row", "requests"),
    [
        (Answer(status=404), "stored", 2),
        (Answer(status=403), "stored", 2),
        (Answer(status=500), "denied(robots)", 3),
        (Answer(reason="timeout"), "denied(robots)", 3),
        (Answer(reason="dns"), "failed(dns)", 3),
        (Answer(reason="connect"), "failed(connect)", 3),
        (Answer(reason="proxy"), "failed(proxy)", 3),
    ],
    ids=["404", "403", "500", "timeout", "dns", "connect", "proxy"],
)
async def test_what_an_unusable_robots_means(tmp_path, answer, row, requests):
    """4xx allows; 5xx and silence forbid after three tries; a host that is not there fails as what it is."""
    world = await World(tmp_path, lambda r: answer if r.kind is FetchKind.ROBOTS else Answer()).start()
    world.crawl("http://a.test/", robots=True)
    world.run()
    assert world.outcomes() == {"http://a.test/": row}
    assert len(world.fetched) == requests
    await world.scheduler.close()


async def test_http_and_https_have_a_robots_each_and_one_pace(tmp_path):
    """robots.txt belongs to an origin, politeness to the host."""

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return Answer(body=b"User-agent: *\nDisallow: /x" if request.url.startswith("https") else b"")
        return site({"http://a.test/x": ["https://a.test/x", "https://a.test/y"], "https://a.test/y": []})(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/x", robots=True)
    world.run()
    assert world.outcomes() == {
        "http://a.test/x": "stored",
        "https://a.test/x": "denied(robots)",
        "https://a.test/y": "stored",
    }
    assert min(gaps(world, "a.test")) >= 1.0
    await world.scheduler.close()


async def test_pace_robots_and_backoff_survive_a_restart(tmp_path):
    """After a restart a host still waits for its Retry-After, and robots.txt is not asked for again."""
    state = {"refuse": True}

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return Answer(body=b"")
        return Answer(status=503, retry_after_s=300) if state["refuse"] else Answer()

    clock = ManualClock()
    world = await World(tmp_path, web, clock).start()
    world.crawl("http://a.test/", robots=True)
    world.run(10)
    refused_at = world.fetched[-1].end
    await world.scheduler.close()
    state["refuse"] = False
    again = await World(tmp_path, web, clock).start()
    again.run()
    assert [f.url for f in again.fetched] == ["http://a.test/"]
    assert again.fetched[0].start - refused_at >= 300
    await again.scheduler.close()


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_jumps_neither_frees_nor_freezes(tmp_path, jump):
    """An hour's jump of UTC between two runs moves a pause by no more than its own length."""
    clock = ManualClock()
    world = await World(tmp_path, lambda r: Answer(status=503, retry_after_s=300), clock).start()
    world.crawl("http://a.test/")
    world.run(10)
    await world.scheduler.close()
    clock.jump(jump)
    again = await World(tmp_path, lambda r: Answer(), clock).start()
    started = clock.monotonic()
    again.run()
    assert again.outcomes() == {"http://a.test/": "stored"}
    assert again.fetched[0].start - started <= 340
    await again.scheduler.close()


async def test_one_slow_host_does_not_hold_up_the_others(tmp_path):
    """Ninety-nine hosts are done while one pauses."""
    web = site({f"http://h{i}.test/": [] for i in range(100)})

    def slow(request):
        return Answer(status=429, retry_after_s=500) if request.host == "h7.test" else web(request)

    world = await World(tmp_path, slow).start()
    world.crawl(*[f"http://h{i}.test/" for i in range(100)], scope=Scope(mode="any", max_depth=0))
    world.run(5)
    assert len(world.rows) == 99
    await world.scheduler.close()


PLAIN = SchedulerConfig(jitter=0.0)


def refused(pace: HostPace, times: list[float], **how: bool) -> list[float]:
    """The pauses that refusals at these instants bring."""
    rng = random.Random(0)
    return [pace.after_refusal(at, 0.0, PLAIN, rng, **how) for at in times]


def test_backoff_doubles_up_to_a_day():
    """60 s, 120 s, … while the host refuses again as soon as it is asked again; a day is the longest pause."""
    pace, now, pauses = HostPace(), 0.0, []
    for _ in range(14):
        pauses += refused(pace, [now])
        now = pace.not_before
    assert pauses[:4] == [60, 120, 240, 480]
    assert pauses[9:] == [60 * 2**9, 60 * 2**10, 86_400, 86_400, 86_400]


def test_backoff_is_forgiven_after_half_an_hour_of_quiet():
    """Quiet begins where the pause ends, since nobody refuses while nobody asks; then it is 60 s again."""
    pace = HostPace()
    assert refused(pace, [0, 60, 180]) == [60, 120, 240]
    assert refused(pace, [180 + 240 + 1800]) == [480]
    assert refused(pace, [2220 + 480 + 1801]) == [60]


def test_answers_alone_forgive_nothing():
    """A host that answers now and then and says 429 in between is asked less and less often."""
    pace, pauses = HostPace(), []
    for number in range(5):
        pauses += refused(pace, [number * 300.0])
        pace.after_answer(PLAIN, number * 300.0 + 200)
    assert pauses == [60, 120, 240, 480, 960]
    pace.after_answer(PLAIN, 1200.0 + 960 + 1801)
    assert pace.backoff_s == 0


def test_a_page_that_hangs_is_not_a_host_that_hangs():
    """A time-out after an answer is a first step; one after a refusal doubles as any other."""
    pace, pauses = HostPace(), []
    for number in range(20):
        pauses += refused(pace, [number * 200.0], passing=True)
        pace.after_answer(PLAIN, number * 200.0 + 100)
    assert pauses == [60.0] * 20
    assert refused(pace, [4000, 4060, 4180], passing=True) == [60, 120, 240]
    assert refused(pace, [4420]) == [480]


@pytest.mark.parametrize("restarts", [False, True])
async def test_one_page_in_a_hundred_with_503_costs_one_first_pause_each(tmp_path, restarts):
    """Pages in between are answered with 200: each refusal is a first step, also after restarts."""
    base = site({"/": [f"/{n}" for n in range(300)], **{f"/{n}": [] for n in range(300)}})
    refused = set()

    def web(request):
        if request.url.endswith("50") and request.url not in refused:
            refused.add(request.url)
            return Answer(status=503)
        return base(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/")
    while not world.done:
        world.run(100.0)
        if restarts and not world.done:
            fetched, rows = world.fetched, world.rows
            await world.scheduler.close()
            world = World(tmp_path, web, ManualClock(world.clock.now(), world.clock.monotonic()))
            world.fetched, world.rows = fetched, rows
            await world.start()
    assert len(refused) == 3
    assert max(gaps(world, "a.test")) < 70
    assert len([row for row in world.outcomes().values() if row == "stored"]) == 301
    await world.scheduler.close()


def test_jitter_stretches_a_pause_by_a_tenth_at_most():
    """Never shorter, never more than a tenth longer, and not the same for all hosts."""
    rng = random.Random(3)
    pauses = [HostPace().after_refusal(0.0, 0.0, CONFIG, rng) for _ in range(200)]
    assert 60 <= min(pauses) < 61
    assert 65 < max(pauses) <= 66


def test_a_pause_that_the_host_names_doubles_nothing():
    """Retry-After says how long; the guess after it begins at its beginning."""
    pace, rng = HostPace(), random.Random(0)
    assert [pace.after_refusal(float(t), 2.0, PLAIN, rng) for t in range(8)] == [2.0] * 8
    assert refused(pace, [9.0]) == [60]


def test_what_a_fetch_took():
    """From its start to its end, whatever a clock that was set meanwhile makes of it; 0 when nobody was dialled."""
    assert took_s(FetchOutcome(started_at=100.0, ended_at=102.5)) == 2.5
    assert took_s(FetchOutcome(started_at=100.0, ended_at=100.0 - 3600)) == 0.0
    assert took_s(FetchOutcome(started_at=100.0, ended_at=1e9)) == 3600.0
    assert took_s(FetchOutcome(ended_at=100.0)) == 0.0


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_url_that_hangs_comes_behind_its_neighbours(tmp_path, restarts):
    """The first one of ten: the nine others are fetched before its second try, also by a scheduler that restarts."""
    base = site({"/": [f"/{n}" for n in range(10)]})

    def web(request):
        return Answer(reason="timeout", took_s=20) if request.url.endswith("/0") else base(request)

    clock = ManualClock()
    world = await World(tmp_path, web, clock).start()
    world.crawl("http://a.test/")
    fetched = []
    if restarts:
        world.run(30)
        fetched = world.fetched
        await world.scheduler.close()
        world = await World(tmp_path, web, clock).start()
    world.run(7200)
    paths = [f.url.removeprefix("http://a.test") for f in [*fetched, *world.fetched]]
    assert paths == ["/", "/0", *(f"/{n}" for n in range(1, 10)), "/0", "/0"]
    await world.scheduler.close()


def test_a_url_that_hangs_again_says_nothing_new_about_its_host():
    """Its pauses double with its own tries; the back-off of the host stays."""
    pace, now = HostPace(), 0.0
    assert pace.after_refusal(now, 0, CONFIG, random.Random(1), passing=True) >= CONFIG.backoff_s
    step = pace.backoff_s
    for again in (1, 2, 1, 2):
        now = pace.not_before
        pause = pace.after_refusal(now, 0, CONFIG, random.Random(1), passing=True, again=again)
        assert CONFIG.backoff_s * 2**again <= pause <= CONFIG.backoff_s * 2**again * (1 + CONFIG.jitter)
        assert pace.backoff_s == step


async def test_pages_that_hang_do_not_end_the_crawl_of_their_host(tmp_path):
    """Ten of a hundred pages time out: all the others are stored before anything waits for --max-wait."""
    links = [f"/{n}" for n in range(100)]
    base = site({"/": links, **{link: [] for link in links}})

    def web(request):
        return Answer(reason="timeout", took_s=20) if request.url.endswith("7") else base(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/")
    world.run(7200)
    rows = world.outcomes()
    assert sum(outcome == "stored" for outcome in rows.values()) == 91
    assert sum(outcome == "failed(timeout)" for outcome in rows.values()) == 10
    assert max(gaps(world, "a.test")) < 300
    await world.scheduler.close()


def test_a_hostile_retry_after_is_capped():
    """A server cannot park a host for a year."""
    pace = HostPace()
    pace.after_refusal(0.0, 1e9, CONFIG, random.Random(0))
    assert pace.not_before <= CONFIG.backoff_max_s * (1 + CONFIG.jitter)


@given(
    delay=st.floats(0, 1e5),
    age=st.floats(-1e6, 1e6),
    offset=st.floats(1e9, 2e9),
)
def test_stored_pace_is_clamped_to_its_pause(delay, age, offset):
    """Loaded at any later or earlier UTC, the wait lies in [0, the pause that set it]."""
    pace = HostPace()
    pace.after_fetch(1000.0, delay)
    state = pace.to_state("h", "", offset)
    loaded = from_state(state, 50.0, 1000.0 + offset + age)
    assert 50.0 <= loaded.not_before <= 50.0 + delay + MARGIN_S + 1e-3


@pytest.mark.parametrize("jump", [-3600.0, 0.0, 3600.0])
def test_a_backoff_outlives_a_restart_and_a_jump_of_the_clock(jump):
    """The next refusal doubles what was in force, unless the clock says that half an hour has passed; the pause is
    shorter by the jump at most, and never longer."""
    pace = HostPace()
    refused(pace, [0, 60, 180, 420, 900, 1860])
    assert pace.backoff_s == 1920
    loaded = from_state(pace.to_state("h", "192.0.2.1", 1e9), 7.0, 1e9 + 1900 + jump)
    left = pace.not_before - 1900
    assert 7.0 + min(left, max(0.0, left - jump)) <= loaded.not_before + 1e-3
    assert loaded.not_before <= 7.0 + pace.pause_s + 1e-3
    assert refused(loaded, [loaded.not_before]) == [3840]


def test_everything_that_is_remembered_is_stored():
    """Crawl-delay, time of the last fetch, address and what jobs have spent go with the pace."""
    uses = [HostUse("j", 3, 4096, 1.5)]
    state = HostPace(not_before=9.0, pause_s=2.0, took_s=4.0, answered=True).to_state("h", "192.0.2.1", 1e9, 5.0, uses)
    assert (state.crawl_delay_s, state.took_s, state.address, state.uses) == (5.0, 4.0, "192.0.2.1", uses)
    loaded = from_state(state, 0.0, 1e9)
    assert (loaded.took_s, loaded.answered) == (4.0, True)
    new = HostPace().to_state("h", "", 1e9)
    assert (new.not_before, new.pause_s, new.backoff_s, new.refused_at, new.answered) == (1e9, 0.0, 0.0, 0.0, False)


@pytest.mark.parametrize(
    ("outcome", "refused"),
    [
        *((FetchOutcome(reason=reason), True) for reason in ("http_429", "http_503", "timeout", "blocked")),
        *((FetchOutcome(reason=reason), False) for reason in ("", "http_500", "http_404", "connect", "dns", "busy")),
        (FetchOutcome(reason="blocked", cause="login_page"), False),
        (FetchOutcome(reason="blocked", cause="of_a_newer_version"), True),
        (FetchOutcome(reason="blocked", cause="login_page", retry_after_s=3), True),
        (FetchOutcome(retry_after_s=3), True),
    ],
    ids=lambda value: f"{value.reason}-{value.cause}-{value.retry_after_s}" if not isinstance(value, bool) else None,
)
def test_outcomes_that_pause_the_host(outcome: FetchOutcome, refused: bool):
    """Refusals, and any outcome with Retry-After. A login page concerns its URL only: the session has ended."""
    assert is_refusal(outcome, row_of_outcome(outcome)) is refused


async def test_two_fetches_at_once_wait_for_one_robots(tmp_path):
    """Where a job allows two fetches of a host at once, both wait for robots.txt, and a refusal pauses both."""

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return Answer(body=b"")
        if request.url.endswith("/0"):
            return Answer(status=429, retry_after_s=100) if request.attempt == 1 else Answer()
        return Answer(took_s=3)

    world = await World(tmp_path, web).start()
    job = crawl_job("t", "t", 1, [], Scope(max_depth=0), Politeness(delay="1s", concurrency_per_host=2))
    world.bus.publish(JOBS, 0, job)
    for number in range(4):
        world.bus.publish(SEEDS, 0, Seed("t", f"http://a.test/{number}"))
    world.run()
    robots, *pages = world.fetched
    assert robots.url == "http://a.test/robots.txt"
    assert min(f.start for f in pages) >= robots.end + 1.0
    assert len({f.url for f in pages}) == 4
    refused = next(f for f in pages if f.url.endswith("/0"))
    assert all(f.start >= refused.end + 100 for f in pages if f.start > refused.start)
    check(world.scheduler.dispatcher)
    await world.scheduler.close()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("refused", ["/robots.txt", "/sitemap.xml", "/feed.xml", "/1"])
async def test_a_refusal_of_any_resource_pauses_its_host(tmp_path, refused, status):
    """robots.txt, sitemap, feed or page: no request of the host begins before Retry-After and Crawl-delay are over."""

    def web(request):
        path = request.url.removeprefix("http://a.test")
        if path == refused and request.attempt == 1:
            return Answer(status=status, retry_after_s=100)
        if path == "/robots.txt":
            return Answer(body=b"User-agent: *\nCrawl-delay: 7\nSitemap: http://a.test/sitemap.xml")
        return site({"http://a.test/": ["http://a.test/feed.xml", "http://a.test/1", "http://a.test/2"]})(request)

    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/", robots=True, sitemaps=True)
    world.run()
    urls = [fetch.url.removeprefix("http://a.test") for fetch in world.fetched]
    assert {"/robots.txt", "/sitemap.xml", "/feed.xml", "/1", "/2"} <= set(urls)
    gap_after = dict(zip(urls, gaps(world, "a.test"), strict=False)) | {
        refused: gaps(world, "a.test")[urls.index(refused)]
    }
    assert gap_after.pop(refused) >= 100
    assert all(gap_s >= 7 for url, gap_s in gap_after.items())
    await world.scheduler.close()


async def test_crawl_delay_holds_between_tries_of_robots(tmp_path):
    """A robots.txt that is fetched again, and again after an error, is paced like any page of its host."""
    answers = iter([Answer(body=b"User-agent: *\nCrawl-delay: 9")] + [Answer(status=500)] * 3)
    web = chain(9)
    world = await World(
        tmp_path, lambda r: next(answers) if r.kind is FetchKind.ROBOTS else web(r), robots_ttl_s=15.0
    ).start()
    world.crawl("http://a.test/0", robots=True)
    world.run(80)
    assert sum(f.url.endswith("robots.txt") for f in world.fetched) == 4
    assert min(gaps(world, "a.test")) >= 9.0
    await world.scheduler.close()


@pytest.mark.parametrize("at", [0.05, 0.15, 2.0], ids=["asking", "answered", "resting"])
async def test_a_kill_around_robots_leaves_the_pace(tmp_path, at):
    """Killed while robots.txt is fetched, or just after, the next run keeps delay and Crawl-delay towards the host."""

    def web(request):
        return Answer(body=b"User-agent: *\nCrawl-delay: 5") if request.kind is FetchKind.ROBOTS else Answer()

    clock = ManualClock()
    world = await World(tmp_path, web, clock).start()
    world.crawl("http://a.test/", delay_s=3.0, robots=True)
    clock.advance(at)
    world.kill()
    again = await World(tmp_path, web, ManualClock(clock.now(), clock.monotonic())).start()
    again.run()
    again.fetched[:0] = world.fetched
    assert again.outcomes() == {"http://a.test/": "stored"}
    assert min(gaps(again, "a.test")) >= (3.0 if at < 0.1 else 5.0)
    await again.scheduler.close()


class EarlyWorld(World):
    """Its downloader starts every fetch `early_s` before the request was sent, as a fault of pace or clocks would."""

    early_s = 0.0

    def _finish(self, delivery, request, answer, fetched):
        answer.took_s += self.early_s
        super()._finish(delivery, request, answer, fetched)


@pytest.mark.parametrize(("early_s", "counted"), [(0.0, 0), (0.9, 0), (4.0, 4)])
async def test_a_fetch_before_its_time_is_counted(tmp_path, early_s, counted):
    """At a delay of 5 s. A second is the difference that clocks of members may have; the first fetch is never early."""
    world = await EarlyWorld(tmp_path, chain(5)).start()
    world.early_s = early_s
    world.crawl("http://a.test/0", delay_s=5.0)
    world.run()
    assert len(world.rows) == 5
    assert world.scheduler.counters.early_fetches == counted
    await world.scheduler.close()


async def test_fetches_at_once_are_not_early(tmp_path):
    """With two fetches at once on a host, one may start before the delay after the other."""
    pages = {"/": [f"/{number}" for number in range(8)], **{f"/{number}": [] for number in range(8)}}
    world = await EarlyWorld(tmp_path, site(pages)).start()
    world.early_s = 4.0
    two = Politeness(delay="5s", concurrency_per_host=2, respect_robots=False)
    world.bus.publish(JOBS, 0, crawl_job(JOB, JOB, 1, [], Scope(max_depth=-1), two))
    world.bus.publish(SEEDS, 0, Seed(JOB, "http://a.test/"))
    world.run()
    assert len(world.rows) == 9
    assert world.scheduler.counters.early_fetches == 0
    await world.scheduler.close()


def test_a_pause_by_a_person_that_is_over_takes_no_back_off_with_it():
    """The host has refused since: a second pause by a person does not end the back-off; a pause that runs does."""
    config, rng = SchedulerConfig(), random.Random(1)
    pace = HostPace()
    pace.hold(0.0, 10.0, 1.0)
    pace.after_refusal(100.0, 0.0, config, rng)
    pace.hold(100.0, 10.0, 1.0)
    assert pace.backoff_s == config.backoff_s
    assert pace.not_before >= 100.0 + config.backoff_s
    pace.hold(101.0, 10.0, 1.0)
    assert pace.backoff_s == 0.0
