"""The traffic of one fetch: every request of its page is admitted, sent and counted here.

Invariant: a request that is not admitted reaches no server, and neither does any request after `close`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from nephila.downloader.http.contract import Exchange, HttpRequest, HttpResponse
from nephila.downloader.http.route import NO_ROUTE, Route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.reasons.table import AnyReason, Reason
from nephila.kernel.runtime.clock import Clock

from nephila_browser.contract import DocumentResponse, FetchLimits, GatewayResult
from nephila_browser.gateway.document_robots import DocumentRobots
from nephila_browser.gateway.forwarded_headers import (
    SECRET,
    ResponseUse,
    is_of_script,
    kind_of,
    to_browser,
    to_server,
)
from nephila_browser.gateway.host_pace import BrowserHostPace
from nephila_browser.gateway.limit import Limit, RefusalReason, reason_of
from nephila_browser.gateway.upstream import Call, Sender, UpstreamRefused

_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST"))
"""POST is needed by pages that read data with it, such as GraphQL; the other methods change resources."""
_HTML = ("text/html", "application/xhtml+xml", "")
_STATUS: dict[RefusalReason, int] = {
    Limit.REQUESTS: 429,
    Limit.BYTES: 429,
    Limit.TIME: 429,
    Limit.METHOD: 405,
    Reason.TIMEOUT: 504,
    Limit.PACE: 429,
}
_REFUSALS = frozenset((Reason.ADDRESS, Reason.DNS, Reason.ROBOTS))
UNAUTHORIZED = (401, 403)
_REFUSED = 403
_FAILED = 502


class BrowserAnswer(NamedTuple):
    """The response for the browser, decoded; its body is framed by the connection."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class FetchTraffic:
    """Requests of one page. `max_response_bytes` limits each response, on the wire and decoded; `max_parallel` of the
    limits are in memory at a time."""

    def __init__(
        self,
        limits: FetchLimits,
        sender: Sender,
        robots: DocumentRobots,
        user_agent: str,
        max_response_bytes: int,
        pace: BrowserHostPace,
        clock: Clock,
    ) -> None:
        self._limits = limits
        self._document_target = TargetUrl(limits.document_url)
        self._site = site_of(self._document_target.host)
        self._unauthorized = 0
        self._sender = sender
        self._robots = robots
        self._user_agent = limits.user_agent or user_agent
        self._max_response_bytes = max_response_bytes
        self._pace = pace
        self._clock = clock
        self._exchanges: list[Exchange] = []
        self._kept_bytes = 0
        self._not_kept = 0
        self._parallel = asyncio.Semaphore(limits.max_parallel)
        self._document_sent = False
        self._document: DocumentResponse | None = None
        self._reason: AnyReason = Reason.NONE
        self._detail = self._cause = ""
        self._requests = 0
        self._wire_bytes = 0
        self._blocked: Counter[str] = Counter()
        self._closers: dict[Callable[[], None], None] = {}
        self._ended: Limit | None = None

    # ---- lifetime

    def add(self, close: Callable[[], None]) -> None:
        """Call `close` when the fetch ends: a connection belongs to it."""
        self._closers[close] = None

    def discard(self, close: Callable[[], None]) -> None:
        """A connection is closed."""
        self._closers.pop(close, None)

    def close(self, reason: Limit = Limit.TIME) -> None:
        """End the fetch and close its connections; further requests are refused with `reason`."""
        self._ended = self._ended or reason
        closers, self._closers = list(self._closers), {}
        for close in closers:
            close()

    def result(self) -> GatewayResult:
        """What happened so far."""
        reason, detail = self._reason, self._detail
        if self._document is None and not reason and self._ended is Limit.TIME:
            reason, detail = Reason.TIMEOUT, "total: the document did not arrive"
        return GatewayResult(
            document=self._document,
            reason=reason,
            detail=detail,
            cause=self._cause,
            requests=self._requests,
            wire_bytes=self._wire_bytes,
            exchanges=self._exchanges,
            not_kept=self._not_kept,
            blocked=dict(self._blocked),
            unauthorized=self._unauthorized,
        )

    # ---- requests

    async def answer(self, call: Call) -> BrowserAnswer:
        """The response to one request; never raises for a fault of the page or of a server."""
        kind = kind_of(call.headers)
        is_document = not self._document_sent and self._is_document(call, kind)
        self._document_sent |= is_document
        try:
            await self._admit(call, kind, is_document)
            if is_document:  # the scheduler has paced it
                self._pace.count(call.target.dial_host)
            else:
                await self._pace.turn(call.target.dial_host)
            async with self._parallel:
                started = self._clock.now()
                response = await self._sender.send(self._request(call, is_document))
        except UpstreamRefused as refused:
            return self._refuse(refused.reason, refused.detail, is_document)
        self._wire_bytes += response.wire_bytes
        if is_document:
            return self._answer_document(response)
        if self._limits.keep_exchanges and call.method == "GET" and response.status:
            self._keep(Exchange(call.target, response, started, self._clock.now()))
        if response.status in UNAUTHORIZED and is_of_script(call.headers) and site_of(call.target.host) == self._site:
            self._unauthorized = min(self._unauthorized or response.status, response.status)
        if response.reason:
            reason = Limit.MEDIA if response.reason == Reason.CONTENT_TYPE else response.reason
            return self._refuse(reason, response.detail, False)
        return _passed(response)

    async def open_websocket(self, call: Call) -> Route:
        """Admit a WebSocket; returns the route to dial. Raises `UpstreamRefused`."""
        try:
            await self._admit(call, ResponseUse.OTHER, False)
            await self._pace.turn(call.target.dial_host)
            route = await self._sender.route(call.target)
            if route.proxy is not None:
                raise UpstreamRefused(Limit.UPGRADE, "a WebSocket does not pass an upstream proxy")
        except UpstreamRefused as refused:
            self._blocked[refused.reason] += 1
            raise
        return route

    def websocket_headers(self, call: Call) -> dict[str, str]:
        """The headers of a WebSocket handshake for the server."""
        headers = self._headers(call)
        del headers["accept-encoding"]
        return {**headers, "connection": "Upgrade", "upgrade": "websocket"}

    def count(self, size: int) -> bool:
        """Count bytes of a WebSocket; False when the limit of the page is exceeded."""
        self._wire_bytes += size
        if self._wire_bytes <= self._limits.max_bytes:
            return True
        self._blocked[Limit.BYTES] += 1
        return False

    def _is_document(self, call: Call, kind: ResponseUse) -> bool:
        """Whether a request is the one for the page itself: a browser may change its scheme (HSTS)."""
        return call.method == "GET" and (kind is ResponseUse.DOCUMENT or call.target.href == self._document_target.href)

    async def _admit(self, call: Call, kind: ResponseUse, is_document: bool) -> None:
        """Raise `UpstreamRefused` for a request that must not be sent. Addresses are checked with the route."""
        limits = self._limits
        if self._ended:
            raise UpstreamRefused(self._ended, "the fetch has ended")
        if self._requests >= limits.max_requests:
            raise UpstreamRefused(Limit.REQUESTS, f"more than {limits.max_requests} requests of one page")
        self._requests += 1
        if call.method not in _METHODS:
            raise UpstreamRefused(Limit.METHOD, f"{call.method[:20]} is not sent")
        if self._wire_bytes >= limits.max_bytes:
            raise UpstreamRefused(Limit.BYTES, f"more than {limits.max_bytes} bytes of one page")
        if kind is ResponseUse.MEDIA and limits.refuse_media:
            raise UpstreamRefused(Limit.MEDIA, "images, fonts and media are not fetched")
        if kind in (ResponseUse.PREFETCH, ResponseUse.SERVICE_WORKER):
            limit = Limit.PREFETCH if kind is ResponseUse.PREFETCH else Limit.SERVICE_WORKER
            raise UpstreamRefused(limit, f"a {kind.value} is not fetched")
        decided = is_document and call.target.href == self._document_target.href
        if kind is not ResponseUse.DOCUMENT or decided or not limits.obey_robots:
            return
        await self._sender.route(call.target)  # an address that is refused says more than its robots.txt
        if not await self._robots.allowed(call.target, self._fetch_robots):
            raise UpstreamRefused(Reason.ROBOTS, f"robots.txt disallows {call.target.shown[:200]}")

    async def _fetch_robots(self, target: TargetUrl) -> HttpResponse:
        self._requests += 1
        response = await self._sender.robots(target, self._user_agent)
        self._wire_bytes += response.wire_bytes
        return response

    def _headers(self, call: Call) -> dict[str, str]:
        headers = to_server(call.headers)
        headers["user-agent"] = self._user_agent
        return headers

    def _request(self, call: Call, is_document: bool) -> HttpRequest:
        limits = self._limits
        longest = self._max_response_bytes
        if is_document and limits.max_document_bytes:
            longest = min(longest, limits.max_document_bytes)
        request = HttpRequest(
            call.target,
            NO_ROUTE,
            any_type=not limits.refuse_media,
            max_bytes=max(1, min(longest, limits.max_bytes - self._wire_bytes)),
            forwarded=True,
            method=call.method,
        )
        for name, value in self._headers(call).items():
            (request.add_secret_header if name in SECRET else request.add_header)(name, value)
        document = self._document_target
        if (call.target.scheme, call.target.host, call.target.port) == (document.scheme, document.host, document.port):
            for name, value in limits.headers.items():
                own = (request.secret_headers or {}).get("cookie", "") if name.lower() == "cookie" else ""
                value = f"{own}; {value}" if own else value
                request.headers = {key: text for key, text in (request.headers or {}).items() if key != name.lower()}
                request.add_secret_header(name.lower(), value)
        if call.method == "POST":
            request.body = call.body
        return request

    # ---- responses

    def _keep(self, exchange: Exchange) -> None:
        """Keep a response for archives, within the bytes of the page."""
        response = exchange.response
        size = len(response.body) + len(response.wire_body or b"")
        if self._ended or self._kept_bytes + size > self._limits.max_bytes:
            self._not_kept += 1
            return
        self._kept_bytes += size
        self._exchanges.append(exchange)

    def _answer_document(self, response: HttpResponse) -> BrowserAnswer:
        if response.reason:
            return self._refuse(response.reason, response.detail, True, response.cause)
        is_html = response.content_type in _HTML
        keep_body = self._limits.keep_body
        self._document = DocumentResponse(
            status=response.status,
            headers=response.headers,
            request_head=response.request_head,
            response_head=response.response_head,
            body=response.body if keep_body or not is_html else b"",
            wire_body=(response.wire_body or b"") if keep_body else b"",
            address=response.address,
            wire_bytes=response.wire_bytes,
        )
        is_redirect = 300 <= response.status < 400
        if is_redirect and self._limits.follow_document:
            return _passed(response)
        if is_redirect or not is_html:
            return BrowserAnswer(204, [], b"")
        return _passed(response)

    def _refuse(self, reason: RefusalReason, detail: str, is_document: bool, cause: str = "") -> BrowserAnswer:
        self._blocked[reason] += 1
        if is_document:
            self._reason, self._detail, self._cause = reason_of(reason), detail, cause
        status = _STATUS.get(reason, _REFUSED if reason in _REFUSALS or isinstance(reason, Limit) else _FAILED)
        return BrowserAnswer(status, [("cache-control", "no-store")], b"")


def _passed(response: HttpResponse) -> BrowserAnswer:
    """A response for the browser. It would take a 407 for one of the gateway and repeat the request."""
    status = _FAILED if response.status == 407 else response.status
    return BrowserAnswer(status, to_browser(response.headers), response.body)
