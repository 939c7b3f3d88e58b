"""What became of a URL and why: one sentence that names the first thing in its way."""

from __future__ import annotations

import time

import pytest
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import FetchKind
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS
from nephila.native import UrlError, parse_url
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.recovery import restore
from nephila_control.explain.explain import Explanation, explain
from nephila_control.explain.facts import Home, LeaseFact

from tests.jobs import crawl_job
from tests.scheduler.world import JOB, Answer, World, site

ROBOTS = b"User-agent: *\nDisallow: /private\n"


async def begun(tmp_path, web, *seeds: str, scope: Scope | None = None, seconds: float = 0.0, **options) -> World:
    """A crawl some seconds after its start."""
    world = await World(tmp_path, web).start()
    world.crawl(*seeds, scope=scope, **options)
    world.clock.advance(seconds)
    return world


def result(world: World, url: str, *, running: bool = True, row: dict | None = None, **more) -> Explanation:
    """The explanation now."""
    scheduler = world.scheduler
    job = scheduler.frontier.jobs[more.pop("job", JOB)]
    now = world.clock.monotonic()
    return explain(scheduler.dispatcher, job, url, now, running=running, row=row, home=Home("o", True), **more)


async def restarted(tmp_path, world: World) -> tuple[World, dict]:
    """The same directory in a new process, before it does anything."""
    again = World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0))
    log = CommitLog(tmp_path, read_only=True)
    found = restore(again.scheduler.dispatcher, log.recover(), again.clock.monotonic(), again.clock.now())
    return again, found.attempts


