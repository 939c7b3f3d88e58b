"""What a step between the service and the fetcher promises.

Steps are called in the order of `CHAIN` for a request, in the opposite one for its answer. They do not await: what has
to be fetched before a request is returned by `prepare`, which the service awaits. A step keeps nothing that has to
survive a restart.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from nephila.downloader.http.contract import Answer, Order
from nephila.downloader.http.target import Target
from nephila.kernel import messages as m


class Middleware(Protocol):
    """One step; see the module."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is there, has changed or is deleted."""

    def prepare(self, request: m.FetchRequest, target: Target) -> Coroutine[Any, Any, None] | None:
        """What has to be done before this request; None: nothing. May raise `FetchError` when awaited."""

    def outgoing(self, request: m.FetchRequest, order: Order) -> None:
        """Add to a request that is about to be sent."""

    def incoming(self, request: m.FetchRequest, target: Target, answer: Answer) -> None:
        """Look at an answer. A `reason` of "stale" gives the request back: it is made again after the host's delay."""
