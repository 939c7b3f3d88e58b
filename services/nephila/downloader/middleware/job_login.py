"""The port of logins: a middleware that `nephila_login` makes, loaded with the first job that has a login."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.contract import Middleware
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of


class JobLogin(Middleware):
    """A stand-in that has no session; `make` builds the middleware which takes its hooks."""

    def __init__(self, make: Callable[[], Middleware]) -> None:
        self._make = make
        self._login: Middleware | None = None

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return job is not None and spec_of(job).login is not None

    def on_job(self, job: m.CrawlJob) -> None:
        if self._login is None and self.acts_on(job):
            self._login = self._make()
        if self._login is not None:
            self._login.on_job(job)

    @property
    def login(self) -> Middleware:
        """The middleware of the package; the chain calls hooks only for a job whose login `on_job` has seen."""
        assert self._login is not None
        return self._login

    def before_request(self, request: m.FetchRequest, target: TargetUrl) -> Coroutine[Any, Any, None] | None:
        return self.login.before_request(request, target)

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        self.login.on_request(request, http_request)

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        self.login.on_response(request, target, response)

    async def close(self) -> None:
        if self._login is not None:
            await self._login.close()
