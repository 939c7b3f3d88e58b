"""The native fetcher: one I/O thread in the native core, without the GIL. Responses come back in batches.

This file makes the request heads, hands over addresses that have passed the egress guard, and turns each ended fetch
into an `HttpResponse`. One wake-up of the event loop serves all responses since the last one. ADR 160.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import MAX_DIALS, HttpRequest, HttpResponse, OnDone
from nephila.downloader.http.request import RequestHeads
from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.http.tunnel.proxy_handshake import ConnectHandshake
from nephila.kernel.messages import FetchKind
from nephila.kernel.pages.mime import media_type
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.process.container import Container
from nephila.kernel.process.memory_budget import BODY_FACTOR, MemoryBudget, Reservation, ReservationKind, unlimited
from nephila.kernel.reasons.status_words import StatusReason, tunnel_status_of
from nephila.kernel.reasons.table import AnyReason, Reason
from nephila.kernel.runtime.clock import Clock
from nephila.native._core import HttpClient

if TYPE_CHECKING:
    from nephila.native._core import EndedFetch


MAX_PAGE_THREADS = 8

_ROBOTS = FetchKind.ROBOTS
_REASONS: dict[str, Reason] = {str(reason): reason for reason in Reason}


class _Fetch(msgspec.Struct, eq=False):
    """One fetch in flight; the handle of its caller."""

    _fetcher: NativeFetcher
    number: int
    request: HttpRequest
    on_done: OnDone
    memory: Reservation | None = None
    """Of a large body that arrives."""
    sent: bool = False
    """Whether `on_sent` was called."""

    __repr__ = object.__repr__

    def abort(self) -> None:
        self._fetcher.forget(self.number)


class NativeFetcher:
    """The fetcher needs the native core and an event loop that waits for file descriptors."""

    def __init__(
        self,
        config: HttpConfig,
        clock: Clock,
        budget: MemoryBudget | None = None,
        read_pages: ReadPages | None = None,
        processes: int = 1,
    ) -> None:
        """`budget`: what large bodies are reserved in; None: no limit. `read_pages`: of the parser in this process;
        None: no body is read here. `processes`: downloaders that share the cores."""
        self._config = config
        self._budget = budget or unlimited()
        self._clock = clock
        self._heads = RequestHeads(config)
        self._read_pages = read_pages
        options = None if read_pages is None else read_pages.options
        self._client = HttpClient(config, options, _page_threads(config, processes))
        self._fetches: dict[int, _Fetch] = {}
        self._last = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flush_due = False

    # ---- interface

    def fetch(self, request: HttpRequest, on_done: OnDone) -> _Fetch:
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
            loop.add_reader(self._client.wake_fd, self._on_events)
        self._last = number = self._last + 1
        fetch = self._fetches[number] = _Fetch(self, number, request, on_done)
        target, route = request.target, request.route
        hop, pages = route.proxy, self._read_pages
        head, body, origin = self._heads.make(request), request.body, request.origin
        self._client.submit(
            number,
            route.addresses[:MAX_DIALS],
            route.port,
            route.tls_name,
            # What tells connections to one address and port apart.
            f"{target.host} {target.scheme}" if hop is None else _tunnel_key(target, hop),
            head if body is None else head + body,
            any_type=request.any_type,
            forwarded=request.forwarded,
            head_only=request.method == "HEAD",
            keep=request.keep,
            max_bytes=request.max_bytes,
            report_sent=request.on_sent is not None,
            proxy=None if hop is None else _proxy_of(hop),
            page_url=origin.url if origin is not None and origin.kind is not _ROBOTS else "",
            main_text=pages is None or origin is None or pages.wants_main_text(origin.job),
        )
        if not self._flush_due:
            self._flush_due = True
            loop.call_soon(self._flush)
        return fetch

    def _flush(self) -> None:
        """One wake-up of the thread for all requests of a turn."""
        self._flush_due = False
        self._client.flush()

    async def close(self) -> None:
        self._fetches.clear()
        if self._loop is not None:
            self._loop.remove_reader(self._client.wake_fd)
            self._loop = None
        self._client.close()

    @property
    def idle_connections(self) -> int:
        return self._client.idle_connections

    def forget(self, number: int) -> None:
        """The caller has aborted the fetch: its events find nothing."""
        fetch = self._fetches.pop(number, None)
        if fetch is not None:
            self._client.abort(number)
            if fetch.memory is not None:
                fetch.memory.release()

    # ---- events of the thread

    def _on_events(self) -> None:
        fetches = self._fetches
        for event in self._client.drain():
            if isinstance(event, int):
                fetch = fetches.get(event)
                if fetch is not None:
                    self._on_sent(fetch)
            elif isinstance(event, tuple):
                fetch = fetches.get(event[0])
                if fetch is not None:
                    self._reserve(fetch, event[1], event[2])
            else:
                fetch = fetches.pop(event.id, None)
                if fetch is not None:
                    response = self._response(fetch, event)
                    if response.status and fetch.request.on_sent is not None:
                        self._on_sent(fetch)
                    fetch.on_done(response)

    def _on_sent(self, fetch: _Fetch) -> None:
        on_sent = fetch.request.on_sent
        if on_sent is not None and not fetch.sent:
            fetch.sent = True
            on_sent()

    def _reserve(self, fetch: _Fetch, size: int, arrived_bytes: int) -> None:
        """The thread reads no further byte of this body until its memory is granted."""
        memory = fetch.memory
        if memory is None:
            memory = fetch.memory = self._budget.open(ReservationKind.BODY, fetch.request.target.host)
        memory.arrived_bytes = arrived_bytes
        if memory.ask(BODY_FACTOR * size, lambda granted: self._on_memory(fetch, granted)):
            self._client.grant(fetch.number)

    def _on_memory(self, fetch: _Fetch, granted: bool) -> None:
        if fetch.number not in self._fetches:
            return
        if granted:
            self._client.grant(fetch.number)
            return
        self.forget(fetch.number)
        fetch.on_done(_failed(Reason.MEMORY, "the memory is needed for an earlier body"))

    def _response(self, fetch: _Fetch, ended: EndedFetch) -> HttpResponse:
        request = fetch.request
        (status, headers, body, body_is_wanted, wire_body, wire_bytes), rest, page = ended.take()
        if page is not None and self._read_pages is not None:
            self._read_pages.put(page)
        head, truncated, reason, detail, address, head_age_s, cause = rest
        # A field of a struct costs 5 ns when it is made, 22 ns when it is set later.
        response = HttpResponse(
            status=status,
            headers=headers,
            wire_bytes=wire_bytes,
            truncated=truncated,
            address=address,
            head_at=self._clock.monotonic() - head_age_s if status else 0.0,
        )
        value = headers.get("content-type")
        if value is not None:
            response.content_type, response.charset = media_type(value)
        raw_capture = self._config.raw_capture
        if body_is_wanted:
            response.body = body
            response.wire_body = wire_body
        else:
            response.error_body = body
            response.wire_body = body if raw_capture and not reason else None
        memory = fetch.memory
        if reason:
            response.reason = StatusReason(reason) if tunnel_status_of(reason) else _REASONS[reason]
            response.detail, response.cause = detail, cause
            if memory is not None:
                memory.release()
        elif memory is not None:
            memory.settle(BODY_FACTOR * len(body))
            memory.arrived_bytes = len(body)
            response.memory = memory
        if raw_capture:
            response.response_head = head
            if status:
                response.request_head = self._heads.shown(request)
        return response


def _page_threads(config: HttpConfig, processes: int) -> int:
    """As many as cores, divided by the downloaders in this container, and at least one: the event loop would read pages
    between other work, and its caches would hold neither. None for one core in all, where a page only would change
    threads twice: its body is read when it is taken, by the same code."""
    cores = int(Container().read().cores)
    return config.page_threads or (min(MAX_PAGE_THREADS, max(cores // processes, 1)) if cores > 1 else 0)


def _tunnel_key(target: TargetUrl, hop: ProxyHop) -> str:
    """The key that tells connections to one address and port apart, through a proxy."""
    return f"{target.host} {target.scheme}:{target.port} {hop.name}"


def _proxy_of(hop: ProxyHop) -> tuple[str, str, str, str, str, str, int, bytes]:
    connect = ConnectHandshake(hop).start() if hop.tunnel and hop.scheme != "socks5" else b""
    return hop.name, hop.tls_name, hop.scheme, hop.user, hop.password, hop.host, hop.port, connect


def _failed(reason: AnyReason, detail: str) -> HttpResponse:
    response = HttpResponse()
    response.reason = reason
    response.detail = detail
    return response
