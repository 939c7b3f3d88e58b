"""The steps between the service and the fetcher, in their order."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.resolver import GuardedResolver
from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse
from nephila.downloader.http.target import Target
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.cookies import Cookies
from nephila.downloader.middleware.host_headers import HostHeaders
from nephila.downloader.middleware.login import FormLogin
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import Clock

CHAIN = (HostHeaders, Cookies, FormLogin)
"""For a request in this order, for its answer in the opposite one."""


class MiddlewareChain:
    """All steps; each is asked only while it has something to do, so that a crawl without them pays one look-up."""

    def __init__(self, config: DownloaderConfig, clock: Clock, resolver: GuardedResolver, fetcher: Fetcher) -> None:
        self._headers = HostHeaders(config)
        self._cookies = Cookies(config, clock)
        self._login = FormLogin(clock, resolver, fetcher, config.secrets)
        self._login.dress, self._login.undress = self._dress, self._undress
        self._everywhere = bool(self._headers or config.cookies)
        self._jobs: set[str] = set()

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is there, has changed or is deleted."""
        for middleware in self._middlewares:
            middleware.on_job(job)
        if not job.deleted and (job.cookies or job.login is not None):
            self._jobs.add(job.uid)
        else:
            self._jobs.discard(job.uid)

    @property
    def _middlewares(self) -> tuple[Middleware, ...]:
        return (self._headers, self._cookies, self._login)

    def skips(self, request: m.FetchRequest) -> bool:
        """Whether no step has anything to do with a request."""
        return not self._everywhere and request.job not in self._jobs

    def before_request(self, request: m.FetchRequest, target: Target) -> Coroutine[Any, Any, None] | None:
        """What has to be done before a request; None: nothing."""
        return self._login.before_request(request, target) if request.job in self._jobs else None

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """See `Middleware`."""
        for middleware in self._middlewares:
            middleware.on_request(request, http_request)

    def on_response(self, request: m.FetchRequest, target: Target, response: HttpResponse) -> None:
        """See `Middleware`."""
        for middleware in reversed(self._middlewares):
            middleware.on_response(request, target, response)

    def _dress(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        self._headers.on_request(request, http_request)
        self._cookies.on_request(request, http_request)

    def _undress(self, request: m.FetchRequest, target: Target, response: HttpResponse) -> None:
        self._cookies.on_response(request, target, response)

    async def close(self) -> None:
        """Abort what is under way."""
        await self._login.close()
