"""Both fetchers through a real proxy: CONNECT, SOCKS5 and whole URLs; names resolved here or there; faults."""

from __future__ import annotations

import pytest
from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse
from nephila.downloader.http.native import NativeFetcher
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.runtime.clock import SystemClock
from nephila_proxies.endpoint import parse_endpoint
from nephila_proxies.proxy import Proxy
from nephila_proxies.selection import LOCAL, PROXY, route_through

from tests.contracts.fetcher_server import Server, get, response
from tests.fetcher_fixtures import MakeFetcher, settings
from tests.proxy_server import Mood, ProxyServer

HTML = "Content-Type: text/html"


def through(proxy: ProxyServer, url: str, scheme: str = "http", names: str = LOCAL, line: str = "") -> HttpRequest:
    """A request for a URL whose server is on loopback, led through a proxy."""
    target = TargetUrl(url)
    known = Proxy(parse_endpoint(line or proxy.url(scheme)))
    known.addresses = ("127.0.0.1",)
    return HttpRequest(target, route_through(known, target, direct_route(target, ("127.0.0.1",), target.port), names))


async def fetch(fetcher: Fetcher, request: HttpRequest) -> HttpResponse:
    """One response."""
    return await get(fetcher, request)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("tls", [False, True])
async def test_names_resolved_here(make_fetcher: MakeFetcher, scheme: str, tls: bool) -> None:
    """The proxy receives the checked address, never the name; the server receives path and name."""
    async with Server(response(b"x", HTML), tls=tls) as server, ProxyServer(user="u") as proxy:
        url = f"http{'s' if tls else ''}://site.test:{server.port}/a?b"
        answer = await fetch(make_fetcher(), through(proxy, url, scheme))
        assert (answer.status, answer.reason, answer.body) == (200, "", b"x")
        assert dict(proxy.asked) == {f"127.0.0.1:{server.port}": 1}
        assert server.requests[0].startswith("GET /a?b HTTP/1.1\r\n")
        assert f"Host: site.test:{server.port}\r\n" in server.requests[0]
        assert "proxy" not in server.requests[0].lower()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("tls", [False, True])
async def test_names_resolved_by_the_proxy(make_fetcher: MakeFetcher, scheme: str, tls: bool) -> None:
    """The proxy receives the name: in the request line, in CONNECT or in the SOCKS5 request."""
    async with Server(response(b"x", HTML), tls=tls) as server, ProxyServer(user="u") as proxy:
        proxy.hosts["site.test"] = ("127.0.0.1", server.port)
        url = f"http{'s' if tls else ''}://site.test:{server.port}/a?b"
        answer = await fetch(make_fetcher(), through(proxy, url, scheme, PROXY))
        assert (answer.status, answer.reason, answer.body) == (200, "", b"x")
        assert dict(proxy.asked) == {f"site.test:{server.port}": 1}
        assert server.requests[0].startswith("GET /a?b HTTP/1.1\r\n")


async def test_a_tunnel_is_used_again_for_the_same_server_only() -> None:
    """A kept connection belongs to proxy, user, scheme, host and port."""
    fetcher = NativeFetcher(settings(), SystemClock())
    async with Server(response(b"x", HTML)) as one, Server(response(b"y", HTML)) as other, ProxyServer() as proxy:
        for _ in range(2):
            assert (await fetch(fetcher, through(proxy, f"http://site.test:{one.port}/"))).body == b"x"
        assert (await fetch(fetcher, through(proxy, f"http://site.test:{other.port}/"))).body == b"y"
        assert dict(proxy.asked) == {f"127.0.0.1:{one.port}": 1, f"127.0.0.1:{other.port}": 1}
        direct = TargetUrl(f"http://site.test:{one.port}/")
        await fetch(fetcher, HttpRequest(direct, direct_route(direct, ("127.0.0.1",), one.port)))
        assert (one.connections, sum(proxy.asked.values())) == (2, 2)
    await fetcher.close()


@pytest.mark.parametrize("names", [LOCAL, PROXY])
async def test_a_dead_proxy_is_the_reason(make_fetcher: MakeFetcher, names: str) -> None:
    """Nothing listens on its port."""
    async with ProxyServer() as proxy:
        request = through(proxy, "http://site.test/", names=names)
    answer = await fetch(make_fetcher(), request)
    assert answer.reason == "proxy"
    assert "127.0.0.1" in answer.detail


@pytest.mark.parametrize(
    ("mood", "scheme", "reason"),
    [
        (Mood.DEAD, "http", "proxy"),
        (Mood.DEAD, "socks5", "proxy"),
        (Mood.GATEWAY, "http", "connect"),
        (Mood.GATEWAY, "socks5", "connect"),
        (Mood.BROKEN, "http", "disconnected"),
        (Mood.SLOW, "socks5", "timeout"),
    ],
)
async def test_faults_of_a_tunnel(make_fetcher: MakeFetcher, mood: Mood, scheme: str, reason: str) -> None:
    """The reason says where the fetch broke: before the tunnel, at the server, or within the response."""
    async with Server(response(b"x", HTML)) as server, ProxyServer() as proxy:
        proxy.become(mood)
        fetcher = make_fetcher(headers_timeout_s=0.3 if reason == "timeout" else 60.0)
        answer = await fetch(fetcher, through(proxy, f"http://site.test:{server.port}/", scheme))
        assert answer.reason == reason, answer.detail
        assert not server.requests


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_tunnel_that_does_not_open(make_fetcher: MakeFetcher, scheme: str) -> None:
    """The proxy is connected, so the time-out is not one of the connection to it."""
    async with ProxyServer() as proxy:
        proxy.become(Mood.SILENT)
        answer = await fetch(make_fetcher(connect_timeout_s=0.5), through(proxy, "http://site.test/", scheme))
        assert (answer.reason, answer.detail.partition(":")[0]) == ("timeout", "tunnel")


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_wrong_credentials(make_fetcher: MakeFetcher, scheme: str) -> None:
    """407, or the refusal of SOCKS5."""
    async with Server(response(b"x", HTML)) as server, ProxyServer(user="u") as proxy:
        line = f"{scheme}://u:wrong@127.0.0.1:{proxy.port}"
        answer = await fetch(make_fetcher(), through(proxy, f"http://site.test:{server.port}/", scheme, line=line))
        assert answer.reason == "proxy_auth"
        assert "wrong" not in answer.detail
        assert not server.requests


async def test_a_lie_within_tls_is_a_wrong_certificate(make_fetcher: MakeFetcher) -> None:
    """A proxy that answers in the place of an https server cannot show its certificate."""
    async with Server(response(b"x", HTML), tls=True) as server, ProxyServer() as proxy:
        proxy.become(Mood.LYING)
        answer = await fetch(
            make_fetcher(headers_timeout_s=0.5, connect_timeout_s=0.5),
            through(proxy, f"https://site.test:{server.port}/"),
        )
        assert answer.reason in ("tls", "timeout")
        assert not answer.body
