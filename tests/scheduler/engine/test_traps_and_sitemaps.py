"""Traps, sitemaps, feeds and server addresses over the whole scheduler, restarts included."""

from __future__ import annotations

import itertools
import re
from array import array
from pathlib import Path

import pytest
from nephila.kernel.bus.contract import Receipt as Ack
from nephila.kernel.documents.job_schema import Traps
from nephila.kernel.messages import FetchKind, FetchRequest, LinkSource, Receipt, Receipts, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import OUTLINKS, RECEIPTS

from tests.scheduler.invariants import check
from tests.scheduler.world import JOB, Answer, World, links_of, site


class Barren(World):
    """A world in which pages below /d/ bring one text, all others one of their own."""

    def _receipt(self, record: Record) -> None:
        text = b"the same" if "/d/" in record.url else record.url_key[8:]
        size = 500 if "/d/" in record.url else record.url_key[9] * 97
        receipt = Receipt(record.url_key, record.fetch_no, record.outcome, text, size_bytes=size)
        self.bus.publish(RECEIPTS, 0, Receipts(record.job, [receipt]))


def endless(request: FetchRequest) -> Answer:
    """/d/1 leads to /d/2 and so on for ever; ten real pages beside it."""
    found = re.search(r"/d/(\d+)$", request.url)
    if found:
        number = int(found[1])
        return Answer(links=[f"http://a.test/d/{n}" for n in (number + 1, number + 2)])
    return Answer(links=["http://a.test/d/1", *(f"http://a.test/real{i}" for i in range(10))])


async def restarted(world: World) -> World:
    """The same crawl in a new program."""
    world.kill()
    clock = ManualClock(world.clock.now(), 77.0)
    again = await type(world)(Path(world.scheduler.config.directory), world.web, clock).start()
    again.rows = world.rows
    return again


async def test_a_trap_by_its_shape_is_dropped(tmp_path: Path) -> None:
    """Three of a host are let through, the rest ends as a trap; seeds are never judged."""
    odd = [f"/x{'/loop' * n}/" for n in range(8, 16)]
    world = await World(tmp_path, site({"/": odd, **{path: [] for path in odd}})).start()
    world.crawl("http://a.test/", f"http://a.test/s{'/loop' * 9}/")
    world.run()
    check(world.scheduler.dispatcher)
    ends = [end for url, end in world.outcomes().items() if "/x/" in url]
    assert sorted(ends) == ["dropped(trap)"] * 5 + ["stored"] * 3
    assert world.outcomes()[f"http://a.test/s{'/loop' * 9}/"].startswith("failed")
    await world.scheduler.close()


@pytest.mark.parametrize("snapshot", [False, True], ids=["log only", "with a snapshot"])
async def test_a_trap_by_its_yield_is_closed_and_released(tmp_path: Path, snapshot: bool) -> None:
    """Closed at its cap with a reason, over a restart too; released by hand it goes on and is not closed again."""
    world: World = await Barren(tmp_path, endless).start()
    world.crawl("http://a.test/", delay_s=0.1, traps=Traps(cap_fetches=10))
    world.run()
    closed = world.scheduler.quarantines("t")
    assert [(q.host, q.released) for q in closed] == [("a.test", False)]
    assert "nothing" in closed[0].reason
    trapped = [f for f in world.fetched if "/d/" in f.url]
    assert 10 <= len(trapped) <= 20
    assert sum("/real" in f.url for f in world.fetched) == 10
    assert "dropped(trap)" in world.outcomes().values()
    if snapshot:
        world.scheduler.snapshot()
    world = await restarted(world)
    world.scheduler.bus.publish(
        OUTLINKS, 0, links_of(FetchRequest("t", bytes(16), "http://a.test/x"), ["http://a.test/d/900"])
    )
    world.run()
    assert world.outcomes()["http://a.test/d/900"] == "dropped(trap)"
    assert world.scheduler.release("t", "a.test", closed[0].place)
    assert not world.scheduler.release("t", "a.test", closed[0].place)
    world.clock.run_due()
    world = await restarted(world)
    world.scheduler.bus.publish(
        OUTLINKS, 0, links_of(FetchRequest("t", bytes(16), "http://a.test/x"), ["http://a.test/d/1000"])
    )
    world.run(20.0)
    check(world.scheduler.dispatcher)
    assert world.outcomes()["http://a.test/d/1000"] == "stored"
    assert len([f for f in world.fetched if "/d/" in f.url]) > 30
    await world.scheduler.close()


