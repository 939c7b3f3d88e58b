"""A gateway between a client of the tests and scripted servers."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from nephila.downloader.http.fetchers import make_fetcher
from nephila.downloader.routing.router import Router
from nephila.downloader.service import make_router
from nephila.kernel.runtime.clock import SystemClock
from nephila_browser.contract import Credentials, FetchLimits, GatewayAddress, GatewayResult
from nephila_browser.gateway.gateway import ForwardingGateway, make_gateway

from tests.contracts.fetcher_server import Server
from tests.downloader_settings import downloader_config

DOCUMENT = {"Sec-Fetch-Dest": "document"}
FRAME = {"Sec-Fetch-Dest": "iframe"}


class Client:
    """A browser as the gateway sees it: one registered fetch, requests through the proxy."""

    def __init__(
        self, gateway: ForwardingGateway, address: GatewayAddress, session: aiohttp.ClientSession, router: Router
    ) -> None:
        self.router = router
        self.gateway = gateway
        self.address = address
        self.session = session
        self.credentials = Credentials("", "")
        self.tls = ssl.create_default_context(cadata=address.ca_pem)

    def register(self, document_url: str = "http://site.test/", **limits: Any) -> None:
        """Register a fetch; later requests have its credentials."""
        self.credentials = self.gateway.register("fetch", FetchLimits(document_url=document_url, **limits))

    def result(self) -> GatewayResult:
        """End the fetch."""
        return self.gateway.result("fetch")

    @property
    def basic(self) -> str:
        """The value of Proxy-Authorization."""
        return "Basic " + b64encode(":".join(self.credentials).encode()).decode()

    async def get(self, url: str, headers: dict[str, str] | None = None, method: str = "GET", **options: Any) -> Reply:
        """One request, never followed. A connection that the gateway closed has the status 0."""
        proxy = {"Proxy-Authorization": self.basic} if self.credentials.username else {}
        plain = url.startswith("http:")
        try:
            async with self.session.request(
                method,
                url,
                headers={**(headers or {}), **(proxy if plain else {})},
                proxy=f"http://{self.address.host}:{self.address.port}",
                proxy_headers=None if plain else proxy,
                ssl=self.tls,
                allow_redirects=False,
                **options,
            ) as response:
                return Reply(
                    response.status, {k.lower(): v for k, v in response.headers.items()}, await response.read()
                )
        except aiohttp.ClientHttpProxyError as error:
            return Reply(error.status, {}, b"")
        except aiohttp.ClientConnectionError:
            return Reply(0, {}, b"")


class Reply:
    """A response as the browser receives it."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


@contextlib.asynccontextmanager
async def client_of(server: Server | None = None, **settings: Any) -> AsyncIterator[Client]:
    """A gateway whose names below .test lead to the server; private addresses are allowed if there is a server."""
    if server is not None:
        settings = {
            "allow_private": True,
            "tls_verify": False,
            "host_map": (f"*.test=127.0.0.1:{server.port}",),
            **settings,
        }
    config = downloader_config(**settings)
    clock = SystemClock()
    fetcher = make_fetcher(config.http, clock)
    router = make_router(config, clock, fetcher)
    await router.start()
    gateway = make_gateway(config.http, config.browser.host_rate, clock, router)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(30)) as session:
        yield Client(gateway, await gateway.start(), session, router)
        await gateway.close()
        await router.close()
        await fetcher.close()
    await asyncio.sleep(0)
