"""Requests through proxies in the pipeline: retries, give-backs, classes, sessions, slots. No page is lost."""

from __future__ import annotations

import pytest
from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.proxy_port import WAIT_S
from nephila.kernel import messages as m
from nephila.kernel.topics import JOBS, REQUESTS
from nephila_proxies.endpoint import parse_endpoint
from nephila_proxies.proxy import ALIVE, EVICTED, REFUSED
from nephila_proxies.selection import MAX_GIVE_BACKS

from tests.downloader.downloader_room import answer
from tests.jobs import crawl_job
from tests.proxies.proxy_room import ProxyRoom as Room

PROXIES = [f"http://p{number}:80 class={'residential' if number == 2 else 'datacenter'}" for number in range(3)]
OK = m.FetchResult.FETCHED


def via(room: Room) -> list[str]:
    """The proxies of all fetches so far; "-": direct."""
    routes = [fetch.request.route for fetch in room.fetcher.fetches]
    return ["-" if route.proxy is None else route.proxy.name.removeprefix("http://") for route in routes]


async def started(*urls: str, proxies: list[str] = PROXIES, job: m.CrawlJob | None = None, **settings: object) -> Room:
    """A room with requests under way."""
    room = Room(None, proxies, per_address=0, **settings)
    await room.downloader.start()
    if job is not None:
        room.bus.publish(JOBS, 0, job)
    for number, url in enumerate(urls):
        room.request(url, url_key=bytes([number]) * 16)
    await room.settle()
    return room


async def test_requests_of_a_host_walk_the_ring() -> None:
    """The route carries the checked address, and the page has the address of the server."""
    room = await started("http://a.test/1", "http://a.test/2", "http://b.test/", per_host=5)
    assert via(room) == ["p0:80", "p1:80", "p0:80"]
    hop = room.fetcher.fetches[0].request.route.proxy
    assert hop is not None
    assert (hop.host, hop.port, hop.tunnel) == ("8.8.8.8", 80, True)
    made = answer(200, b"x")
    made.address = "203.0.113.1"
    room.reply(0, made)
    assert (room.outcomes[0].result, room.outcomes[0].address) == (OK, "8.8.8.8")


@pytest.mark.parametrize("reason", ["proxy", "connect", "tls"])
async def test_a_fault_before_the_request_is_repeated_through_the_next_proxy(reason: str) -> None:
    """No outcome is published in between, and the attempt is the same."""
    room = await started("http://a.test/")
    room.reply(0, answer(0, reason=reason, detail="x"))
    await room.settle()
    assert via(room) == ["p0:80", "p1:80"]
    assert not room.outcomes
    room.reply(1, answer(200, b"x"))
    assert [outcome.result for outcome in room.outcomes] == [OK]
    assert all(proxy.used == 0 for proxy in room.pool.proxies())
    assert sum(room.selection.faults.values()) == 1


async def test_a_wrong_certificate_at_one_proxy_only_is_a_lie() -> None:
    """The proxy is evicted as soon as another one shows the right certificate."""
    room = await started("https://a.test/")
    room.reply(0, answer(0, reason="tls", detail="certificate"))
    await room.settle()
    room.reply(1, answer(200, b"x"))
    states = {proxy.endpoint.host: proxy.state for proxy in room.pool.proxies()}
    assert states["p0"] is EVICTED


@pytest.mark.parametrize("reason", ["tls", "connect"])
async def test_what_all_proxies_report_is_the_result(reason: str) -> None:
    """A server with a wrong certificate costs no proxy."""
    room = await started("https://a.test/")
    for number in range(3):
        room.reply(number, answer(0, reason=reason, detail="x"))
        await room.settle()
    assert [(outcome.result, outcome.reason) for outcome in room.outcomes] == [(m.FetchResult.FAILED, reason)]
    assert all(proxy.state is not EVICTED for proxy in room.pool.proxies())


@pytest.mark.parametrize(
    "response",
    [
        answer(403),
        answer(429),
        answer(0, reason="disconnected", detail="x"),
        answer(0, reason="timeout", detail="headers: x"),
    ],
)
async def test_a_ban_or_a_break_gives_the_request_back(response: object) -> None:
    """The server may have seen it: the delay of its host applies, no attempt is counted; after some times it counts."""
    room = await started("http://a.test/")
    for number in range(MAX_GIVE_BACKS + 1):
        room.reply(number, response)  # type: ignore[arg-type]
        for proxy in room.pool.proxies():
            proxy.bans.clear()
            proxy.success = 1.0
        if number < MAX_GIVE_BACKS:
            room.request("http://a.test/", url_key=bytes(16))
            await room.settle()
    results = [outcome.result for outcome in room.outcomes]
    assert results == [m.FetchResult.UNSPECIFIED] * MAX_GIVE_BACKS + [m.FetchResult.FAILED]
    assert room.outcomes[0].reason == "proxy"
    assert room.outcomes[0].started_at > 0
    assert len(set(via(room)[:3])) == 3


