"""Finds the route of a URL: resolves its server, and chooses a proxy where one is used.

The route to the server is found first, in both cases: the egress guard checks its addresses, and its pace counts. Just
before the dial `ProxySelection` leads the route through a proxy.
"""

from __future__ import annotations

from typing import Protocol

from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.route import Route, direct_route
from nephila.downloader.http.target import Target
from nephila.downloader.proxies.keeper import ProxyKeeper
from nephila.downloader.proxies.selection import PROXY_ONLY, ProxySelection
from nephila.kernel import messages as m


class Router(Protocol):
    """Finds the route of a URL."""

    resolver: GuardedResolver
    """The resolver of all names that are dialled."""
    proxies: ProxySelection | None
    """None: no request uses a proxy."""

    def cached(self, target: Target, request: m.FetchRequest | None = None) -> Route | None:
        """The route when it is known without a look-up, else None. Raises `EgressError` or `ResolveError`. `request`:
        the request that it is for, if a proxy may serve it."""

    async def route(self, target: Target, request: m.FetchRequest | None = None) -> Route:
        """The route, with a look-up where one is needed. Raises `EgressError` or `ResolveError`."""

    async def start(self) -> None:
        """Begin work in the background."""

    async def close(self) -> None:
        """Cancel look-ups in flight and work in the background."""


class DirectRouter:
    """Dials the server of the URL itself."""

    proxies: ProxySelection | None = None

    def __init__(self, resolver: GuardedResolver) -> None:
        self.resolver = resolver

    def cached(self, target: Target, request: m.FetchRequest | None = None) -> Route | None:
        """See `Router.cached`. One dict look-up."""
        found = self.resolver.cached(target.dial_host, target.port)
        return None if found is None else direct_route(target, *found)

    async def route(self, target: Target, request: m.FetchRequest | None = None) -> Route:
        """See `Router.route`."""
        return direct_route(target, *await self.resolver.resolve(target.dial_host, target.port))

    async def start(self) -> None:
        """See `Router.start`."""

    async def close(self) -> None:
        """See `Router.close`."""
        await self.resolver.close()


class ProxyRouter(DirectRouter):
    """Leads requests through proxies. Names are looked up here as well, unless only the proxies know them."""

    def __init__(self, resolver: GuardedResolver, proxies: ProxySelection, keeper: ProxyKeeper) -> None:
        super().__init__(resolver)
        self.proxies = proxies
        self._proxies = proxies
        self._keeper = keeper

    async def start(self) -> None:
        """See `Router.start`."""
        await self._keeper.start()

    async def close(self) -> None:
        """See `Router.close`."""
        await self._keeper.close()
        await super().close()

    def cached(self, target: Target, request: m.FetchRequest | None = None) -> Route | None:
        """See `Router.cached`."""
        try:
            return super().cached(target, request)
        except ResolveError:
            if not self._is_resolved_by_proxy(target, request):
                raise
            return unresolved_route(target)

    async def route(self, target: Target, request: m.FetchRequest | None = None) -> Route:
        """See `Router.route`."""
        try:
            return await super().route(target, request)
        except ResolveError:
            if not self._is_resolved_by_proxy(target, request):
                raise
            return unresolved_route(target)

    def _is_resolved_by_proxy(self, target: Target, request: m.FetchRequest | None) -> bool:
        if self._proxies.names != PROXY_ONLY or request is None:
            return False
        return self._proxies.selector(request, target) is not None


def unresolved_route(target: Target) -> Route:
    """The route of a name that cannot be looked up here: its pace counts by name."""
    return direct_route(target, (target.dial_host,), target.port)
