"""Fetches the pages of a login, within the site of its URL and never from https to http."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.http.contract import Fetcher, FetchError, HttpRequest, HttpResponse
from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.outcome import REDIRECTS, location_of
from nephila.downloader.proxy_port import NoProxyError
from nephila.downloader.routing.router import Router
from nephila.kernel import messages as m
from nephila.kernel.net.egress import EgressError
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.reasons.status_words import status_reason
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import sleep
from nephila.native import sniff_encoding, to_utf8

from nephila_login.login_form import Submission

MAX_HOPS = 5
PAGE_BYTES = 512 << 10
"""Bytes read of a login page."""


class LoginRefusedError(Exception):
    """The site or the job document makes a login impossible; a retry would not help."""

    def __init__(self, problem: str, status: int = 0) -> None:
        super().__init__(problem)
        self.status = status


class FetchedPage(NamedTuple):
    """The page at the end of the redirects."""

    text: str
    encoding: str
    target: TargetUrl


class LoginPages:
    """The requests pass the `previous` middleware of the chain, and the proxies of the job."""

    def __init__(self, clock: Clock, router: Router, fetcher: Fetcher, previous: Sequence[Middleware]) -> None:
        self._clock = clock
        self._router = router
        self._fetcher = fetcher
        self._previous = previous

    async def read(
        self,
        request: m.FetchRequest,
        login: TargetUrl,
        delay_s: float,
        target: TargetUrl,
        form: Submission | None = None,
        ends_at: Callable[[TargetUrl], bool] = lambda _: False,
    ) -> FetchedPage:
        """Fetch a page of the login at `login`. Redirects are followed within its site, each after `delay_s`, and not
        beyond a URL that `ends_at` names: its page is not fetched. Raises `LoginRefusedError` and `FetchError`."""
        for _ in range(MAX_HOPS + 1):
            if site_of(target.host) != site_of(login.host):
                raise LoginRefusedError(f"it redirects to another site, {target.host_header}")
            if login.scheme == "https" and target.scheme != "https":
                raise LoginRefusedError("it redirects from https to http")
            response = await self._fetch(request, delay_s, target, form)
            for middleware in reversed(self._previous):
                middleware.on_response(request, target, response)
            if response.status not in REDIRECTS or response.is_page:
                break
            try:
                target = location_of(target, response)
            except ValueError as error:
                raise LoginRefusedError(str(error)) from None
            form = None
            if ends_at(target):
                return FetchedPage("", "utf-8", target)
        else:
            raise LoginRefusedError(f"more than {MAX_HOPS} redirects")
        if response.status == 429 or response.status >= 500:
            raise FetchError(status_reason(response.status), f"login: {target.host_header} answers {response.status}")
        if response.status >= 400:
            raise LoginRefusedError(f"status {response.status}", response.status)
        encoding = sniff_encoding(response.body, response.charset or None) or "windows-1252"
        return FetchedPage(to_utf8(response.body, encoding).decode("utf-8", "replace"), encoding, target)

    async def _fetch(
        self, request: m.FetchRequest, delay_s: float, target: TargetUrl, form: Submission | None
    ) -> HttpResponse:
        route = await self.route(request, target)
        proxies = self._router.proxies
        use = None
        if proxies is not None:
            try:
                use = await proxies.lease(request, target, route)
            except NoProxyError as error:
                raise FetchError(Reason.PROXY, f"login: {error}") from None
        try:
            response = await self._exchange(request, target, route if use is None else use.route, form)
        finally:
            if proxies is not None and use is not None:
                proxies.release(use)
        if response.reason:
            reason = Reason.DISCONNECTED if response.reason == Reason.STALE else response.reason
            raise FetchError(reason, f"login at {target.host_header}: {response.detail}")
        if delay_s:
            await sleep(self._clock, delay_s)
        return response

    async def route(self, request: m.FetchRequest, target: TargetUrl) -> Route:
        try:
            return await self._router.route(target, request)
        except EgressError as error:
            raise LoginRefusedError(str(error)) from None
        except ResolveError as error:
            raise FetchError(Reason.DNS, f"login: {error}") from None

    async def _exchange(
        self, request: m.FetchRequest, target: TargetUrl, route: Route, form: Submission | None
    ) -> HttpResponse:
        http_request = HttpRequest(target, route, any_type=True, keep=PAGE_BYTES)
        if form is not None:
            http_request.post_form(form.body, form.content_type)
        for middleware in self._previous:
            middleware.on_request(request, http_request)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[HttpResponse] = loop.create_future()
        handle = self._fetcher.fetch(http_request, lambda response: None if done.done() else done.set_result(response))
        try:
            return await done
        except asyncio.CancelledError:
            handle.abort()
            raise