class Listing(World):
    """A world whose documents in .xml are lists: their links keep the depth and carry a date."""

    def _parse(self, request: FetchRequest, answer: Answer) -> list[Ack]:
        if not request.url.endswith(".xml"):
            return super()._parse(request, answer)
        links = links_of(request, answer.links)
        links.depth = request.depth
        links.source = LinkSource.FEED if "feed" in request.url else LinkSource.SITEMAP
        links.lastmods = array("d", [self.clock.now()] * len(answer.links)).tobytes()
        answer.links = []
        return [self.bus.publish(OUTLINKS, 0, links), *super()._parse(request, answer)]


async def test_sitemaps_of_seed_hosts_are_found_and_read(tmp_path: Path) -> None:
    """Those that robots.txt names, or the usual one; pages of other hosts that they list are out of scope."""
    pages = {
        "http://a.test/map.xml": ["http://a.test/deep/1", "http://other.test/1", "http://a.test/feed.xml"],
        "http://a.test/feed.xml": ["http://a.test/news"],
        "http://b.test/sitemap.xml": ["http://b.test/deep/2"],
    }

    def web(request: FetchRequest) -> Answer:
        if request.kind is FetchKind.ROBOTS:
            named = request.host == "a.test"
            return Answer(body=b"Sitemap: http://a.test/map.xml") if named else Answer(status=404)
        return Answer(links=list(pages.get(request.url, [])))

    world = await Listing(tmp_path, web).start()
    world.crawl("http://a.test/", "http://b.test/", robots=True, sitemaps=True, delay_s=0.1)
    world.run()
    check(world.scheduler.dispatcher)
    assert set(world.outcomes()) == {
        "http://a.test/", "http://a.test/map.xml", "http://a.test/deep/1", "http://a.test/feed.xml",
        "http://a.test/news", "http://b.test/", "http://b.test/sitemap.xml", "http://b.test/deep/2",
    }  # fmt: skip
    assert set(world.outcomes().values()) == {"stored"}
    await world.scheduler.close()


@pytest.mark.parametrize("later", ["another job", "the same job"])
async def test_sitemaps_of_a_host_whose_robots_txt_is_known(tmp_path: Path, later: str) -> None:
    """A job that wants sitemaps gets them at once, although another job, or itself before, had the host's robots.txt
    read: it is not read again."""

    def web(request: FetchRequest) -> Answer:
        if request.kind is FetchKind.ROBOTS:
            return Answer(body=b"Sitemap: http://a.test/map.xml")
        return Answer(links=["http://a.test/deep/1"] if request.url.endswith("map.xml") else [])

    world = await Listing(tmp_path, web).start()
    world.crawl("http://a.test/", robots=True, delay_s=0.1)
    world.run()
    assert set(world.outcomes()) == {"http://a.test/"}
    world.crawl("http://a.test/", job="k" if later == "another job" else JOB, robots=True, sitemaps=True, delay_s=0.1)
    world.run()
    assert {"http://a.test/map.xml", "http://a.test/deep/1"} <= set(world.outcomes())
    assert sum(one.url.endswith("robots.txt") for one in world.fetched) == 1
    await world.scheduler.close()


