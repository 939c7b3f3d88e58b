"""`explain` names the right reason for one URL of each kind."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from nephila.kernel.documents.budget_schema import DomainBudget, HostBudget
from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import Quota, Recrawl, Scope
from nephila.kernel.messages import FetchKind, Quarantine, Receipt, Receipts, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import RECEIPTS
from nephila.native import parse_url, partition_of
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.recovery import restore
from nephila.scheduler.frontier.host_table import novelty_of
from nephila_control.explain import facts
from nephila_control.explain.explain import Explanation, explain
from nephila_control.explain.facts import LOOKED_AT, Home
from nephila_control.explain.kinds import Kind

from tests.scheduler.world import JOB, Answer, World, site

DAY = 86_400.0
UP = Home("o", True)


class Town(World):
    """A world whose receipts tell the status, as storage's do."""

    def _receipt(self, record: Record) -> None:
        receipt = Receipt(record.url_key, record.fetch_no, record.outcome, status=record.status)
        self.bus.publish(RECEIPTS, partition_of(record.url_key, 4), Receipts(record.job, [receipt]))


class Case(NamedTuple):
    """A world at the instant of the question."""

    world: World
    url: str
    row: dict[str, Any] | None = None
    attempts: dict[tuple[str, bytes], int] | None = None
    fetches: tuple[dict[str, Any], ...] = ()
    running: bool = True

    def reported(self) -> Explanation:
        scheduler = self.world.scheduler
        now = self.world.clock.monotonic()
        return explain(
            scheduler.dispatcher,
            scheduler.frontier.jobs[JOB],
            self.url,
            now,
            attempts=self.attempts,
            row=self.row,
            fetches=self.fetches,
            running=self.running,
            home=UP,
        )


async def begun(tmp_path: Path, web: Any, *seeds: str, seconds: float = 0.0, **options: Any) -> Town:
    """A crawl some seconds after its start; settings of the scheduler come as `config`."""
    world = Town(tmp_path, web, **options.pop("config", {}))
    await world.start()
    world.crawl(*seeds or ("http://a.test/",), **options)
    world.clock.advance(seconds)
    return world


async def restarted(tmp_path: Path, world: World) -> tuple[World, dict[tuple[str, bytes], int]]:
    """The same directory, read by another process."""
    again = World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0))
    log = CommitLog(tmp_path, read_only=True)
    found = restore(again.scheduler.dispatcher, log.recover(), again.clock.monotonic(), again.clock.now())
    return again, found.attempts


def ended(world: World, url: str, **more: Any) -> Case:
    """A URL that has a row, and that row."""
    record = world.rows[parse_url(url).fingerprint]
    row = {
        "outcome": record.outcome.name.lower(),
        "reason": record.reason,
        "status": record.status,
        "final_url": record.final_url,
        "content_type": record.content_type,
        "fetch_no": record.fetch_no,
        "fetched_at": utc(record.fetched_at),
        "sha256": "",
        **more,
    }
    return Case(world, url, row)


