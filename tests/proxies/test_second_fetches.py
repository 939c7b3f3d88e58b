"""Proxies that lie: second fetches through other proxies, votes, one body for many hosts, pages fetched again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import ManualClock
from nephila_proxies.endpoint import parse_endpoint
from nephila_proxies.pool import LIE_S, ProxyPool
from nephila_proxies.proxy import ALIVE, CANDIDATE, LIAR, Proxy
from nephila_proxies.second_fetches import FETCHES, FIRST_PAGES, SAME_BODY_HOSTS, SecondFetches
from nephila_proxies.signature import signature_of
from nephila_proxies.store import PoolFile

from tests.downloader.downloader_room import answer
from tests.proxies.proxy_room import ProxyRoom as Room

TRUE = b"<title>News</title>" + b" ".join(b"word%d" % number for number in range(200))
LIE = b"<title>Win</title>" + b" ".join(b"prize%d" % number for number in range(200))
RETRACTED, FETCHED = m.FetchResult.RETRACTED, m.FetchResult.FETCHED


def changed(body: bytes) -> bytes:
    """The same page with another time and token."""
    return body.replace(b"word7 ", b"12:00:01 ").replace(b"word90 ", b"token-8f1 ")


async def room_of(count: int, trusted: bool = False, share: float = 0.0001, **settings: object) -> Room:
    """A room with so many proxies; `trusted`: each was confirmed often enough."""
    lines = [f"http://p{number}:80" for number in range(count)]
    room = Room(None, lines, per_address=0, proxies__second_share=share, **settings)
    for proxy in room.pool.proxies():
        proxy.agreed = FIRST_PAGES if trusted else 0
    await room.downloader.start()
    return room


async def fetch(room: Room, url: str, bodies: dict[str, bytes], key: int = 1, fetch_no: int = 3) -> list[str]:
    """Fetch a URL until it has a result, each proxy with its own body; the proxies used."""
    used: list[str] = []
    ended = len([one for one in room.outcomes if one.result in (FETCHED, m.FetchResult.FAILED)])
    for _ in range(FETCHES + 2):
        room.request(url, url_key=bytes([key]) * 16, fetch_no=fetch_no)
        await room.settle()
        hop = room.fetcher.fetches[-1].request.route.proxy
        assert hop is not None
        name = hop.name.removeprefix("http://").removesuffix(":80")
        used.append(name)
        room.reply(len(room.fetcher.fetches) - 1, answer(200, bodies.get(name, TRUE)))
        if len([one for one in room.outcomes if one.result in (FETCHED, m.FetchResult.FAILED)]) > ended:
            return used
    raise AssertionError(f"no result after {used}")


async def test_the_first_pages_of_a_proxy_are_confirmed_by_another() -> None:
    """The first response is given back, so the delay of the host applies; the second one is the page."""
    room = await room_of(3)
    assert await fetch(room, "http://a.test/", {"p1": changed(TRUE)}) == ["p0", "p1"]
    first = room.outcomes[0]
    assert (first.result, first.reason) == (m.FetchResult.UNSPECIFIED, "second_fetch")
    assert first.started_at > 0
    assert [page.body for page in room.pages] == [changed(TRUE)]
    assert [proxy.agreed for proxy in room.pool.proxies()] == [1, 1, 0]


async def test_trusted_proxies_are_sampled() -> None:
    """No second fetch but by chance; with share 0 none at all."""
    room = await room_of(3, trusted=True)
    assert await fetch(room, "http://a.test/", {}) == ["p0"]
    room = await room_of(3, trusted=True, share=1.0)
    assert await fetch(room, "http://a.test/", {}) == ["p0", "p1"]
    room = await room_of(3, share=0.0)
    assert await fetch(room, "http://a.test/", {}) == ["p0"]


@pytest.mark.parametrize("liar", ["p0", "p1", "p2"])
async def test_the_outvoted_proxy_has_lied(liar: str) -> None:
    """Its page is not the result, and it is not used for the host again; other hosts may use it."""
    room = await room_of(3)
    await fetch(room, "http://a.test/1", {liar: LIE}, key=1)
    await fetch(room, "http://a.test/2", {liar: LIE}, key=2)
    await fetch(room, "http://a.test/3", {liar: LIE}, key=3)
    assert {page.body for page in room.pages} == {TRUE}
    found = room.pool.find(f"http://{liar}:80")
    assert found is not None
    assert (found.state, set(found.lies)) == (ALIVE, {"a.test"})
    assert liar not in await fetch(room, "http://a.test/4", {liar: LIE}, key=4)
    used = [await fetch(room, f"http://{host}.test/", {}, key=9) for host in "bcde"]
    assert any(liar in names for names in used)


async def test_pages_of_a_liar_are_fetched_again() -> None:
    """A proxy that begins to lie: with the first lie the pages of that host, with the second host all of them."""
    room = await room_of(3, trusted=True)
    bodies = {"p0": LIE + b"a"}
    await fetch(room, "http://a.test/1", bodies, key=1)
    await fetch(room, "http://b.test/1", {"p0": LIE + b"b"}, key=2)
    await fetch(room, "http://c.test/1", {}, key=3)
    assert [page.body for page in room.pages] == [LIE + b"a", LIE + b"b", TRUE]
    liar = room.pool.find("http://p0:80")
    assert liar is not None
    liar.agreed = 0  # sampled from here on
    for _ in range(3):  # the host walks the ring
        await fetch(room, "http://a.test/2", bodies, key=4)
    retracted = [one for one in room.outcomes if one.result is RETRACTED]
    assert [(one.url_key[0], one.fetch_no, one.status) for one in retracted] == [(1, 3, 200)]
    assert retracted[0].request is not None
    assert retracted[0].request.url == "http://a.test/1"
    for _ in range(3):
        await fetch(room, "http://b.test/2", bodies, key=5)
    retracted = [one for one in room.outcomes if one.result is RETRACTED]
    assert {one.url_key[0] for one in retracted} == {1, 2, 3}
    assert (liar.state, room.selection.retracted) == (LIAR, 3)
    assert room.pages[-1].body == TRUE


async def test_a_page_that_always_changes_accuses_nobody() -> None:
    """Three responses without a word in common: the last one is the page."""
    room = await room_of(3)
    bodies = {f"p{number}": TRUE.replace(b"word", b"w%d-" % number) for number in range(3)}
    assert len(await fetch(room, "http://a.test/", bodies)) == 3
    assert room.selection.second_fetches.undecided == 1
    assert not any(proxy.lies for proxy in room.pool.proxies())


async def test_one_body_for_many_hosts_is_a_lie() -> None:
    """Found without a sample, at the third host; the two pages before are fetched again."""
    room = await room_of(4, trusted=True)
    bodies = {"p0": b"short lie"}
    for number in range(SAME_BODY_HOSTS):
        await fetch(room, f"http://{number}.test/", bodies, key=number)
    room.selection.second_fetches.check()
    retracted = [one for one in room.outcomes if one.result is RETRACTED]
    assert [page.body for page in room.pages] == [b"short lie", b"short lie", TRUE]
    liar = room.pool.find("http://p0:80")
    assert liar is not None
    assert set(liar.lies) == {"0.test", "1.test", "2.test"}, "a lie for each host that it came for"
    assert (len(retracted), liar.state) == (2, LIAR)


async def test_proxies_that_lie_alike_on_one_host_do_not_confirm_each_other() -> None:
    """One body for several URLs is doubted: the pages before are fetched again, and the honest proxy that the liars
    have outvoted is taken back."""
    room = await room_of(5)
    bodies = {"p0": LIE, "p1": LIE}
    for number in range(12):
        path, body = f"http://a.test/{number}", TRUE.replace(b"word7 ", b"page%d " % number)
        honest = {f"p{proxy}": body + b" text%d" % number * 90 for proxy in (2, 3, 4)}
        await fetch(room, path, {**honest, **bodies}, key=number)
    room.selection.second_fetches.check()
    again = {one.request.url for one in room.outcomes if one.result is RETRACTED and one.request is not None}
    lies = {page.url for page in room.pages if page.body == LIE}
    assert lies <= again, "each page of a liar is fetched again"
    assert {proxy.name[7:9] for proxy in room.pool.proxies() if "a.test" in proxy.lies} == {"p0", "p1"}
    used = await fetch(room, "http://a.test/last", bodies, key=99)
    assert not {"p0", "p1"} & set(used)


async def test_one_page_at_many_urls_of_a_host_is_true() -> None:
    """The shell of an application: three proxies return it, and from then on it is no doubt."""
    room = await room_of(4, trusted=True)
    shell = {f"p{number}": b"<div id=app></div>" for number in range(4)}
    used = [await fetch(room, f"http://a.test/{number}", shell, key=number) for number in range(6)]
    assert [len(names) for names in used] == [1, 1, 3, 1, 1, 1]
    assert not any(proxy.lies for proxy in room.pool.proxies())


async def test_one_body_of_many_hosts_that_three_proxies_return_is_true() -> None:
    """Parked domains."""
    room = await room_of(4, trusted=True)
    parked = {f"p{number}": b"parked" for number in range(4)}
    used = [await fetch(room, f"http://{number}.test/", parked, key=number) for number in range(6)]
    assert [len(names) for names in used] == [1, 1, 3, 1, 1, 1]
    assert all(proxy.state is ALIVE and not proxy.lies for proxy in room.pool.proxies())


async def test_a_single_proxy_is_used_without_a_comparison() -> None:
    """It is counted, since no lie can be found."""
    room = await room_of(1)
    assert await fetch(room, "http://a.test/", {}) == ["p0"]
    assert room.selection.second_fetches.unchecked == 1


@pytest.mark.parametrize("url", ["https://a.test/", "http://a.test/"])
async def test_https_needs_no_second_fetch(url: str) -> None:
    """The certificate of the server proves what it sends."""
    room = await room_of(2)
    assert len(await fetch(room, url, {})) == (1 if url.startswith("https") else 2)


async def test_a_redirected_robots_txt_is_compared_at_its_own_url_only() -> None:
    """The responses of two URLs are never compared with each other."""
    room = await room_of(3)
    for number in range(8):
        if len(room.outcomes) == len(room.fetcher.fetches) or not number:
            room.request("http://a.test/robots.txt", kind=m.FetchKind.ROBOTS, job="", url_key=b"r" * 16)
        await room.settle()
        at_start = room.fetcher.urls[number] == "http://a.test/robots.txt"
        reply = answer(301, location="/real.txt") if at_start else answer(200, b"User-agent: *")
        room.reply(number, reply)
        await room.settle()
        if room.outcomes and room.outcomes[-1].result is FETCHED:
            break
    paths = [url.removeprefix("http://a.test") for url in room.fetcher.urls]
    assert paths == ["/robots.txt", "/robots.txt", "/real.txt"]
    assert not any(proxy.lies for proxy in room.pool.proxies())


async def test_failed_second_fetches_end() -> None:
    """Each further proxy breaks: the request is not given back for ever."""
    room = await room_of(3)
    results = []
    for number in range(12):
        room.request("http://a.test/", url_key=b"x" * 16)
        await room.settle()
        if len(room.fetcher.fetches) <= number:
            break
        room.reply(number, answer(200, TRUE) if number % 2 == 0 else answer(0, reason="disconnected", detail="x"))
        for proxy in room.pool.proxies():
            proxy.success = 1.0
        results = [one.result for one in room.outcomes]
        if results[-1] is not m.FetchResult.UNSPECIFIED:
            break
    assert results[-1] is FETCHED
    assert len(results) <= 6


def test_a_liar_stays_out_over_a_restart_and_gets_a_new_chance(tmp_path: Path) -> None:
    """Checks do not readmit it: an honest answer to the check page proves nothing."""
    clock = ManualClock()
    room = Room(None, ["http://p0:80", "http://p1:80"], clock=clock)
    pool, now = room.pool, clock.monotonic()
    for proxy in pool.proxies():
        proxy.endpoint = parse_endpoint(proxy.name)
    liar = pool.find("http://p0:80")
    assert liar is not None
    assert [pool.lied(liar, host, now) for host in ("a.test", "b.test")] == [False, True]
    pool.check_passed(liar, 0.1, now)
    file = PoolFile(str(tmp_path / "pool.json"), clock)
    file.save(pool.proxies())
    stored = {proxy.name: proxy for proxy in file.load()}["http://p0:80"]
    assert (stored.state, set(stored.lies)) == (LIAR, {"a.test", "b.test"})
    assert stored.check_at == pytest.approx(now + LIE_S)
    named = ProxyPool()
    named.replace("settings", [parse_endpoint("http://p0:80", trusted=True)])
    named.restore_trust(stored)
    assert [(proxy.state, proxy.agreed) for proxy in named.proxies()] == [(LIAR, 0)]
    assert liar not in pool.due(now + LIE_S - 1)
    assert liar in pool.due(now + LIE_S)
    assert (liar.state, liar.lies) == (CANDIDATE, {})


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many hosts, bodies and doubted requests."""
    for name in ("MAX_DOUBTS", "MAX_BODIES"):
        monkeypatch.setattr(f"nephila_proxies.second_fetches.{name}", 10)
    seconds = SecondFetches(1.0, random.Random(1))
    proxy = Proxy(parse_endpoint("http://p:1"))

    class Target:
        host = "a.test"

    for number in range(50):
        request = m.FetchRequest("j", number.to_bytes(16, "big"), "http://a.test/", "a.test")
        seconds.judge(proxy, request, Target(), answer(200, b"%d" % number), lambda _: True)  # type: ignore[arg-type]
    assert (len(seconds._doubts), len(seconds._bodies)) == (10, 10)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (answer(200, TRUE), answer(200, changed(TRUE)), True),
        (answer(200, TRUE), answer(200, LIE), False),
        (answer(200, b"short"), answer(200, b"short"), True),
        (answer(200, b"short"), answer(200, b"other"), False),
        (answer(200, TRUE), answer(404, TRUE), False),
        (answer(302, location="/a"), answer(302, location="/b"), False),
        (answer(304), answer(304), True),
    ],
)
def test_what_is_alike(one: object, other: object, alike: bool) -> None:
    """Status, target, bytes, words."""
    assert signature_of(one).is_like(signature_of(other)) is alike  # type: ignore[arg-type]
