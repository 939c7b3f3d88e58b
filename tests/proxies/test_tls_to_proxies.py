"""https proxies: TLS to the proxy, and TLS to the server within it; certificates, credentials and faults."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.native import NativeFetcher
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.process.process_setup import run_loop
from nephila.kernel.runtime.clock import SystemClock
from nephila_proxies.endpoint import parse_endpoint
from nephila_proxies.proxy import Proxy
from nephila_proxies.selection import LOCAL, PROXY, route_through

from tests.contracts.fetcher_server import Server, get, response
from tests.fetcher_fixtures import MakeFetcher, settings
from tests.proxy_server import Mood, ProxyServer

GOOD = response(b"x" * 100_000, "Content-Type: text/html")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Issues all certificates."""
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """The same; the downloader trusts it."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return authority


def tls_of(authority: trustme.CA, name: str) -> ssl.SSLContext:
    """TLS of a server with a certificate for this name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def through(
    proxy: ProxyServer, url: str, names: str = LOCAL, credentials: str = "", scheme: str = "https"
) -> HttpRequest:
    """A request led through a proxy with the name proxy.test on loopback."""
    target = TargetUrl(url)
    known = Proxy(parse_endpoint(f"{scheme}://{credentials}proxy.test:{proxy.port}"))
    known.addresses = ("127.0.0.1",)
    return HttpRequest(target, route_through(known, target, direct_route(target, ("127.0.0.1",), target.port), names))


@pytest.mark.parametrize("names", [LOCAL, PROXY])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_page_through_an_https_proxy(
    make_fetcher: MakeFetcher, trusted: trustme.CA, scheme: str, names: str
) -> None:
    """The proxy receives a CONNECT in every case; both certificates are checked."""
    inside = tls_of(trusted, "site.test") if scheme == "https" else False
    proxy_server = ProxyServer(user="u", tls=tls_of(trusted, "proxy.test"))
    async with Server(GOOD, tls=inside) as server, proxy_server as proxy:
        proxy.hosts["site.test"] = ("127.0.0.1", server.port)
        request = through(proxy, f"{scheme}://site.test:{server.port}/a", names, "u@")
        answer = await get(make_fetcher(tls_verify=True), request)
        assert (answer.status, answer.reason, len(answer.body)) == (200, "", 100_000), answer.detail
        asked = "127.0.0.1" if names == LOCAL else "site.test"
        assert dict(proxy.asked) == {f"{asked}:{server.port}": 1}
        assert server.requests[0].startswith("GET /a HTTP/1.1\r\n")
        assert "proxy" not in server.requests[0].lower()


async def test_a_tunnel_is_used_again(authority: trustme.CA) -> None:
    """A kept connection through the proxy serves the next page of its server."""
    fetcher = NativeFetcher(settings(), SystemClock())
    async with (
        Server(GOOD, tls=tls_of(authority, "site.test")) as server,
        ProxyServer(tls=tls_of(authority, "proxy.test")) as proxy,
    ):
        for _ in range(3):
            answer = await get(fetcher, through(proxy, f"https://site.test:{server.port}/"))
            assert len(answer.body) == 100_000
        assert (server.connections, sum(proxy.asked.values())) == (1, 1)
    await fetcher.close()


async def test_the_certificate_of_the_proxy_is_checked(make_fetcher: MakeFetcher, trusted: trustme.CA) -> None:
    """A proxy with the certificate of another name receives no request and no credentials: reason proxy."""
    async with Server(GOOD) as server, ProxyServer(tls=tls_of(trusted, "other.test")) as proxy:
        answer = await get(make_fetcher(tls_verify=True), through(proxy, f"http://site.test:{server.port}/"))
        assert answer.reason == "proxy"
        assert "certificate" in answer.detail
        assert (proxy.asked, server.connections) == ({}, 0)


async def test_the_certificate_of_the_server_is_checked(make_fetcher: MakeFetcher, trusted: trustme.CA) -> None:
    """TLS to the proxy does not stand for TLS to the server: reason tls."""
    proxy_server = ProxyServer(tls=tls_of(trusted, "proxy.test"))
    async with Server(GOOD, tls=tls_of(trusted, "other.test")) as server, proxy_server as proxy:
        answer = await get(make_fetcher(tls_verify=True), through(proxy, f"https://site.test:{server.port}/"))
        assert (answer.reason, answer.body, server.requests) == ("tls", b"", [])


