"""Pages rendered by a browser, behind the contract of a fetcher.

The document passes the same stages as any request. All traffic of the page passes the gateway, which also has the
response of the document; so a redirect, an error status or a document that is no HTML ends as over plain HTTP.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from nephila.downloader.browser_config import BrowserConfig
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import FetchError, HttpRequest, HttpResponse, OnDone, SiteCookie
from nephila.downloader.http.request import media_filter
from nephila.downloader.http.route import Route
from nephila.downloader.middleware.rendered_login import LoggedInPage, RenderedLogin
from nephila.kernel.documents.browser_schema import Browser
from nephila.kernel.messages import Capture, FetchRequest
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.pages.mime import media_type
from nephila.kernel.process.memory_budget import (
    BODY_FACTOR,
    BROWSER_REQUEST_BYTES,
    MemoryBudget,
    Reservation,
    ReservationKind,
)
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.native import parse_url

from nephila_browser.budget import BrowserBudget
from nephila_browser.capture_files import write_captures
from nephila_browser.contract import (
    DocumentResponse,
    FetchLimits,
    Gateway,
    GatewayResult,
)
from nephila_browser.engine import LoginValues, RenderedPage, RenderError, RenderTask, WebStorage
from nephila_browser.instructions import Instructions, PageInstructions
from nephila_browser.pool import HANG_S, TRIES, BrowserPool

log = logging.getLogger(__name__)

HTML: Final = frozenset(("", "text/html", "application/xhtml+xml"))
START_S: Final = 60.0
"""Time for the start of a browser and for pages before this one."""
_TOO_MUCH: Final = "more than browser.page_bytes in memory, or they came after the page"
_BLOCKED: Final = "the setting browser.block refuses them; set it to [] and restart"
HOST_PREFIX: Final = "__Host-"
NAVIGATED: Final = 302
"""Status of a page whose script navigated to another origin: a redirect."""


class _Rendering:
    """A page in flight."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def abort(self) -> None:
        self._task.cancel()


class _Run(NamedTuple):
    """What the browser and the gateway have of a page."""

    page: RenderedPage | None
    error: RenderError | None
    result: GatewayResult
    browser_s: float
    memory: Reservation | None


