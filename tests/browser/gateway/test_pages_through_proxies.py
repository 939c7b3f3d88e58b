"""A page that uses a proxy: all its requests leave through that one, and the limits of the gateway hold."""

from __future__ import annotations

import pytest
from gateway_client import DOCUMENT, Client, client_of
from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila_proxies.proxy import ALIVE

from tests.contracts.fetcher_server import Server, response
from tests.proxy_server import Mood, ProxyServer
from tests.waits import until

PAGE = response(b"<p>page", "Content-Type: text/html")


async def route_of(client: Client, url: str) -> Route:
    """The route that the pipeline would give the page."""
    target = TargetUrl(url)
    proxies = client.router.proxies
    assert proxies is not None
    await until(lambda: (found := list(proxies.pool.proxies())) and all(one.state is ALIVE for one in found))
    use = await proxies.lease(m.FetchRequest("j", url=url, host=target.host), target, await client.router.route(target))
    assert use is not None
    return use.route


@pytest.mark.parametrize("names", ["local", "proxy"])
@pytest.mark.parametrize("proxy_scheme", ["http", "socks5"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_all_requests_of_a_page_use_its_proxy(scheme: str, proxy_scheme: str, names: str) -> None:
    """Two proxies: both pages have one each. A host of `no_proxy` is dialled directly."""
    async with Server(PAGE, tls=scheme == "https") as server:
        hosts = {"site.test": ("127.0.0.1", server.port), "cdn.test": ("127.0.0.1", server.port)}
        async with ProxyServer(hosts, "u", "p") as first, ProxyServer(hosts, "u", "p") as second:
            settings = {
                "proxies__sources": (first.url(proxy_scheme), second.url(proxy_scheme)),
                "proxies__names": names,
                "no_proxy": ("direct.test",),
            }
            async with client_of(server, **settings) as client:
                url = f"{scheme}://site.test/"
                client.register(url, route=await route_of(client, url))
                for path in ("site.test/", "site.test/script", "cdn.test/data", "direct.test/x"):
                    headers = DOCUMENT if path == "site.test/" else {}
                    assert (await client.get(f"{scheme}://{path}", headers)).body == b"<p>page", path
                result = client.result()
                assert result.document is not None
                assert (result.requests, result.blocked) == (4, {})
                used = [sum(one.asked.values()) for one in (first, second)]
                assert 0 in used, "one proxy for the whole page"
                assert sum(used) >= 2
                client.register(url, route=await route_of(client, url))
                assert (await client.get(url, DOCUMENT)).status == 200
                assert all(sum(one.asked.values()) for one in (first, second)), "the next page has the next proxy"


async def test_a_private_address_is_refused_before_the_proxy() -> None:
    async with ProxyServer() as proxy:
        settings = {"proxies__sources": (proxy.url(),), "host_map": ("site.test=8.8.8.8", "inside.test=10.0.0.1")}
        async with client_of(None, **settings) as client:
            client.register("http://site.test/", route=await route_of(client, "http://site.test/"))
            for url in ("http://inside.test/", "http://169.254.169.254/", "http://127.0.0.1/"):
                assert (await client.get(url)).status == 403
            assert client.result().blocked == {"address": 3}
            assert not proxy.asked


async def test_a_dead_proxy_is_the_reason_of_the_page() -> None:
    """The pipeline repeats the page through the next one."""
    async with (
        Server(PAGE) as server,
        ProxyServer() as proxy,
        client_of(server, proxies__sources=(proxy.url(),)) as client,
    ):
        client.register("http://site.test/", route=await route_of(client, "http://site.test/"))
        proxy.become(Mood.DEAD)
        assert (await client.get("http://site.test/", DOCUMENT)).status == 502
        assert client.result().reason == "proxy"


async def test_a_page_without_a_proxy_dials_directly() -> None:
    """Its job has the class direct."""
    async with (
        Server(PAGE) as server,
        ProxyServer() as proxy,
        client_of(server, proxies__sources=(proxy.url(),)) as client,
    ):
        client.register("http://site.test/")
        assert (await client.get("http://site.test/", DOCUMENT)).status == 200
        assert not proxy.asked
