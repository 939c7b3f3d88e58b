"""The chain of middleware between pipeline and fetcher: which ones exist, their order, and who is called for a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import Fetcher, FetchError, HttpRequest, HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.auth import Auth
from nephila.downloader.middleware.block_detector import BlockDetector
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.cookies import Cookies
from nephila.downloader.middleware.host_headers import HostHeaders, JobRequests
from nephila.downloader.middleware.job_login import JobLogin
from nephila.downloader.middleware.rendered_login import BrowserLogin
from nephila.downloader.middleware.throttle import Throttle
from nephila.downloader.middleware.user.user_files import UserMiddleware
from nephila.downloader.middleware.validators import Validators
from nephila.downloader.middleware.web_bot_auth import WebBotAuth
from nephila.downloader.routing.router import Router
from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.extensions import extension

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Middleware)


class Dependencies(msgspec.Struct, frozen=True):
    """The parts that a middleware may be built from."""

    http: HttpConfig
    config: MiddlewareConfig
    clock: Clock
    router: Router
    fetcher: Fetcher
    previous: tuple[Middleware, ...]
    """The middleware before it in the chain; requests of its own, such as those of a login, pass them as well."""
    browser: BrowserLogin | None = None
    """Of a downloader that renders pages."""


def _site_login(parts: Dependencies) -> Middleware:
    login: Middleware = extension("login")(
        parts.clock, parts.router, parts.fetcher, parts.browser, parts.config.secrets, parts.previous
    )
    return login


CHAIN: tuple[Callable[[Dependencies], Middleware], ...] = (
    lambda parts: HostHeaders(parts.http),
    lambda parts: JobRequests(parts.http),
    lambda parts: Auth(parts.config),
    lambda parts: Cookies(parts.config, parts.clock),
    lambda parts: JobLogin(partial(_site_login, parts)),
    lambda parts: Throttle(parts.config, parts.clock),
    lambda parts: Validators(),
    lambda parts: WebBotAuth(parts.config, parts.clock),
    lambda parts: BlockDetector(parts.http, parts.config.detect_blocks),
    lambda parts: UserMiddleware(parts.config.directory),
)
"""Requests pass in this order, responses in reverse."""


class _Hooks(NamedTuple):
    """The hooks to call for the requests of one job."""

    before_request: tuple[Callable[[m.FetchRequest, TargetUrl], Coroutine[Any, Any, None] | None], ...]
    on_request: tuple[Callable[[m.FetchRequest, HttpRequest], None], ...]
    on_response: tuple[Callable[[m.FetchRequest, TargetUrl, HttpResponse], None], ...]
    on_outcome: tuple[Callable[[m.FetchRequest, TargetUrl, m.FetchOutcome], None], ...]


class MiddlewareChain:
    """Calls the hooks of each middleware that acts on a job. A request costs one dict look-up per hook, and a call per
    middleware that overrides it."""

    def __init__(self, middlewares: Iterable[Middleware]) -> None:
        self._middlewares = tuple(middlewares)
        self._without_job = self._hooks(None)
        self.reads_outcomes = bool(self._without_job.on_outcome)
        """Whether a middleware that acts on all requests reads their outcomes; constant."""
        self._by_job: dict[str, _Hooks] = {}

    def _hooks(self, job: m.CrawlJob | None) -> _Hooks:
        active = [mw for mw in self._middlewares if mw.acts_on(job)]
        return _Hooks(
            tuple(mw.before_request for mw in active if type(mw).before_request is not Middleware.before_request),
            tuple(mw.on_request for mw in active if type(mw).on_request is not Middleware.on_request),
            tuple(mw.on_response for mw in reversed(active) if type(mw).on_response is not Middleware.on_response),
            tuple(mw.on_outcome for mw in reversed(active) if type(mw).on_outcome is not Middleware.on_outcome),
        )

    def on_job(self, job: m.CrawlJob) -> None:
        for middleware in self._middlewares:
            middleware.on_job(job)
        if job.deleted:
            self._by_job.pop(job.uid, None)
        else:
            self._by_job[job.uid] = self._hooks(job)

    def before_request(self, request: m.FetchRequest, target: TargetUrl) -> Coroutine[Any, Any, None] | None:
        """Work of the first middleware that has any; the pipeline calls again once it is done. None: no work."""
        for hook in self._by_job.get(request.job, self._without_job).before_request:
            work = hook(request, target)
            if work is not None:
                return work
        return None

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        for hook in self._by_job.get(request.job, self._without_job).on_request:
            hook(request, http_request)

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        """A hook that raises ends the fetch, and no further hook is called."""
        try:
            for hook in self._by_job.get(request.job, self._without_job).on_response:
                hook(request, target, response)
        except FetchError as error:
            response.reason, response.detail = error.reason, error.detail
        except Exception as error:  # a fault of a middleware costs this fetch, not the host
            log.exception("a middleware failed on a response")
            response.reason, response.detail = Reason.INTERNAL, type(error).__name__

    def on_outcome(self, request: m.FetchRequest, target: TargetUrl, outcome: m.FetchOutcome) -> None:
        for hook in self._by_job.get(request.job, self._without_job).on_outcome:
            hook(request, target, outcome)

    def find(self, kind: type[T]) -> T:
        """The middleware of a class, for its counters. Raises `KeyError`."""
        for middleware in self._middlewares:
            if isinstance(middleware, kind):
                return middleware
        raise KeyError(kind.__name__)

    async def close(self) -> None:
        for middleware in self._middlewares:
            await middleware.close()


def build_chain(
    http: HttpConfig,
    config: MiddlewareConfig,
    clock: Clock,
    router: Router,
    fetcher: Fetcher,
    browser: BrowserLogin | None = None,
) -> MiddlewareChain:
    """The chain of `CHAIN`; raises `UsageError` for settings that make no sense."""
    middlewares: tuple[Middleware, ...] = ()
    for make in CHAIN:
        middlewares += (make(Dependencies(http, config, clock, router, fetcher, middlewares, browser)),)
    return MiddlewareChain(middlewares)