class BrowserFetcher:
    """Renders the page of a request."""

    def __init__(
        self,
        http: HttpConfig,
        config: BrowserConfig,
        clock: Clock,
        gateway: Gateway,
        pool: BrowserPool,
        instructions: Instructions,
        budget: BrowserBudget,
        memory: MemoryBudget,
    ) -> None:
        self._http = http
        self._config = config
        self._clock = clock
        self._gateway = gateway
        self.pool = pool
        self._instructions = instructions
        self._budget = budget
        self._memory = memory
        self._is_wanted = media_filter(http.accept, http.refuse)
        self._numbers = itertools.count()
        self._running: set[asyncio.Task[None]] = set()
        self._storage: dict[tuple[str, str], dict[str, WebStorage]] = {}
        """Job and site → what the scripts of its login have stored."""
        self.blocked: Counter[str] = Counter()
        """Sub-requests that the gateway refused, by reason."""
        self.sub_requests = 0
        self._without_pictures: set[str] = set()
        """Jobs whose archives lack pictures of rendered pages, as was logged."""

    def fetch(self, request: HttpRequest, on_done: OnDone) -> _Rendering:
        task = asyncio.get_running_loop().create_task(self._fetch(request, on_done))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return _Rendering(task)

    def forget(self, job: str) -> None:
        """A job is deleted."""
        self._budget.forget(job)
        self._without_pictures.discard(job)
        for key in [key for key in self._storage if key[0] == job]:
            del self._storage[key]

    async def close(self) -> None:
        running = list(self._running)
        for task in running:
            task.cancel()
        await self.pool.close()
        await asyncio.gather(*running, return_exceptions=True)
        await self.pool.close()  # ends what the cancelled pages have left
        await self._gateway.close()

    async def _fetch(self, request: HttpRequest, on_done: OnDone) -> None:
        origin = request.origin
        assert origin is not None
        try:
            response = await self._response(request, origin)
        except Exception as error:  # a request has to end, even if the browser fails in an unexpected way
            log.exception("a page could not be rendered")
            response = HttpResponse()
            response.reason, response.detail = Reason.INTERNAL, type(error).__name__
        on_done(response)

    async def _response(self, request: HttpRequest, origin: FetchRequest) -> HttpResponse:
        instructions = self._instructions.of(origin.job, origin.url)
        if spent := self._budget.spent(origin.job, origin.host, instructions.browser.budget):
            response = HttpResponse()
            response.reason, response.detail = Reason.BROWSER_BUDGET, spent
            return response
        run = await self._run(request, origin, instructions)
        if run.page is not None and request.cookies is not None:
            request.cookies.write(run.page.first_cookies, run.page.cookies)
        response = self._combine(request, run.result, run.page, run.error)
        response.browser_s = run.browser_s
        shown = request.target.shown
        if response.rendered:
            response.exchanges = run.result.exchanges
            if run.result.not_kept:
                log.warning("%s: %d responses of the page are not archived: %s", shown, run.result.not_kept, _TOO_MUCH)
        if run.memory is not None:
            _settle(response, run.memory)
        if response.rendered and run.page is not None:
            await self._add_captures(response, run.page.captures, _name(origin), shown)
        return response

    async def _run(self, request: HttpRequest, origin: FetchRequest, instructions: PageInstructions) -> _Run:
        """Render the page when there is memory for it."""
        fetch_id = f"{_name(origin)}-{next(self._numbers)}"
        task = self._task(request, origin, instructions, fetch_id)
        started = self._clock.monotonic()
        page, error = None, None
        memory: Reservation | None = None
        try:
            memory = await self._memory.reserve(ReservationKind.BROWSER, BROWSER_REQUEST_BYTES)
            if request.on_sent is not None:
                request.on_sent()
            page = await self.pool.render(task)
        except RenderError as failed:
            error = failed
        finally:
            result = self._gateway.result(fetch_id)
            browser_s = self._clock.monotonic() - started
            self._budget.spend(origin.job, origin.host, browser_s)
            self.blocked.update(result.blocked)
            self.sub_requests += max(result.requests - 1, 0)
        return _Run(page, error, result, browser_s, memory)

    def _task(
        self, request: HttpRequest, origin: FetchRequest, instructions: PageInstructions, fetch_id: str
    ) -> RenderTask:
        """The page of a request, which the gateway expects from now on."""
        target = request.target
        cookies = request.cookies.read() if request.cookies is not None else []
        archives = self._http.raw_capture and instructions.requisites
        if archives and self._config.block and origin.job not in self._without_pictures:
            self._without_pictures.add(origin.job)
            log.warning("job %s: pictures and fonts of rendered pages are not archived: %s", origin.job, _BLOCKED)
        limits = self._limits(
            target.href,
            origin.job,
            request.route,
            headers=_headers(request, cookies),
            obey_robots=instructions.obey_robots,
            keep_body=self._http.raw_capture,
            keep_exchanges=archives,
            max_document_bytes=request.max_bytes,
        )
        return RenderTask(
            url=_with_route(target.href, origin.url),
            instructions=instructions,
            credentials=self._gateway.register(fetch_id, limits),
            user_agent=self._http.agent(),
            timeout_s=self._config.timeout_s,
            cookies=tuple(cookies),
            storage=self._storage.get((origin.job, site_of(target.host)), {}),
            keep_cookies=request.cookies is not None,
        )

    def _limits(self, url: str, job: str, route: Route, **further: Any) -> FetchLimits:
        config = self._config
        return FetchLimits(
            document_url=url,
            job=job,
            user_agent=self._http.agent(),
            refuse_media=bool(config.block),
            # From now on, with the wait for a browser and a second try; `result` ends it in most cases.
            total_s=TRIES * (config.timeout_s + HANG_S) + START_S,
            max_bytes=config.page_bytes,
            max_requests=config.page_requests,
            max_parallel=config.page_parallel,
            route=route,
            **further,
        )

    async def _add_captures(self, response: HttpResponse, captures: list[Capture], name: str, shown: str) -> None:
        response.captures = captures if self._http.raw_capture else [_without_body(capture) for capture in captures]
        if captures and self._config.captures:
            try:
                await asyncio.to_thread(write_captures, Path(self._config.captures), name, captures)
            except OSError as error:  # the page itself is whole
                log.error("captures of %s were not written: %s", shown, error.strerror)

    def _combine(
        self, request: HttpRequest, result: GatewayResult, page: RenderedPage | None, error: RenderError | None
    ) -> HttpResponse:
        """The response of the document with the body of the browser; pure."""
        response = HttpResponse()
        response.wire_bytes = result.wire_bytes
        document = result.document
        if document is None:
            if result.reason:
                response.reason, response.detail, response.cause = result.reason, result.detail, result.cause
            else:
                response.reason, response.detail = (
                    (error.reason, error.detail) if error else (Reason.BROWSER, "no response")
                )
            return response
        _copy(document, response)
        media = response.content_type
        if not 200 <= document.status < 300:
            response.body = document.body
        elif media not in HTML:
            if not request.any_type and not self._is_wanted(media):
                response.reason, response.detail = Reason.CONTENT_TYPE, media
            response.body, response.wire_body = document.body, document.wire_body or None
        elif page is None:
            assert error is not None
            response.reason, response.detail = error.reason, error.detail
        else:
            response.unauthorized = result.unauthorized
            self._rendered(request, document, page, response)
        if result.reason and not response.reason and not response.rendered:
            response.reason, response.detail = result.reason, result.detail
        return response

    async def log_in(self, request: FetchRequest, login: RenderedLogin) -> LoggedInPage:
        """What scripts store is kept for the pages of the site."""
        config, target = self._config, login.target
        site = site_of(target.host)
        instructions = self._instructions.of(request.job, target.href)
        cookies = login.cookies.read() if login.cookies is not None else []
        fetch_id = f"login-{next(self._numbers)}"
        # A user has configured the URL: robots.txt does not count.
        limits = self._limits(target.href, request.job, login.route, obey_robots=False, follow_document=True)
        task = RenderTask(
            url=login.url,
            instructions=PageInstructions(Browser(wait=instructions.browser.wait), login.steps),
            credentials=self._gateway.register(fetch_id, limits),
            user_agent=self._http.agent(),
            timeout_s=config.timeout_s,
            cookies=tuple(cookies),
            keep_cookies=True,
            login=LoginValues(target.href, login.values),
        )
        started, page, failed = self._clock.monotonic(), None, None
        try:
            page = await self.pool.render(task)
        except RenderError as error:
            failed = error
        finally:
            result = self._gateway.result(fetch_id)
            self._budget.spend(request.job, request.host, self._clock.monotonic() - started)
        if page is None:
            assert failed is not None
            raise FetchError(result.reason or failed.reason, result.detail or failed.detail, result.cause)
        if login.cookies is not None:
            login.cookies.write(page.first_cookies, page.cookies)
        self._storage[request.job, site] = page.storage
        return LoggedInPage(page.html.decode("utf-8", "replace"), page.url, result.unauthorized)

    def _rendered(
        self, request: HttpRequest, document: DocumentResponse, page: RenderedPage, response: HttpResponse
    ) -> None:
        if location := _left_origin(request.target.href, page.url):
            response.status = NAVIGATED
            response.headers = {**response.headers, "location": location}
        elif len(page.html) > (request.max_bytes or self._http.max_body_bytes):
            response.reason, response.detail = Reason.TOO_LARGE, f"rendered: {len(page.html):,} bytes"
        else:
            response.rendered = True
            response.page_url = page.url
            response.charset = "utf-8"
            if self._http.raw_capture:
                response.wire_body = document.wire_body or document.body
            response.body = page.html