def utc(world: World, seconds: float) -> str:
    """How an instant some seconds from now is written."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(world.clock.now() + seconds))


async def test_identity_is_shown_for_any_spelling(tmp_path):
    """Canonical form, host key, url_key and partition are those of the crawl."""
    world = await begun(tmp_path, site({"/": []}), "http://a.test/")
    found = result(world, "HTTP://A.TEST:80/?utm_source=x#f")
    parts = parse_url("http://a.test/")
    assert (found.canonical, found.host_key, found.seen) == ("http://a.test/", "a.test", True)
    assert found.url_key == parts.fingerprint.hex()
    assert found.partition == world.scheduler.frontier.pending.partition(parts.fingerprint).number
    with pytest.raises(UrlError):
        result(world, "mailto:x")


async def test_a_url_never_seen_is_judged_anew(tmp_path):
    """In scope: no link was found. Out of scope: the rule that keeps it out."""
    scope = Scope(exclude=["/login"], max_depth=3)
    world = await begun(tmp_path, site({"/": []}), "http://a.test/", scope=scope, seconds=10)
    inside = result(world, "http://www.a.test/other")
    assert (inside.state, inside.seen) == ("never_found", False)
    assert inside.sentence == (
        "Never found: no page fetched so far links to it within depth 3; if one did, it would be crawled "
        "(host a.test is a seed host)."
    )
    assert result(world, "http://b.test/").sentence == "Not crawled: host b.test is not a seed host."
    assert result(world, "http://a.test/login").sentence == "Not crawled: excluded by '/login'."


async def test_a_url_that_waits_names_what_it_waits_for(tmp_path):
    """Its try under way; the pace of its host; then its place in the queue."""
    links = [f"/{n}" for n in range(1, 5)]
    world = await begun(tmp_path, site({"/": links}), "http://a.test/", delay_s=10.0)
    assert result(world, "http://a.test/").sentence == (
        f"Waiting: try 1 of it is under way, handed out at {utc(world, 0)}, taken back at {utc(world, 180)}."
    )
    world.clock.advance(1.0)
    second = result(world, "http://a.test/2")
    assert second.queued is not None
    assert (second.queued.position, second.queued.of, second.queued.depth) == (2, 4, 1)
    assert second.host is not None
    assert (second.host.delay_s, second.host.queued, second.host.address) == (10.0, 4, world.address_of("a.test"))
    assert second.sentence == f"Waiting: a.test is fetched from every 10 s, next at {utc(world, second.host.wait_s)}."
    stopped = result(world, "http://a.test/2", running=False)
    assert stopped.sentence.endswith("; nothing runs; continue with: nephila up --out o.")


async def test_the_place_in_the_queue_counts_once_the_host_is_free(tmp_path):
    """A restart long after the pace: who goes before it, and who is next."""
    web = site({"/": [f"/{n}" for n in range(1, 5)]})
    world = await begun(tmp_path, web, "http://a.test/", delay_s=10.0, seconds=1.0)
    world.clock.jump(100.0)
    again, _ = await restarted(tmp_path, world)
    assert result(again, "http://a.test/3").sentence == "Waiting: 2 URLs of a.test go before it."
    assert result(again, "http://a.test/2").sentence == "Waiting: 1 URL of a.test goes before it."
    assert result(again, "http://a.test/1").sentence == "Waiting: it is the next of a.test."


async def test_a_try_that_was_under_way_when_the_crawl_ended(tmp_path):
    """It is fetched again, and said so."""
    world = await begun(tmp_path, site({"/": []}), "http://a.test/")
    again, attempts = await restarted(tmp_path, world)
    job = again.scheduler.frontier.jobs[JOB]
    found = explain(again.scheduler.dispatcher, job, "http://a.test/", again.clock.monotonic(), attempts=attempts)
    assert (found.kind, found.lease) == ("interrupted", LeaseFact(1, 1))
    assert "was under way when the crawl ended, so it is fetched again" in found.sentence


async def test_a_refusing_host_is_named_with_the_end_of_its_pause(tmp_path):
    """429: the whole host pauses, for this URL and its neighbours."""
    world = await begun(tmp_path, lambda request: Answer(status=429), "http://a.test/1", "http://a.test/2", seconds=1.0)
    found = result(world, "http://a.test/2")
    assert found.host is not None
    assert found.host.backoff_s > 0
    assert found.sentence == (
        f"Waiting: a.test is paused until {utc(world, found.host.wait_s)}, because it refused or timed out."
    )


async def test_a_host_that_named_its_pause_is_told_as_pausing(tmp_path):
    """Retry-After: a pause like any other."""
    world = await begun(
        tmp_path,
        lambda request: Answer(status=503, retry_after_s=90),
        "http://a.test/1",
        "http://a.test/2",
        seconds=1.0,
    )
    assert "a.test is paused until" in result(world, "http://a.test/2").sentence


async def test_a_retry_waits_for_an_instant_of_its_own(tmp_path):
    """A connection that broke: the next try and when it is due."""
    world = await begun(tmp_path, lambda request: Answer(reason="disconnected"), "http://a.test/1", seconds=1.0)
    found = result(world, "http://a.test/1")
    assert found.queued is not None
    assert found.queued.not_before > world.clock.now()
    assert found.sentence.startswith("Waiting: try 2 of it is due at 20")


def with_robots(body: bytes = ROBOTS, status: int = 200, reason: str = "", silent: bool = False):
    """A site of two pages with a robots.txt."""
    pages = site({"/": ["/private/x", "/open"], "/open": []})

    def web(request):
        if request.kind is FetchKind.ROBOTS:
            return Answer(status=status, body=body, reason=reason, silent=silent)
        return pages(request)

    return web


async def test_the_deciding_line_of_robots_txt_is_named(tmp_path):
    """For a URL that was denied, and for one that never came up."""
    world = await begun(tmp_path, with_robots(), "http://a.test/", robots=True, seconds=60)
    row = {"outcome": "denied", "reason": "robots", "status": 0}
    found = result(world, "http://a.test/private/x", row=row)
    assert found.robots is not None
    assert (found.robots.policy, found.robots.line, found.robots.rule) == ("rules", 2, "Disallow: /private")
    assert found.sentence == "Not crawled: robots.txt forbids it (line 2: Disallow: /private)."
    assert "it would be denied: robots.txt forbids it (line 2" in result(world, "http://a.test/private/y").sentence
    assert result(world, "http://a.test/open").robots == found.robots.__class__(
        "http://a.test", "rules", True, 0, "", 200, "", found.robots.fetched_at, False
    )


async def test_robots_txt_comes_first(tmp_path):
    """Until it is there, its host's URLs wait for it."""
    world = await begun(tmp_path, with_robots(silent=True), "http://a.test/", robots=True)
    assert result(world, "http://a.test/").sentence == "Waiting: robots.txt of a.test is fetched first."