def utc(seconds: float) -> str:
    """ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


Maker = Callable[[Path], Awaitable[Case]]
CASES: list[tuple[str, str, Maker]] = []
"""Kind, what the sentence must hold, and the world that makes it so."""


def case(kind: str, says: str) -> Callable[[Maker], Maker]:
    """Enter a maker into the table."""

    def enter(maker: Maker) -> Maker:
        CASES.append((kind, says, maker))
        return maker

    return enter


def robots_of(body: bytes = b"User-agent: *\nDisallow: /no\n", **answer: Any) -> Any:
    """A site of one page and its robots.txt."""
    pages = site({"/": ["/no", "/yes"], "/yes": []})

    def web(request: Any) -> Answer:
        return Answer(body=body, **answer) if request.kind is FetchKind.ROBOTS else pages(request)

    return web


# ---- ended


@case("stored", "Stored at 2027-01-15T08:00:00Z: status 0, 0 bytes, in the table pages.")
async def stored(tmp_path: Path) -> Case:
    return ended(await begun(tmp_path, site({"/": []}), seconds=5), "http://a.test/", fetched_at="2027-01-15T08:00:00Z")


@case("watched", "; watched for changes, fetched again at 20")
async def watched(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5, recrawl=Recrawl(every=duration_text(DAY)))
    return ended(world, "http://a.test/")


@case("watched", "; fetch 2 of it: try 1 of it is under way")
async def fetched_again(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5, recrawl=Recrawl(every=duration_text(DAY)))
    world.web = lambda request: Answer(silent=True)
    while not world.scheduler.frontier.in_flight.leases:
        world.clock.advance(300.0)
    return ended(world, "http://a.test/")


@case("gone", "3 times in a row it was missing (404 or 410), so it counts as gone")
async def gone(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({}), seconds=6 * DAY, recrawl=Recrawl(every=duration_text(DAY)))
    return ended(world, "http://a.test/")


@case(
    "copy_kept", "Stored at 2027-01-15T08:00:00Z, and that copy is kept; the last fetch brought none: failed (http_404)"
)
async def copy_kept(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5, recrawl=Recrawl(every=duration_text(DAY)))
    world.web = site({})
    world.clock.advance(1.5 * DAY)
    history = ({"outcome": "stored", "fetched_at": "2027-01-15T08:00:00Z"}, {"outcome": "failed", "attempt": 1})
    return ended(world, "http://a.test/", sha256="ab" * 32)._replace(fetches=history)


@case("robots", "Not crawled: robots.txt forbids it (line 2: Disallow: /no).")
async def robots(tmp_path: Path) -> Case:
    return ended(await begun(tmp_path, robots_of(), robots=True, seconds=9), "http://a.test/no")


@case("robots", "robots.txt of http://a.test answered 500, which forbids everything for now")
async def robots_broken(tmp_path: Path) -> Case:
    return ended(await begun(tmp_path, robots_of(status=500), robots=True, seconds=60), "http://a.test/")


@case("address", "only addresses that are not public; --allow-private allows them")
async def address(tmp_path: Path) -> Case:
    world = await begun(tmp_path, robots_of(reason="address", dialled=False), robots=True, seconds=9)
    return ended(world, "http://a.test/")


@case("requisite", "its answer is in the archive alone")
async def requisite(tmp_path: Path) -> Case:
    world = await begun(tmp_path, lambda request: Answer(), "http://a.test/", seconds=60)
    return ended(world, "http://a.test/", outcome="dropped", reason="requisite")


@case("near_copy", "nearly that of another page, and its job skips near-copies: http://a.test/first.")
async def near_copy(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5)
    return ended(world, "http://a.test/", outcome="dropped", reason="near_copy", near_copy_of="http://a.test/first")


@case("failed", "Z after 3 tries: its server broke the connection off before the answer was whole.")
async def failed(tmp_path: Path) -> Case:
    world = await begun(tmp_path, lambda request: Answer(reason="disconnected"), seconds=60)
    return ended(world, "http://a.test/")._replace(fetches=({"attempt": 3},))


@case("failed", "the server answered 410 (gone).")
async def failed_with_a_status(tmp_path: Path) -> Case:
    return ended(await begun(tmp_path, lambda request: Answer(status=410), seconds=5), "http://a.test/")


@case("redirect", "it redirects to http://a.test/2; explain that URL")
async def redirect(tmp_path: Path) -> Case:
    def web(request: Any) -> Answer:
        return Answer(status=301, location="http://a.test/2") if request.url.endswith("/") else Answer()

    return ended(await begun(tmp_path, web, seconds=5), "http://a.test/")


@case("content_type", "its content type  is not wanted")
async def content_type(tmp_path: Path) -> Case:
    from nephila.kernel.messages import FetchResult

    world = await begun(tmp_path, lambda request: Answer(result=FetchResult.CONTENT_TYPE), seconds=5)
    return ended(world, "http://a.test/")


@case("sitemaps", "Not crawled: it is the end of a chain of more than ten sitemap indexes and redirects.")
async def sitemap_chain(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5)
    return Case(world, "http://a.test/s11.xml", {"outcome": "dropped", "reason": "sitemap_chain"})


@case("link", "Not crawled: its page has more new links than are taken of one page; scope.linksPerPage takes more.")
async def link_left_out(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ["/1", "/2"]}), scope=Scope(max_depth=-1, links_per_page=1), seconds=9)
    return ended(world, "http://a.test/2")


@case("link", "Not crawled: the link was recorded with its text, as recordLinks of the job says.")
async def link_recorded(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ["/1"]}), seconds=9, record_links=True)
    return ended(world, "http://a.test/1")


@case("excluded", "Not crawled: the scope no longer admits it (excluded by '/2').")
async def excluded(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ["/1", "/2"]}), seconds=0.5)
    world.crawl(scope=Scope(exclude=["/2"], max_depth=-1))
    world.run()
    return ended(world, "http://a.test/2")


ODD = [f"/x{n}" + "/so/on" * 4 for n in range(5)]


@case("trap_shape", "it has the shape of a trap: path repeats the segments so/on 4 times")
async def trap_shape(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ODD}), seconds=60)
    assert sorted(o for o in world.outcomes().values() if o == "dropped(trap)") == ["dropped(trap)"] * 2
    return ended(world, "http://a.test" + ODD[4])


@case("trap_shape", "if one did, it would be dropped: it has the shape of a trap")
async def trap_shape_unseen(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": ODD}), seconds=60), "http://a.test/y" + "/so/on" * 4)


@case("unknown", "it would be crawled (host a.test is a seed host)")
async def odd_but_let_through(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": []}), seconds=5), "http://a.test/y" + "/so/on" * 4)


@case("trap_shape", "path repeats the segments so/on 4 times; it is dropped when its turn comes")
async def trap_shape_queued(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": ODD}), seconds=3.5), "http://a.test" + ODD[4])


def close(world: World, place: str = "/cal/") -> None:
    """What happens when a part of a host has brought nothing for long."""
    frontier = world.scheduler.frontier
    quarantine = Quarantine(JOB, "a.test", place, "nothing new in its last 100 fetches of 100", 1.8e9, 100)
    job, host = frontier.jobs[JOB], frontier.hosts.get_or_create("a.test")
    novelty_of(host, job).restore(quarantine)
    frontier.note_quarantine(job, host, quarantine)


@case("trap_quarantine", "release it with: nephila jobs release t a.test /cal/ --out o.")
async def trap_quarantine(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ["/cal/1"]}), seconds=0.5)
    close(world)
    world.run()
    return ended(world, "http://a.test/cal/1")


@case(
    "trap_quarantine", "Never found: no page fetched so far links to it; if one did, it would be dropped: /cal/ of a."
)
async def trap_quarantine_unseen(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5)
    close(world)
    return Case(world, "http://a.test/cal/2")


@case("trap_quarantine", "was closed as a trap (nothing new in its last 100 fetches of 100); it has been released")
async def trap_released(tmp_path: Path) -> Case:
    found = await trap_quarantine(tmp_path)
    assert found.world.scheduler.release(JOB, "a.test", "/cal/")
    return found


@case("trap", "Not crawled: it was found to be part of a trap when its turn came.")
async def trap(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}), seconds=5)
    return Case(world, "http://a.test/", {"outcome": "dropped", "reason": "trap"})


@case("seen", "Not crawled: it was seen and has ended, but nephila.db, where its row belongs, has none.")
async def seen(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": []}), seconds=5), "http://a.test/")


# ---- on the way


@case(
    "leased",
    "Waiting: try 1 of it is under way, handed out at 2027-01-15T08:00:00Z, taken back at 2027-01-15T08:03:00Z",
)
async def leased(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": []})), "http://a.test/")


@case("fetched", "its page is not stored yet")
async def fetched(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": []}))
    world.hold_receipts = True
    world.clock.advance(5.0)
    return Case(world, "http://a.test/")


@case("ending", "it has ended without a page; its row is not stored yet")
async def ending(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({}))
    world.hold_receipts = True
    world.clock.advance(5.0)
    return Case(world, "http://a.test/")


@case("interrupted", "so it is fetched again; nothing runs; continue with: nephila up --out o.")
async def interrupted(tmp_path: Path) -> Case:
    world, attempts = await restarted(tmp_path, await begun(tmp_path, site({"/": []})))
    return Case(world, "http://a.test/", attempts=attempts, running=False)


# ---- queued


@case("paused", "the job is paused; nephila jobs resume t --out o")
async def paused(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": []}), paused=True), "http://a.test/")


@case("paused", "the job is paused; nephila jobs resume t --out o")
async def paused_while_its_host_waits(tmp_path: Path) -> Case:
    """What somebody has to change comes before what passes."""
    found = await delay(tmp_path)
    found.world.crawl(paused=True, delay_s=10.0)
    return found


@case("budget_job", "scope.maxPages 1 is reached")
async def budget_job(tmp_path: Path) -> Case:
    scope = Scope(max_depth=-1, max_pages=1)
    return Case(await begun(tmp_path, site({"/": ["/1"]}), scope=scope, seconds=5), "http://a.test/1")


@case("budget_job", "the last of 1 pages are in flight")
async def budget_job_on_its_way(tmp_path: Path) -> Case:
    scope = Scope(max_depth=-1, max_pages=1)
    world = await begun(tmp_path, site({"/": []}), "http://a.test/", "http://b.test/", scope=scope)
    return Case(world, "http://b.test/")


@case(
    "quota",
    "the quota of the job t, 1 pages per run, is used up; with a larger one, or in the next period, it is fetched",
)
async def quota(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ["/1"]}), seconds=5, quota=Quota(pages=1))
    return Case(world, "http://a.test/1")


@case("window", "the job waits for its window, 22:00-06:00 UTC, until 20")
async def window(tmp_path: Path) -> Case:
    world = World(tmp_path, site({"/": ["/1"]}))
    world.clock.jump(86_400.0 - world.clock.now() % 86_400.0 + 12 * 3_600.0)
    await world.start()
    world.crawl("http://a.test/", windows=["22:00-06:00"])
    return Case(world.run(5.0), "http://a.test/")


@case("budget_host", "the budget of 2 fetches per host is spent for a.test; with a larger one it is fetched")
async def budget_host(tmp_path: Path) -> Case:
    world = await begun(tmp_path, site({"/": ["/1", "/2"]}), seconds=9, host_budget=HostBudget(pages=2))
    return Case(world, "http://a.test/2")


@case("budget_host", "it would be left out: the budget of 2 fetches per host is spent")
async def budget_host_unseen(tmp_path: Path) -> Case:
    return (await budget_host(tmp_path))._replace(url="http://a.test/9")


@case("budget_domain", "held back: its domain farm.test has used 100 of 100 requests; the budget grows with the crawl")
async def budget_domain(tmp_path: Path) -> Case:
    farm = [f"http://x{number}.farm.test/" for number in range(300)]
    pages = {"/": farm, **{url: [] for url in farm}}
    scope = Scope(mode="any", max_depth=-1)
    world = await begun(tmp_path, site(pages), seconds=60, scope=scope, domains=DomainBudget(1, from_hosts=0))
    table = world.scheduler.frontier.jobs[JOB].domains
    assert table is not None
    return Case(world, f"http://{world.scheduler.frontier.store.name(next(iter(table.parked)))}/")


@case("budget_domain", "it would be held back or left out: its domain farm.test has used 100 of 100 requests")
async def budget_domain_unseen(tmp_path: Path) -> Case:
    return (await budget_domain(tmp_path))._replace(url="http://unknown.farm.test/")


@case("queue_full", "a.test has 2 URLs queued, as many as it may")
async def queue_full(tmp_path: Path) -> Case:
    web = site({"/": ["/1", "/2", "/3"]})
    return Case(await begun(tmp_path, web, seconds=0.5, host_budget=HostBudget(queued=2)), "http://a.test/3")


@case("retry", "try 2 of it is due at 20")
async def retry(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, lambda request: Answer(reason="disconnected"), seconds=1), "http://a.test/")


@case("backing_off", "because it refused or timed out")
async def backing_off(tmp_path: Path) -> Case:
    seeds = ("http://a.test/1", "http://a.test/2")
    return Case(await begun(tmp_path, lambda request: Answer(status=429), *seeds, seconds=1), "http://a.test/2")


@case("backing_off", "because it refused or timed out; nothing runs")
async def backing_off_after_a_restart(tmp_path: Path) -> Case:
    world, _ = await restarted(tmp_path, (await backing_off(tmp_path)).world)
    return Case(world, "http://a.test/2", running=False)


@case("delay", "a.test is fetched from every 10 s, next at 20")
async def delay(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": ["/1"]}), delay_s=10.0, seconds=1), "http://a.test/1")


@case("delay", "a.test is fetched from every 10 s, next at 20")
async def delay_after_a_back_off(tmp_path: Path) -> Case:
    """The host answers again: its back-off is remembered, but it is the delay that is waited for."""
    asked = []

    def web(request: Any) -> Answer:
        asked.append(request.url)
        return Answer(status=429) if len(asked) == 1 else Answer()

    world = await begun(tmp_path, web, *(f"http://a.test/{n}" for n in range(3)), delay_s=10.0)
    while len(asked) < 2:
        world.clock.advance(1.0)
    world.clock.advance(1.0)
    assert Case(world, "http://a.test/2").reported().host.backoff_s > 0
    return Case(world, "http://a.test/2")


@case("pause", "longer than its delay of 1 s: the host requested it, or the delay was longer then")
async def pause(tmp_path: Path) -> Case:
    """Its Retry-After is remembered as a pause, not as a step of a back-off."""
    seeds = ("http://a.test/1", "http://a.test/2")
    world = await begun(tmp_path, lambda request: Answer(status=503, retry_after_s=90), *seeds, seconds=1)
    world, _ = await restarted(tmp_path, world)
    return Case(world, "http://a.test/2")


@case("robots_retry", "robots.txt of a.test could not be fetched and is fetched again at 20")
async def robots_retry(tmp_path: Path) -> Case:
    web = robots_of(reason="disconnected")
    return Case(await begun(tmp_path, web, robots=True, seconds=0.5), "http://a.test/")


@case("address_line", "its server address 192.0.2.187 is busy; ba.test is number 1 of 2 hosts in its queue")
async def address_line(tmp_path: Path) -> Case:
    seeds = [f"http://{host}.test/{n}" for n in range(3) for host in ("ab", "ba")]
    world = await begun(tmp_path, lambda request: Answer(), *seeds, seconds=2, config={"address_gap_s": 50.0})
    assert world.address_of("ab.test") == world.address_of("ba.test")
    world.clock.advance(2.0)
    lined = next(iter(world.scheduler.frontier.readiness.waiting_for_address))
    assert world.scheduler.frontier.store.name(lined) == "ba.test"
    return Case(world, "http://ba.test/2")


@case("robots_first", "robots.txt of a.test is fetched first")
async def robots_first(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, robots_of(silent=True), robots=True), "http://a.test/")


@case("behind", "2 URLs of a.test go before it")
async def behind(tmp_path: Path) -> Case:
    world = await begun(tmp_path, lambda request: Answer(silent=True), *(f"http://a.test/{n}" for n in range(4)))
    return Case(world, "http://a.test/3")


@case("next", "it is the next of a.test, after the request that is in flight")
async def next_of_its_host(tmp_path: Path) -> Case:
    return (await behind(tmp_path))._replace(url="http://a.test/1")


# ---- never met


@case("out_of_scope", "Not crawled: host b.test is not a seed host.")
async def out_of_scope(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": ["http://b.test/"]}), seconds=5), "http://b.test/")


@case("copy", "but for a session id it is http://a.test/p, which is known under other ids")
async def copy(tmp_path: Path) -> Case:
    ids = [f"/p;jsessionid={n}A1B2C3D4E5F60718" for n in range(4)]
    return Case(await begun(tmp_path, site({"/": ids}), seconds=9), "http://a.test" + ids[3])


@case(
    "unknown", "Never found: no page fetched so far links to it; if one did, it would be crawled (host a.test is a seed"
)
async def unknown(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": []}), seconds=5), "http://a.test/never")


@case("unknown", "links to it within depth 2; if one did")
async def below_the_depth_of_the_job(tmp_path: Path) -> Case:
    scope = Scope(max_depth=2)
    return Case(await begun(tmp_path, site({"/": []}), seconds=5, scope=scope), "http://a.test/never")


@case(
    "unknown",
    "within depth 1 (live setting depth of the scheduler; taken back with: nephila service settings depth= --out o)",
)
async def below_the_depth_of_a_member(tmp_path: Path) -> Case:
    """The smaller limit is named."""
    world = await begun(tmp_path, site({"/": []}), seconds=5, scope=Scope(max_depth=2))
    world.scheduler.frontier.depth_limit = 1
    return Case(world, "http://a.test/never")


@case(
    "too_deep", "Not crawled: a link leads to it at depth 1, and links are followed within depth 0; it is crawled when"
)
async def a_link_that_lies_too_deep(tmp_path: Path) -> Case:
    return Case(await begun(tmp_path, site({"/": ["/1"]}), seconds=5, scope=Scope(max_depth=0)), "http://a.test/1")


@case("unknown", "links to it within depth 2; if one did")
async def a_depth_of_a_member_above_that_of_the_job(tmp_path: Path) -> Case:
    """The limit of the job counts."""
    world = await begun(tmp_path, site({"/": []}), seconds=5, scope=Scope(max_depth=2))
    world.scheduler.frontier.depth_limit = 3
    return Case(world, "http://a.test/never")


@pytest.mark.parametrize(("kind", "says", "maker"), CASES, ids=[maker.__name__ for _, _, maker in CASES])
async def test_each_kind_is_named(tmp_path, kind, says, maker):
    """The kind, the words of the sentence, and an opening that fits the state."""
    reported = (await maker(tmp_path)).reported()
    assert (reported.kind, says in reported.sentence) == (kind, True), reported.sentence
    opening = {"stored": "Stored at ", "not_crawled": "Not c", "waiting": "Waiting: ", "never_found": "Never found: "}
    assert reported.sentence.startswith(opening[reported.state])
    assert reported.owner == "this program"


def test_every_kind_has_a_case_and_stands_in_the_docs():
    """docs/explain.md says of each what it means and what to do."""
    kinds = set(get_args(Kind))
    assert {kind for kind, _, _ in CASES} == kinds
    text = (Path(__file__).parents[3] / "docs" / "explain.md").read_text()
    assert [kind for kind in sorted(kinds) if f"| `{kind}` " not in text] == []


# ---- facts


async def test_what_is_spent_of_each_budget(tmp_path):
    """Limits that the job does not have are left out."""
    budget = HostBudget(pages=2, bytes=10**6)
    world = await begun(
        tmp_path,
        site({"/": ["/1", "/2"], "/1": []}),
        seconds=9,
        host_budget=budget,
        scope=Scope(max_depth=-1, max_pages=50),
    )
    found = Case(world, "http://a.test/2").reported().budget
    assert [(one.what, one.used, one.limit) for one in found.limits] == [
        ("pages of the job", 2, 50),
        ("fetches of the host", 2, 2),
        ("bytes of the host", 0, 10**6),
    ]
    assert (found.spent, found.on_way) == ("host", 0)


async def test_what_the_next_fetch_follows_from(tmp_path):
    """Interval, estimated rate and instant; none of it where nothing is fetched again."""
    world = await begun(tmp_path, site({"/": []}), seconds=5, recrawl=Recrawl(min="3600s", max=duration_text(14 * DAY)))
    found = Case(world, "http://a.test/").reported().recrawl
    assert found is not None
    assert (found.policy, found.fetch_no, found.out, found.gone) == ("adaptive", 1, False, False)
    assert found.next_at == pytest.approx(found.fetched_at + found.interval_s, abs=1.0)
    assert found.changes_per_day == pytest.approx(0.25, rel=0.01)
    world.crawl()
    assert Case(world, "http://a.test/").reported().recrawl is None


async def test_a_url_far_behind_is_known_to_be_queued(tmp_path, monkeypatch):
    """Beyond what is searched nothing but its place is missing; one that has ended is not taken for queued."""
    seeds = [f"http://a.test/{n}" for n in range(8)]
    world = await begun(tmp_path, lambda request: Answer(), *seeds, seconds=1.5)
    monkeypatch.setattr(facts, "LOOKED_AT", 2)
    reported = Case(world, seeds[7]).reported()
    assert (reported.kind, reported.queued.position, reported.queued.of) in (("behind", 0, 6), ("delay", 0, 6))
    assert Case(world, seeds[0], {"outcome": "stored"}).reported().queued is None
    assert Case(world, "http://a.test/never").reported().kind == "unknown"
    assert LOOKED_AT > 1000


async def test_a_copy_that_is_due_is_known_to_be_queued_far_behind(tmp_path, monkeypatch):
    """It has its row, and its next fetch waits."""
    seeds = [f"http://a.test/{n}" for n in range(8)]
    world = await begun(
        tmp_path, lambda request: Answer(), *seeds, seconds=60, recrawl=Recrawl(every=duration_text(DAY))
    )
    world.crawl(recrawl=Recrawl(every=duration_text(DAY)), delay_s=20_000.0)
    world.clock.advance(1.1 * DAY)
    waiting = [url for url in seeds if Case(world, url).reported().queued]
    assert len(waiting) > 3
    monkeypatch.setattr(facts, "LOOKED_AT", 1)
    reported = ended(world, waiting[-1]).reported()
    assert (reported.queued.position, reported.queued.fetch_no) == (0, 2)
    assert "; fetch 2 of it: " in reported.sentence