def _name(origin: FetchRequest) -> str:
    return f"{origin.url_key.hex()}-{origin.fetch_no}-{origin.attempt}"


def _headers(request: HttpRequest, cookies: Sequence[SiteCookie]) -> dict[str, str]:
    """The headers that the gateway adds. Cookies of the jar are set in the browser, so that scripts see and change
    them; those that Chromium takes over the network only (`__Host-`) are a header."""
    headers = request.own_headers()
    if request.cookies is not None:
        headers.pop("Cookie", None)
        pairs = [f"{cookie.name}={cookie.value}" for cookie in cookies if cookie.name.startswith(HOST_PREFIX)]
        if value := "; ".join(filter(None, (request.cookies.configured, *pairs))):
            headers["Cookie"] = value
    return headers


def _without_body(capture: Capture) -> Capture:
    """Its body is in a file of the downloader; no other program of the system needs it."""
    return Capture(capture.kind, capture.url, capture.content_type)


def _settle(response: HttpResponse, memory: Reservation) -> None:
    """The reservation lasts as long as the page, if it was rendered."""
    if not response.rendered:
        memory.release()
        return
    bodies = [exchange.response for exchange in response.exchanges]
    exchange_bytes = sum(len(body.body) + len(body.wire_body or b"") for body in bodies)
    memory.settle(BODY_FACTOR * len(response.body) + exchange_bytes)
    response.memory = memory


def _copy(document: DocumentResponse, response: HttpResponse) -> None:
    response.status = document.status
    response.headers = dict(document.headers)
    response.address = document.address
    response.request_head, response.response_head = document.request_head, document.response_head
    if "content-type" in document.headers:
        response.content_type, response.charset = media_type(document.headers["content-type"])


def _with_route(href: str, url: str) -> str:
    """The URL that is dialled, with the fragment of the URL as found: the scripts of the page read it."""
    _, mark, fragment = url.partition("#")
    return href + mark + fragment


def _left_origin(requested: str, url: str) -> str:
    """The URL of a page that a script navigated to another host; empty when it stayed."""
    try:
        target = parse_url(url)
        return target.href if target.host_key != parse_url(requested).host_key else ""
    except ValueError:
        return ""