@pytest.mark.parametrize(("names", "refusal"), [("local", answer(0, reason="proxy_auth")), ("proxy", answer(407))])
async def test_wrong_credentials_end_a_proxy(names: str, refusal: HttpResponse) -> None:
    """407 of a proxy is never the status of a page."""
    room = await started("http://a.test/", proxies__names=names)
    room.reply(0, refusal)
    await room.settle()
    room.reply(1, answer(200, b"x"))
    assert [outcome.result for outcome in room.outcomes] == [OK]
    assert [proxy.state for proxy in room.pool.proxies() if proxy.endpoint.host == "p0"] == [REFUSED]


async def test_a_407_of_the_server_without_a_tunnel_evicts_no_proxy() -> None:
    """The request is repeated by CONNECT, where a 407 is the server's."""
    room = await started("http://a.test/", proxies__names="proxy")
    room.reply(0, answer(407))
    await room.settle()
    assert not room.outcomes
    hop = room.fetcher.fetches[1].request.route.proxy
    assert hop is not None
    assert hop.tunnel
    room.reply(1, answer(407))
    assert [(outcome.result, outcome.status) for outcome in room.outcomes] == [(m.FetchResult.FAILED, 407)]
    assert all(proxy.state is ALIVE for proxy in room.pool.proxies())


async def test_a_407_of_the_server_behind_proxies_without_connect() -> None:
    """Proxies that permit no CONNECT to port 80 stay in the pool; the status is the result."""
    room = await started("http://a.test/", proxies__names="proxy")
    room.reply(0, answer(407))
    for number in range(1, 4):
        await room.settle()
        room.reply(number, answer(0, reason="tunnel_403", detail="x"))
    await room.settle()
    assert [(outcome.result, outcome.status) for outcome in room.outcomes] == [(m.FetchResult.FAILED, 407)]
    assert all(proxy.state is ALIVE for proxy in room.pool.proxies())


async def test_a_server_that_never_answers_behind_connect_evicts_no_proxy() -> None:
    """The proxy accepts the TCP connection at once; only its server does not."""
    room = await started("http://a.test/")
    for number in range(3):
        room.reply(number, answer(0, reason="timeout", detail="tunnel: no connection through the proxy within 10 s"))
        await room.settle()
    assert [(outcome.result, outcome.reason) for outcome in room.outcomes] == [(m.FetchResult.FAILED, "timeout")]
    assert all(proxy.state is ALIVE and proxy.success > 0.7 for proxy in room.pool.proxies())


async def test_a_server_that_answers_407_costs_no_proxy() -> None:
    """In a tunnel the status is the server's: it is the result, and no further proxy sends the request at once."""
    room = await started("http://a.test/")
    room.reply(0, answer(407))
    await room.settle()
    assert [(outcome.result, outcome.status) for outcome in room.outcomes] == [(m.FetchResult.FAILED, 407)]
    assert via(room) == ["p0:80"]
    assert all(proxy.state is ALIVE for proxy in room.pool.proxies())


async def test_without_a_working_proxy_the_host_waits_and_later_the_request_fails() -> None:
    """It is never fetched directly."""
    room = await started("http://a.test/", proxies=PROXIES[:1])
    room.reply(0, answer(0, reason="proxy", detail="refused"))
    await room.settle()
    assert (room.outcomes[0].result, room.outcomes[0].reason) == (m.FetchResult.UNSPECIFIED, "proxy")
    assert (room.outcomes[0].retry_after_s, room.outcomes[0].started_at) == (WAIT_S, 0.0)
    (proxy,) = room.pool.proxies()
    room.pool.check_failed(proxy, room.clock.monotonic())
    for _ in range(2):
        room.request("http://a.test/")
        await room.settle()
        room.clock.advance(700)
    assert [outcome.result for outcome in room.outcomes[1:]] == [m.FetchResult.UNSPECIFIED, m.FetchResult.FAILED]
    assert room.outcomes[2].reason == "proxy"
    assert via(room) == ["p0:80"]


async def test_a_job_chooses_a_class_and_a_url_another() -> None:
    """The context of a URL wins over its job, the job over the setting."""
    room = await started(job=crawl_job("j", proxy_class="residential"), per_host=9)
    room.request("http://a.test/1")
    room.request("http://a.test/2", context=m.Context(proxy_class="direct"))
    room.request("http://a.test/3", context=m.Context(proxy_class="datacenter"))
    room.request("http://a.test/4", job="other")
    await room.settle()
    assert via(room) == ["p2:80", "-", "p0:80", "p0:80"]


