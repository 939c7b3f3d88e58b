"""What a step between the service and the fetcher promises.

Requests pass the chain in the order of `CHAIN`, responses in reverse. Hooks do not await: work that must come before a
request is returned by `before_request` as a coroutine, which the service awaits. A middleware keeps no durable state.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.target import Target
from nephila.kernel import messages as m


class Middleware(Protocol):
    """One step; see the module."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is there, has changed or is deleted."""

    def before_request(self, request: m.FetchRequest, target: Target) -> Coroutine[Any, Any, None] | None:
        """What has to be done before this request; None: nothing. May raise `FetchError` when awaited."""

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """Add to a request that is about to be sent."""

    def on_response(self, request: m.FetchRequest, target: Target, response: HttpResponse) -> None:
        """Look at an answer. A `reason` of "stale" gives the request back: it is made again after the host's delay."""
