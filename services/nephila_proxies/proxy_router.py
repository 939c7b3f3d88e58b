"""The router where proxies are configured."""

from __future__ import annotations

from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.routing.router import DirectRouter, unresolved_route
from nephila.kernel import messages as m

from nephila_proxies.keeper import ProxyKeeper
from nephila_proxies.selection import ProxySelection


class ProxyRouter(DirectRouter):
    """Leads requests through proxies. Names are looked up here as well, unless only the proxies know them."""

    def __init__(self, resolver: GuardedResolver, proxies: ProxySelection, keeper: ProxyKeeper) -> None:
        super().__init__(resolver)
        self.proxies = proxies
        self._proxies = proxies
        self._keeper = keeper

    async def start(self) -> None:
        await self._keeper.start()

    async def close(self) -> None:
        await self._keeper.close()
        await super().close()

    def cached(self, target: TargetUrl, request: m.FetchRequest | None = None) -> Route | None:
        try:
            return super().cached(target, request)
        except ResolveError:
            if not self._is_resolved_by_proxy(target, request):
                raise
            return unresolved_route(target)

    async def route(self, target: TargetUrl, request: m.FetchRequest | None = None) -> Route:
        try:
            return await super().route(target, request)
        except ResolveError:
            if not self._is_resolved_by_proxy(target, request):
                raise
            return unresolved_route(target)

    def _is_resolved_by_proxy(self, target: TargetUrl, request: m.FetchRequest | None) -> bool:
        if not self._proxies.resolve_names or request is None:
            return False
        return self._proxies.selector(request, target) is not None
