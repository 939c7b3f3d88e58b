"""One fetch in flight of the lean fetcher: request, response so far, connection, attempts to dial."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.buffers import Buffers
from nephila.downloader.http.contract import HttpRequest, HttpResponse, OnDone
from nephila.downloader.http.deadlines import TUNNEL, TimedFetch
from nephila.kernel.reasons.table import AnyReason
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.memory_budget import MemoryBudget


class ReadProgress(Protocol):
    """How far a connection has read its response; see `TimedFetch`."""

    progress: int
    waits_for_memory: bool

    @property
    def received_bytes(self) -> int:
        """Bytes of the body received so far."""


C = TypeVar("C", bound=ReadProgress)


class ExchangeOwner(Protocol):
    """The fetcher, as its exchanges and connections call it."""

    config: DownloaderConfig
    clock: Clock
    budget: MemoryBudget
    buffers: Buffers
    wanted: Callable[[str], bool]

    def done(self, exchange: Exchange[Any], reuse: bool) -> None:
        """The response is complete."""

    def fail(self, exchange: Exchange[Any], reason: AnyReason, detail: str) -> None:
        """There is no usable response."""

    def lost(self, exchange: Exchange[Any], detail: str) -> None:
        """The connection broke before the first byte of a response."""

    def idle_lost(self, connection: Any) -> None:
        """The server ended an idle connection."""

    def forget(self, exchange: Exchange[Any]) -> None:
        """The caller has aborted the exchange."""

    def time_out(self, exchange: Exchange[Any], detail: str) -> None:
        """A limit is exceeded."""


class Exchange(TimedFetch, Generic[C]):
    """One fetch in flight; the handle of its caller."""

    __slots__ = (
        "connection",
        "dial",
        "earlier_dials",
        "fetcher",
        "on_done",
        "request",
        "response",
        "stagger",
    )

    def __init__(self, fetcher: ExchangeOwner, request: HttpRequest, on_done: OnDone, started: float) -> None:
        super().__init__(started)
        self.fetcher = fetcher
        self.request = request
        self.on_done: OnDone | None = on_done
        self.response = HttpResponse()
        self.connection: C | None = None
        self.dial: asyncio.Task[object] | None = None
        """The latest attempt to connect."""
        self.earlier_dials: set[asyncio.Task[object]] | None = None
        """Attempts that were slower than `STAGGER_S` and continue."""
        self.stagger: Timer | None = None

    def abort(self) -> None:
        """See `Handle.abort`."""
        if self.on_done is not None:
            self.on_done = None
            self.fetcher.forget(self)

    @property
    def received_bytes(self) -> int:
        """See `TimedFetch.received_bytes`."""
        return self.connection.received_bytes if self.connection is not None else 0

    @property
    def waits_for_memory(self) -> bool:
        """See `TimedFetch.waits_for_memory`."""
        return self.connection is not None and self.connection.waits_for_memory

    @property
    def progress(self) -> int:
        """See `TimedFetch.progress`."""
        return self.connection.progress if self.connection is not None else 0

    def on_proxy_connected(self) -> None:
        """A further delay may be that of the server."""
        self.phase = TUNNEL

    def time_out(self, detail: str) -> None:
        """See `TimedFetch.time_out`."""
        self.fetcher.time_out(self, detail)