async def test_hosts_without_proxy() -> None:
    """Exact names and names below a suffix."""
    urls = ("http://a.test/", "http://x.b.test/", "http://b.test/")
    room = await started(*urls, no_proxy=("a.test", "*.b.test"))
    assert via(room) == ["-", "-", "p0:80"]


async def test_a_session_keeps_its_proxy_until_it_dies() -> None:
    """Requests of a job with a login, and of a named session."""
    room = await started(per_host=9)
    for number in range(3):
        room.request(f"http://a.test/{number}", context=m.Context(session="s"))
    await room.settle()
    assert via(room) == ["p0:80"] * 3
    room.reply(0, answer(0, reason="proxy", detail="x"))
    await room.settle()
    room.request("http://a.test/9", context=m.Context(session="s"))
    await room.settle()
    assert via(room)[3:] == ["p1:80", "p1:80"]


async def test_a_request_waits_for_a_slot() -> None:
    """The first one that waits starts when a slot is freed."""
    room = await started("http://a.test/", "http://b.test/", proxies=PROXIES[:1], proxies__slots=1)
    assert via(room) == ["p0:80"]
    room.reply(0, answer(200, b"x"))
    await room.settle()
    assert via(room) == ["p0:80", "p0:80"]


async def test_the_guard_holds_when_the_proxy_resolves_names() -> None:
    """Literal private addresses and names that are private here are refused; unknown names only by proxy_only."""
    for names, results in (("proxy", ["denied", "denied", "failed"]), ("proxy_only", ["denied", "denied"])):
        room = await started(proxies__names=names, proxies=PROXIES)
        room.names.table["inner.test"] = ("10.0.0.1",)
        for url in ("http://127.0.0.1/", "http://inner.test/"):
            room.request(url)
        room.bus.publish(REQUESTS, 5, m.FetchRequest("j", b"u" * 16, "http://unknown.test/", "unknown.test", epoch=7))
        for _ in range(3):
            await room.settle()
        assert [outcome.result.name.lower() for outcome in room.outcomes] == results
        assert len(room.fetcher.fetches) == (names == "proxy_only")


async def test_proxies_that_all_refuse_connect_are_named_with_status_and_count() -> None:
    """The request fails at once with the reason no_tunnel; the next one dials no proxy for this port at all."""
    room = await started("http://a.test/")
    for number, status in enumerate((403, 405, 403)):
        room.reply(number, answer(0, reason=f"tunnel_{status}", detail="refuses"))
        await room.settle()
    (outcome,) = room.outcomes
    assert (outcome.result, outcome.reason) == (m.FetchResult.FAILED, "no_tunnel")
    assert "refuse CONNECT to port 80 (status 403: 2, 405: 1)" in outcome.detail
    assert "proxies.names: proxy" in outcome.detail
    room.request("http://b.test/", url_key=b"b" * 16)
    await room.settle()
    assert [one.reason for one in room.outcomes] == ["no_tunnel"] * 2
    assert len(room.fetcher.fetches) == 3
    assert all(proxy.state is ALIVE for proxy in room.pool.proxies()), "other ports may work"
    room.request("https://b.test/", url_key=b"c" * 16)
    await room.settle()
    assert len(room.fetcher.fetches) == 4


async def test_a_proxy_that_is_not_checked_yet_may_open_the_tunnel() -> None:
    """The host waits for it."""
    room = await started("http://a.test/", proxies=PROXIES[:1])
    room.pool.replace("other", [parse_endpoint("http://late:80")])
    room.reply(0, answer(0, reason="tunnel_403", detail="refuses"))
    await room.settle()
    assert (room.outcomes[0].result, room.outcomes[0].reason) == (m.FetchResult.UNSPECIFIED, "no_tunnel")
    assert room.outcomes[0].retry_after_s == WAIT_S


async def test_proxies_that_pass_checks_and_serve_nothing_end_a_request() -> None:
    """`proxies.give_up_s` counts from the last success, not from the last proxy that was picked."""
    room = await started("http://a.test/", proxies=PROXIES[:1], proxies__give_up_s=600.0)
    (proxy,) = room.pool.proxies()
    results = []
    for number in range(20):
        room.reply(number, answer(0, reason="proxy", detail="does not speak HTTP"))
        await room.settle()
        results = [outcome.result for outcome in room.outcomes]
        if results[-1] is m.FetchResult.FAILED:
            break
        room.clock.advance(60.0)
        room.pool.check_passed(proxy, 0.1, room.clock.monotonic())
        proxy.success = 0.8
        room.request("http://a.test/", url_key=bytes(16))
        await room.settle()
    assert results == [m.FetchResult.UNSPECIFIED] * 10 + [m.FetchResult.FAILED]
    assert (room.outcomes[-1].reason, room.outcomes[-1].detail) == ("proxy", "does not speak HTTP")
