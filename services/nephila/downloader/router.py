"""Finds the route of a URL: resolves the name that is dialled and checks its addresses."""

from __future__ import annotations

from typing import Protocol

from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.route import Route, direct_route
from nephila.downloader.http.target import Target


class Router(Protocol):
    """Finds the route of a URL."""

    resolver: GuardedResolver
    """The resolver of all names that are dialled."""

    def cached(self, target: Target) -> Route | None:
        """The route when it is known without a look-up, else None. Raises `EgressError` or `ResolveError`."""

    async def route(self, target: Target) -> Route:
        """The route, with a look-up where one is needed. Raises `EgressError` or `ResolveError`."""

    async def close(self) -> None:
        """Cancel look-ups in flight."""


class DirectRouter:
    """Dials the server of the URL itself."""

    def __init__(self, resolver: GuardedResolver) -> None:
        self.resolver = resolver

    def cached(self, target: Target) -> Route | None:
        """See `Router.cached`. One dict look-up."""
        found = self.resolver.cached(target.dial_host, target.port)
        return None if found is None else direct_route(target, *found)

    async def route(self, target: Target) -> Route:
        """See `Router.route`."""
        return direct_route(target, *await self.resolver.resolve(target.dial_host, target.port))

    async def close(self) -> None:
        """See `Router.close`."""
        await self.resolver.close()