def test_the_event_loop_of_the_program(trusted: trustme.CA) -> None:
    """TLS within TLS over the loop that crawls run on: a page, then a server with a wrong certificate."""

    async def pages() -> list[str]:
        fetcher, found = NativeFetcher(settings(tls_verify=True), SystemClock()), []
        async with ProxyServer(tls=tls_of(trusted, "proxy.test")) as proxy:
            for name in ("site.test", "other.test"):
                async with Server(GOOD, tls=tls_of(trusted, name)) as server:
                    answer = await get(fetcher, through(proxy, f"https://site.test:{server.port}/"))
                    found.append(answer.reason or str(len(answer.body)))
        await fetcher.close()
        return found

    assert run_loop(pages()) == ["100000", "tls"]


@pytest.mark.parametrize(
    ("mood", "reason"),
    [
        (Mood.DEAD, "proxy"),
        (Mood.GATEWAY, "connect"),
        (Mood.BROKEN, "disconnected"),
        (Mood.SLOW, "timeout"),
        (Mood.SILENT, "timeout"),
    ],
)
async def test_faults_of_an_https_proxy(
    make_fetcher: MakeFetcher, authority: trustme.CA, mood: Mood, reason: str
) -> None:
    """The same reasons as without TLS."""
    async with Server(GOOD) as server, ProxyServer(tls=tls_of(authority, "proxy.test")) as proxy:
        proxy.become(mood)
        limit_s = 0.5 if reason == "timeout" else 60.0
        fetcher = make_fetcher(connect_timeout_s=limit_s, headers_timeout_s=limit_s)
        answer = await get(fetcher, through(proxy, f"http://site.test:{server.port}/"))
        assert answer.reason == reason, answer.detail
        assert not server.requests


async def test_a_port_without_tls(make_fetcher: MakeFetcher) -> None:
    """An http proxy that a list names as https."""
    async with ProxyServer() as proxy:
        answer = await get(make_fetcher(connect_timeout_s=0.5), through(proxy, "http://site.test/"))
        assert answer.reason in ("proxy", "timeout")
        assert not proxy.asked


async def test_wrong_credentials_over_tls(make_fetcher: MakeFetcher, authority: trustme.CA) -> None:
    """407: the proxy refuses, and its password is in no text."""
    async with ProxyServer(user="u", tls=tls_of(authority, "proxy.test")) as proxy:
        answer = await get(make_fetcher(), through(proxy, "http://site.test/", credentials="u:wrong@"))
        assert answer.reason == "proxy_auth"
        assert "wrong" not in answer.detail


@pytest.mark.parametrize(
    ("scheme", "version"),
    [
        ("http", ssl.TLSVersion.TLSv1_2),
        ("http", ssl.TLSVersion.TLSv1_3),
        # Not TLS 1.2 within TLS: asyncio of Python 3.11 does not notice that its handshake has ended.
        ("https", ssl.TLSVersion.TLSv1_3),
    ],
)
async def test_a_server_within_a_tunnel_that_demands_a_client_certificate(
    make_fetcher: MakeFetcher, trusted: trustme.CA, scheme: str, version: ssl.TLSVersion
) -> None:
    """The word is that of a direct connection, and not that of a proxy that fails."""
    inside = tls_of(trusted, "site.test")
    trusted.configure_trust(inside)
    inside.verify_mode, inside.maximum_version = ssl.CERT_REQUIRED, version
    outside = tls_of(trusted, "proxy.test") if scheme == "https" else None
    async with Server(GOOD, tls=inside) as server, ProxyServer(tls=outside) as proxy:
        proxy.hosts["site.test"] = ("127.0.0.1", server.port)
        request = through(proxy, f"https://site.test:{server.port}/a", scheme=scheme)
        answer = await get(make_fetcher(tls_verify=True), request)
        assert (answer.reason, answer.cause) == ("tls", "tls_client_certificate"), answer.detail
