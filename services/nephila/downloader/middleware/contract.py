"""The contract of a middleware: hooks around each HTTP request of the downloader.

Requests pass the chain in the order of `CHAIN`, responses in reverse. Hooks do not await: work that must come before a
request is returned by `before_request` as a coroutine, which the pipeline awaits. A middleware keeps no durable state.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason


class PausedError(Exception):
    """Work before a request failed for a while: the request is given back, and its host pauses."""

    def __init__(self, reason: Reason, detail: str, retry_after_s: float) -> None:
        super().__init__(detail)
        self.reason = reason
        self.retry_after_s = retry_after_s


class Middleware:
    """Base class; every hook does nothing. The chain calls only hooks that a subclass overrides."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        """Whether requests of a job pass this middleware; None: requests without a job, or of a job not known yet."""
        return True

    def before_request(self, request: m.FetchRequest, target: TargetUrl) -> Coroutine[Any, Any, None] | None:
        """Work that must come before this request; None: nothing. The coroutine may raise `FetchError`,
        or `PausedError`."""
        return None

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """Change a request that is about to be sent."""

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        """Read or change a response. A `reason` of "stale" gives the request back: it is sent again after the delay of
        its host."""

    def on_outcome(self, request: m.FetchRequest, target: TargetUrl, outcome: m.FetchOutcome) -> None:
        """Read the outcome of a fetch that was dialled, before it is published."""

    async def close(self) -> None:
        """Cancel work in flight."""
