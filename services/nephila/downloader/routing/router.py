"""Finds the route of a URL: resolves its server.

The route to the server is found first, also where a proxy is used (`nephila_proxies`): the egress guard checks
its addresses, and its pace counts. Just before the dial `ProxySelection` leads the route through a proxy.
"""

from __future__ import annotations

from typing import Protocol

from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.route import Route, direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.proxy_port import Proxies
from nephila.kernel import messages as m


class Router(Protocol):
    resolver: GuardedResolver
    """The resolver of all names that are dialled."""
    proxies: Proxies | None
    """None: no request uses a proxy."""

    def cached(self, target: TargetUrl, request: m.FetchRequest | None = None) -> Route | None:
        """The route when it is known without a look-up, else None. Raises `EgressError` or `ResolveError`. `request`:
        the request that it is for, if a proxy may serve it."""

    async def route(self, target: TargetUrl, request: m.FetchRequest | None = None) -> Route:
        """The route, with a look-up where one is needed. Raises `EgressError` or `ResolveError`."""

    async def start(self) -> None:
        """Begin work in the background."""

    async def close(self) -> None:
        """Cancel look-ups in flight and work in the background."""


class DirectRouter:
    """Dials the server of the URL itself."""

    proxies: Proxies | None = None

    def __init__(self, resolver: GuardedResolver) -> None:
        self.resolver = resolver

    def cached(self, target: TargetUrl, request: m.FetchRequest | None = None) -> Route | None:
        """The cost is one dict look-up."""
        endpoint = self.resolver.cached(target.dial_host, target.port)
        return None if endpoint is None else direct_route(target, *endpoint)

    async def route(self, target: TargetUrl, request: m.FetchRequest | None = None) -> Route:
        return direct_route(target, *await self.resolver.resolve(target.dial_host, target.port))

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        await self.resolver.close()


def unresolved_route(target: TargetUrl) -> Route:
    """The route of a name that cannot be looked up here: its pace counts by name."""
    return direct_route(target, (target.dial_host,), target.port)
