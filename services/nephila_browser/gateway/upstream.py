"""The way from the gateway to servers: the route, its checks, and the fetcher, which the HTTP lane uses too."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse
from nephila.downloader.http.request import ROBOTS_BYTES
from nephila.downloader.http.route import NO_ROUTE, Route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.outcome import location_of
from nephila.downloader.routing.router import Router, unresolved_route
from nephila.kernel.net.egress import EgressError
from nephila.kernel.reasons.table import Reason

from nephila_browser.gateway.limit import RefusalReason, reason_of

ROBOTS_REDIRECTS = 5
_REPEATABLE = ("GET", "HEAD", "OPTIONS")


class Call(NamedTuple):
    """A request of the browser."""

    method: str
    target: TargetUrl
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class UpstreamRefused(Exception):
    """A request that reaches no server: `reason` in one word, and a text for people."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Sender(Protocol):
    """What a fetch of the gateway needs from the network."""

    async def route(self, target: TargetUrl) -> Route:
        """Checked addresses of a target; raises `UpstreamRefused` (address, dns)."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """One response, never followed; raises `UpstreamRefused` (address, dns)."""

    async def robots(self, target: TargetUrl, user_agent: str) -> HttpResponse:
        """A robots.txt, redirects followed; failures are in its `reason`."""


class Upstream:
    """Sends the requests of one page. The router checks every address, also those of redirects of robots.txt."""

    def __init__(self, router: Router, fetcher: Fetcher, page: Route) -> None:
        """`page`: the route of the page; all requests use its proxy, if it has one."""
        self._router = router
        self._fetcher = fetcher
        self._page = page

    async def route(self, target: TargetUrl) -> Route:
        try:
            direct = self._router.cached(target) or await self._router.route(target)
        except EgressError as error:
            raise UpstreamRefused(Reason.ADDRESS, str(error)) from None
        except ResolveError as error:
            proxies = self._router.proxies
            if self._page.proxy is None or proxies is None or not proxies.resolve_names:
                raise UpstreamRefused(Reason.DNS, str(error)) from None
            direct = unresolved_route(target)
        return direct if self._router.proxies is None else self._router.proxies.follow(self._page, target, direct)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """A request on a kept connection that broke is repeated once if its method allows it."""
        request.route = await self.route(request.target)
        response = await self._fetch(request)
        if response.reason == Reason.STALE and request.method in _REPEATABLE:
            response = await self._fetch(request)
        return response

    async def robots(self, target: TargetUrl, user_agent: str) -> HttpResponse:
        response = HttpResponse()
        for _ in range(ROBOTS_REDIRECTS + 1):
            request = HttpRequest(target, NO_ROUTE, any_type=True, keep=ROBOTS_BYTES, forwarded=True)
            request.add_header("User-Agent", user_agent)
            request.add_header("Accept-Encoding", "gzip")
            try:
                response = await self.send(request)
            except UpstreamRefused as refused:
                response = HttpResponse()
                response.reason, response.detail = reason_of(refused.reason), refused.detail
                return response
            if response.reason or not 300 <= response.status < 400 or response.is_page:
                return response
            try:
                target = location_of(target, response)
            except ValueError as error:
                response.reason, response.detail = Reason.BAD_REDIRECT, str(error)
                return response
        return response

    async def _fetch(self, request: HttpRequest) -> HttpResponse:
        answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

        def on_done(response: HttpResponse) -> None:
            if not answer.done():  # cancelled in this turn of the loop
                answer.set_result(response)

        handle = self._fetcher.fetch(request, on_done)
        try:
            return await answer
        except asyncio.CancelledError:
            handle.abort()
            raise
