"""The steps between the service and the fetcher, in their order."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.resolver import Egress
from nephila.downloader.http.contract import Answer, Fetcher, Order
from nephila.downloader.http.target import Target
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.cookies import Cookies
from nephila.downloader.middleware.host_headers import HostHeaders
from nephila.downloader.middleware.login import LoginStep
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import Clock

CHAIN = (HostHeaders, Cookies, LoginStep)
"""For a request in this order, for its answer in the opposite one."""


class Chain:
    """All steps; each is asked only while it has something to do, so that a crawl without them pays one look-up."""

    def __init__(self, config: DownloaderConfig, clock: Clock, egress: Egress, fetcher: Fetcher) -> None:
        self._headers = HostHeaders(config)
        self._cookies = Cookies(config, clock)
        self._login = LoginStep(clock, egress, fetcher, config.secrets)
        self._login.dress, self._login.undress = self._dress, self._undress
        self._everywhere = bool(self._headers or config.cookies)
        self._jobs: set[str] = set()

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is there, has changed or is deleted."""
        for step in self._steps:
            step.on_job(job)
        if not job.deleted and (job.cookies or job.login is not None):
            self._jobs.add(job.uid)
        else:
            self._jobs.discard(job.uid)

    @property
    def _steps(self) -> tuple[Middleware, ...]:
        return (self._headers, self._cookies, self._login)

    def is_idle(self, request: m.FetchRequest) -> bool:
        """Whether no step has anything to do with a request."""
        return not self._everywhere and request.job not in self._jobs

    def prepare(self, request: m.FetchRequest, target: Target) -> Coroutine[Any, Any, None] | None:
        """What has to be done before a request; None: nothing."""
        return self._login.prepare(request, target) if request.job in self._jobs else None

    def outgoing(self, request: m.FetchRequest, order: Order) -> None:
        """See `Middleware`."""
        for step in self._steps:
            step.outgoing(request, order)

    def incoming(self, request: m.FetchRequest, target: Target, answer: Answer) -> None:
        """See `Middleware`."""
        for step in reversed(self._steps):
            step.incoming(request, target, answer)

    def _dress(self, request: m.FetchRequest, order: Order) -> None:
        self._headers.outgoing(request, order)
        self._cookies.outgoing(request, order)

    def _undress(self, request: m.FetchRequest, target: Target, answer: Answer) -> None:
        self._cookies.incoming(request, target, answer)

    async def close(self) -> None:
        """Abort what is under way."""
        await self._login.close()
