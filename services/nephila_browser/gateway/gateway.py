"""The gateway: a listener on loopback, the registered fetches, and what their connections share.

IN   connections of browsers: HTTP proxy requests, CONNECT, WebSocket
OUT  requests to servers, by the router and the fetcher of the downloader

See `browser.contract` for what it guarantees.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import Fetcher
from nephila.downloader.http.fetchers import make_fetcher
from nephila.downloader.http.route import Route
from nephila.downloader.http.tls import tls_context
from nephila.downloader.routing.router import Router
from nephila.kernel.process.memory_budget import MemoryBudget
from nephila.kernel.runtime.clock import Clock, Timer

from nephila_browser.contract import Credentials, FetchLimits, GatewayAddress, GatewayResult
from nephila_browser.gateway.certificates import CertificateAuthority
from nephila_browser.gateway.client_connection import ClientConnection
from nephila_browser.gateway.document_robots import DocumentRobots
from nephila_browser.gateway.fetch_traffic import FetchTraffic
from nephila_browser.gateway.host_pace import BrowserHostPace
from nephila_browser.gateway.limit import Limit
from nephila_browser.gateway.upstream import Upstream
from nephila_browser.gateway.websocket_tunnel import WebSocketTunnel, dial

LOOPBACK = "127.0.0.1"
MAX_RESPONSE_BYTES = 16 << 20
"""Of one response, on the wire and decoded; scripts and data of a page are far below."""
MEDIA_TYPES = ("image/*", "font/*", "audio/*", "video/*", "application/font*", "application/vnd.ms-fontobject")
_BACKLOG = 512
MAX_UNKNOWN = 64
"""Connections without valid credentials at a time; the oldest is closed first. Chromium opens some six to a host."""
UNKNOWN_S = 20.0
"""Time in which a connection has to show credentials."""


class _Registered:
    """A fetch that may send requests."""

    __slots__ = ("password", "timer", "traffic", "username")

    def __init__(self, username: str, password: str, traffic: FetchTraffic, timer: Timer) -> None:
        self.username = username
        self.password = password
        self.traffic = traffic
        self.timer = timer


class ForwardingGateway:
    """The gateway owns its fetcher; the router belongs to the downloader."""

    def __init__(self, config: HttpConfig, host_rate: float, clock: Clock, router: Router, fetcher: Fetcher) -> None:
        self.certificates = CertificateAuthority(datetime.fromtimestamp(clock.now(), UTC))
        self._config = config
        self._clock = clock
        self._fetcher = fetcher
        self._router = router
        self._pace = BrowserHostPace(host_rate, clock)
        self._robots = DocumentRobots(config.agent(), clock)
        self._tls = tls_context(config.tls_verify, config.ca_file)
        self._server: asyncio.Server | None = None
        self._fetches: dict[str, _Registered] = {}
        self._by_username: dict[str, _Registered] = {}
        self._connections: set[ClientConnection] = set()
        self._unknown: dict[ClientConnection, Timer] = {}
        """Connections without valid credentials, the oldest first, with the timers that close them."""

    # ---- interface

    async def start(self) -> GatewayAddress:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ClientConnection(self), LOOPBACK, 0, backlog=_BACKLOG)
        port = self._server.sockets[0].getsockname()[1]
        return GatewayAddress(LOOPBACK, port, self.certificates.spki_hash, self.certificates.pem)

    def register(self, fetch_id: str, limits: FetchLimits) -> Credentials:
        """Raises `ValueError` also for a text that is no URL."""
        if fetch_id in self._fetches:
            raise ValueError(f"fetch {fetch_id} is registered")
        config = self._config
        traffic = FetchTraffic(
            limits,
            Upstream(self._router, self._fetcher, limits.route),
            self._robots,
            config.agent(),
            min(MAX_RESPONSE_BYTES, config.max_body_bytes),
            self._pace,
            self._clock,
        )
        timer = self._clock.call_at(self._clock.monotonic() + limits.total_s, traffic.close)
        registered = _Registered(secrets.token_hex(8), secrets.token_hex(16), traffic, timer)
        self._fetches[fetch_id] = self._by_username[registered.username] = registered
        return Credentials(registered.username, registered.password)

    def result(self, fetch_id: str) -> GatewayResult:
        registered = self._fetches.pop(fetch_id)
        del self._by_username[registered.username]
        registered.timer.cancel()
        result = registered.traffic.result()
        registered.traffic.close(Limit.ENDED)
        return result

    async def close(self) -> None:
        for fetch_id in list(self._fetches):
            self.result(fetch_id)
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        await self._fetcher.close()

    # ---- calls of connections

    def traffic_of(self, authorization: str) -> FetchTraffic | None:
        scheme, _, encoded = authorization.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            username, _, password = b64decode(encoded, validate=True).decode("latin-1").partition(":")
        except ValueError:
            return None
        registered = self._by_username.get(username)
        if registered is None or not hmac.compare_digest(registered.password.encode(), password.encode("latin-1")):
            return None
        return registered.traffic

    async def dial_websocket(self, route: Route, make: Callable[[], WebSocketTunnel]) -> WebSocketTunnel:
        return await dial(route, self._tls, self._config.connect_timeout_s, make)

    def opened(self, connection: ClientConnection) -> None:
        self._connections.add(connection)
        self._unknown[connection] = self._clock.call_at(self._clock.monotonic() + UNKNOWN_S, connection.close)
        if len(self._unknown) > MAX_UNKNOWN:
            next(iter(self._unknown)).close()

    def authenticated(self, connection: ClientConnection) -> None:
        timer = self._unknown.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def closed(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)
        self.authenticated(connection)


def make_gateway(
    config: HttpConfig, host_rate: float, clock: Clock, router: Router, budget: MemoryBudget | None = None
) -> ForwardingGateway:
    """The gateway with a fetcher of its own: any media type but those of images, fonts, audio and video. `budget`: for
    large bodies; None: no limit. Its connections do not rest, as those of a browser: a page has many parts at once."""
    forwarding = msgspec.structs.replace(config, accept=("*/*",), refuse=MEDIA_TYPES, rest_s=0.0)
    return ForwardingGateway(config, host_rate, clock, router, make_fetcher(forwarding, clock, budget))
