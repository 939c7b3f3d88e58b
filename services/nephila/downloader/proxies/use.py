"""The use of proxies by one request: the slot that it holds, and the proxies that it has tried. Data only."""

from __future__ import annotations

from nephila.downloader.http.route import Route
from nephila.downloader.proxies.proxy import Proxy, ProxyFault


class ProxyUse:
    """One slot of a proxy, held by one request."""

    __slots__ = ("proxy", "route", "since")

    def __init__(self, proxy: Proxy, route: Route, since: float) -> None:
        self.proxy = proxy
        self.route = route
        self.since = since


class ProxyTries:
    """The proxies that one request has tried."""

    __slots__ = ("by_tunnel", "failed", "suspects")

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.suspects: list[tuple[Proxy, ProxyFault]] = []
        """Faults that count only if the request succeeds through another proxy: a wrong certificate, or a 407 without
        a tunnel. The server may be the cause."""
        self.by_tunnel = False
        """Use a tunnel also where none is needed: in a tunnel a 407 of the proxy differs from one of the server."""
