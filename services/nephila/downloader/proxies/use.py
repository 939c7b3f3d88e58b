"""The use of proxies by one request: the slot that it holds, and the proxies that it has tried. Data only."""

from __future__ import annotations

from nephila.downloader.http.route import Route
from nephila.downloader.proxies.proxy import Proxy


class ProxyUse:
    """One slot of a proxy, held by one request."""

    __slots__ = ("proxy", "route", "since")

    def __init__(self, proxy: Proxy, route: Route, since: float) -> None:
        self.proxy = proxy
        self.route = route
        self.since = since


class ProxyTries:
    """The proxies that one request has tried."""

    __slots__ = ("failed", "suspects")

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.suspects: list[Proxy] = []
        """Proxies behind which the certificate was wrong: they lied if another proxy shows the right one."""