class Indexes(Listing):
    """A world whose documents in .xml are sitemap indexes."""

    def _parse(self, request: FetchRequest, answer: Answer) -> list[Ack]:
        if not request.url.endswith(".xml"):
            return super()._parse(request, answer)
        links = links_of(request, answer.links)
        links.depth, links.source = request.depth, LinkSource.SITEMAP
        links.flags = bytes([6 << 1 if link.endswith(".xml") else 0 for link in answer.links])
        answer.links = []
        return [self.bus.publish(OUTLINKS, 0, links), *super(Listing, self)._parse(request, answer)]


@pytest.mark.parametrize("kind", ["index", "urlset", "restarted"])
async def test_an_endless_chain_of_sitemaps_ends(tmp_path: Path, kind: str) -> None:
    """Each lists the next and a page, as a sitemap or as a page that turns out to be one, over restarts too: ten are
    followed, the next is told."""
    suffix = ".xml"

    def web(request: FetchRequest) -> Answer:
        found = re.search(r"/s(\d+)\.xml$", request.url)
        if not found:
            return Answer()
        number = int(found[1])
        return Answer(links=[f"http://a.test/s{number + 1}{suffix}", f"http://a.test/page{number}"])

    world: World = await Indexes(tmp_path, web).start()
    if kind == "urlset":
        world.__class__ = Listing
    world.crawl("http://a.test/s0.xml", delay_s=0.1)
    if kind == "restarted":
        for _ in range(8):
            world.clock.advance(0.35)
            world = await restarted(world)
    world.run()
    check(world.scheduler.dispatcher)
    ends = world.outcomes()
    assert world.done
    assert sum(f.url.endswith(".xml") for f in world.fetched) <= 11
    assert sum(end == "stored" for url, end in ends.items() if url.endswith(".xml")) == 11
    assert {f"http://a.test/page{n}" for n in range(10)} <= ends.keys()
    if kind != "urlset":
        assert ends["http://a.test/s11.xml"] == "dropped(sitemap_chain)"
    await world.scheduler.close()


async def test_sitemaps_of_a_host_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many that indexes list are followed, some more are told, the rest is nothing."""
    monkeypatch.setattr("nephila.scheduler.engine.admission.MAX_SITEMAPS", 20)
    monkeypatch.setattr("nephila.scheduler.engine.admission.SITEMAPS_REPORTED", 5)

    def web(request: FetchRequest) -> Answer:
        parent = request.url.removesuffix(".xml")
        return Answer(links=[f"{parent}-{n}.xml" for n in range(7)] if parent.count("-") < 3 else [])

    world = await Indexes(tmp_path, web).start()
    world.crawl("http://a.test/s.xml", delay_s=0.1)
    world.run()
    check(world.scheduler.dispatcher)
    ends = list(world.outcomes().values())
    assert (ends.count("stored"), ends.count("dropped(sitemap_limit)")) == (21, 5)
    assert len(ends) == 26
    await world.scheduler.close()


class OneServer(World):
    """All hosts on one address."""

    @staticmethod
    def address_of(host: str) -> str:
        """The same for all."""
        return "192.0.2.7"


async def test_hosts_of_one_server_stand_in_line(tmp_path: Path) -> None:
    """Once the address is known starts lie a gap apart and connections are bounded, for two jobs together."""
    hosts = [f"h{i}.test" for i in range(12)]
    pages = {f"http://{host}/{i}": [f"http://{host}/{i + 1}"] for host in hosts for i in range(6)}
    world = await OneServer(tmp_path, site(pages), address_gap_s=0.5, per_address=2).start()
    for job in ("one", "two"):
        world.crawl(*(f"http://{host}/0" for host in hosts), job=job, delay_s=0.01)
    world.clock.advance(20.0)
    known = [f for f in world.fetched if f.start > 1002.0]
    starts = sorted(f.start for f in known)
    assert len(starts) > 30
    assert all(after - before >= 0.5 - 1e-6 for before, after in itertools.pairwise(starts))
    check(world.scheduler.dispatcher)
    world.run()
    check(world.scheduler.dispatcher)
    assert world.done
    await world.scheduler.close()