async def test_a_robots_txt_that_failed_forbids_everything(tmp_path):
    """With its status, as this is what its user has to know."""
    world = await begun(tmp_path, with_robots(status=500), "http://a.test/", robots=True, seconds=300)
    found = result(world, "http://a.test/x")
    assert "robots.txt of http://a.test answered 500, which forbids everything for now" in found.sentence


async def test_limits_and_changed_scopes_are_reasons_too(tmp_path):
    """The page budget is spent; a scope given later leaves the URL out."""
    web = site({"/": ["/1", "/2"]})
    world = await begun(tmp_path, web, "http://a.test/", scope=Scope(max_depth=-1, max_pages=1), seconds=10)
    assert "scope.maxPages 1 is reached; with a larger one it is fetched" in result(world, "http://a.test/2").sentence
    paused = crawl_job(JOB, JOB, 2, [], Scope(max_depth=-1), Politeness(delay="1s", respect_robots=False), paused=True)
    world.bus.publish(JOBS, 0, paused)
    world.clock.run_due()
    assert "the job is paused" in result(world, "http://a.test/2").sentence
    changed = crawl_job(
        JOB, JOB, 3, [], Scope(exclude=["/2"], max_depth=-1), Politeness(delay="1s", respect_robots=False), paused=True
    )
    world.bus.publish(JOBS, 0, changed)
    world.clock.run_due()
    assert result(world, "http://a.test/2").sentence == (
        "Not crawled: the scope no longer admits it (excluded by '/2')."
    )


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"outcome": "stored", "reason": "", "status": 200, "bytes": 12345, "fetched_at": "2027-01-15T08:00:00Z"},
            "Stored at 2027-01-15T08:00:00Z: status 200, 12,345 bytes, in the table pages.",
        ),
        (
            {"outcome": "failed", "reason": "http_404", "status": 404, "fetched_at": "2027-01-15T08:00:00Z"},
            "Not crawled: failed (http_404) at 2027-01-15T08:00:00Z: the server answered 404 (not found).",
        ),
        (
            {"outcome": "dropped", "reason": "redirect", "status": 301, "final_url": "http://a.test/2"},
            "Not crawled: it redirects to http://a.test/2; explain that URL.",
        ),
        (
            {"outcome": "dropped", "reason": "content_type", "content_type": "image/png"},
            "Not crawled: its content type image/png is not wanted.",
        ),
        ({"outcome": "denied", "reason": "robots"}, "Not crawled: robots.txt forbade it."),
        (
            {"outcome": "denied", "reason": "address"},
            "Not crawled: its host has only addresses that are not public; --allow-private allows them.",
        ),
        (None, "Not crawled: it was seen and has ended, but nephila.db, where its row belongs, has none."),
    ],
)
async def test_a_url_that_has_ended_is_told_from_its_row(tmp_path, row, sentence):
    """Every outcome has words of its own."""
    world = await begun(tmp_path, site({"/": []}), "http://a.test/", seconds=10)
    assert result(world, "http://a.test/", row=row).sentence == sentence


async def test_nothing_is_changed_by_asking(tmp_path):
    """No commit is pending afterwards and the queues are as before."""
    world = await begun(tmp_path, site({"/": ["/1", "/2"]}), "http://a.test/", delay_s=10.0, seconds=1.0)
    before = world.scheduler.queued
    for url in ("http://a.test/1", "http://a.test/none", "http://b.test/"):
        result(world, url)
    assert world.scheduler.queued == before
    assert world.scheduler.frontier.pending.commits() == []
