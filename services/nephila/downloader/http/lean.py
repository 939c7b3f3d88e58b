"""The lean fetcher: one asyncio protocol per connection, no task per request, one timer for all fetches.

All connections read into one shared buffer: the event loop reads and calls the protocol in one step. A body of known
length that does not arrive in one read continues in a buffer of its own, so each body is copied once. A request costs,
beside the kernel, a request head, a response head and one bytes object. `lean_conn.py` reads; this file decides about
dials, reuse, the next address, and the end of a fetch.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.buffers import Buffers
from nephila.downloader.http.contract import MAX_DIALS, FetchError, HttpRequest, OnDone
from nephila.downloader.http.deadlines import CONNECT, HEADERS, MEMORY, DeadlineTimer
from nephila.downloader.http.exchange import Exchange
from nephila.downloader.http.lean_conn import Connection
from nephila.downloader.http.pool import Pool
from nephila.downloader.http.request import RequestHeads, media_filter
from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.http.tls import ResumingContext, dial_error, tls_context
from nephila.downloader.http.tunnel.open_tunnel import InnerTls, connect_through
from nephila.kernel.reasons.table import AnyReason, Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.memory_budget import MemoryBudget, unlimited

STAGGER_S = 0.25
"""Time after which the next address is tried beside a slow one: the connection attempt delay of RFC 8305."""


class LeanFetcher:
    """See `contract.Fetcher`. Needs an event loop that reads and calls the protocol in one step (not Proactor)."""

    def __init__(self, config: DownloaderConfig, clock: Clock, budget: MemoryBudget | None = None) -> None:
        """`budget`: what large bodies are reserved in; None: no limit."""
        self.config = config
        self.budget = budget or unlimited()
        self.buffers = Buffers()
        self.wanted = media_filter(config.accept, config.refuse)
        self.clock = clock
        self._heads = RequestHeads(config)
        self._pool: Pool[Connection] = Pool(config.pool_size, config.keepalive_s, config.pool_most)
        self._deadlines: DeadlineTimer[Exchange[Connection]] = DeadlineTimer(config, clock, self._on_tick)
        self._tls: ResumingContext | None = None
        self._closed = False

    # ---- interface

    def fetch(self, request: HttpRequest, on_done: OnDone) -> Exchange[Connection]:
        """See `Fetcher.fetch`."""
        exchange: Exchange[Connection] = Exchange(self, request, on_done, self.clock.monotonic())
        self._deadlines.add(exchange)
        connection = self._pool.take(self._keys(request))
        if connection is not None:
            self._send(exchange, connection)
        else:
            self._dial(exchange)
        return exchange

    async def close(self) -> None:
        """See `Fetcher.close`."""
        self._closed = True
        for exchange in self._deadlines.all():
            exchange.abort()
        for connection in self._pool.drain():
            connection.drop()
        self._deadlines.close()
        # Transports close their sockets in the next turns of the loop.
        for _ in range(2):
            await asyncio.sleep(0)

    @property
    def idle_connections(self) -> int:
        """Number of idle connections."""
        return len(self._pool)

    # ---- connections

    @staticmethod
    def _keys(request: HttpRequest) -> list[tuple[str, int, str, str]]:
        target, route = request.target, request.route
        scheme = target.scheme if route.proxy is None else _scheme_through(route.proxy, target)
        return [(address, route.port, target.host, scheme) for address in route.addresses[:MAX_DIALS]]

    def _dial(self, exchange: Exchange[Connection]) -> None:
        target, route = exchange.request.target, exchange.request.route
        exchange.phase = CONNECT
        address = exchange.response.address = route.addresses[exchange.dials]
        exchange.dials += 1
        loop = asyncio.get_running_loop()
        if route.proxy is not None:
            exchange.dial = loop.create_task(self._dial_through(exchange, route.proxy, address))
        else:
            exchange.dial = loop.create_task(
                loop.create_connection(
                    lambda: Connection(self, (address, route.port, target.host, target.scheme)),
                    address,
                    route.port,
                    ssl=self._context() if route.tls_name else None,
                    server_hostname=route.tls_name or None,
                )
            )
        exchange.dial.add_done_callback(lambda task: self._dialled(exchange, task))
        if route.proxy is None and exchange.dials < min(MAX_DIALS, len(route.addresses)):
            exchange.stagger = self.clock.call_at(self.clock.monotonic() + STAGGER_S, lambda: self._dial_next(exchange))

    def _dial_next(self, exchange: Exchange[Connection]) -> None:
        """An attempt is slow: try the next address beside it (RFC 8305 section 5)."""
        exchange.stagger = None
        if exchange.dial is not None:
            if exchange.earlier_dials is None:
                exchange.earlier_dials = set()
            exchange.earlier_dials.add(exchange.dial)
            self._dial(exchange)

    @staticmethod
    def _stop_dials(exchange: Exchange[Connection]) -> bool:
        """Cancel all attempts to connect; whether there were any."""
        if exchange.stagger is not None:
            exchange.stagger.cancel()
            exchange.stagger = None
        tasks, exchange.earlier_dials = exchange.earlier_dials or set(), None
        dial, exchange.dial = exchange.dial, None
        if dial is not None:
            tasks.add(dial)
        for task in tasks:
            task.cancel()
        return bool(tasks)

    async def _dial_through(
        self, exchange: Exchange[Connection], hop: ProxyHop, address: str
    ) -> tuple[Any, Connection]:
        """Open a connection through a proxy; TLS is between the server and this process."""
        route, target = exchange.request.route, exchange.request.target
        loop = asyncio.get_running_loop()
        key = (address, route.port, target.host, _scheme_through(hop, target))
        if not hop.tunnel:
            try:
                return await loop.create_connection(lambda: Connection(self, key), address, route.port)
            except OSError as error:
                raise FetchError(Reason.PROXY, f"{hop.name}: {error.strerror or error}") from None
        context = self._context()
        inner = InnerTls(context, route.tls_name) if route.tls_name else None
        return await connect_through(
            address, route.port, hop, lambda: Connection(self, key), inner, context, exchange.on_proxy_connected
        )

    def _dialled(self, exchange: Exchange[Connection], task: asyncio.Task[object]) -> None:
        earlier = exchange.earlier_dials
        if exchange.dial is task:
            exchange.dial = None
        elif earlier is not None and task in earlier:
            earlier.discard(task)
        else:  # the fetch has ended in the meantime, or another attempt was faster
            if not task.cancelled() and task.exception() is None:
                task.result()[1].drop()  # type: ignore[index]
            return
        if task.cancelled():
            self._not_connected(exchange, FetchError(Reason.CONNECT, "the attempt was cancelled"))
        elif (error := task.exception()) is not None:
            self._not_connected(exchange, dial_error(error, exchange.request.target.scheme))
        else:
            self._stop_dials(exchange)
            self._send(exchange, task.result()[1])  # type: ignore[index]

    def _not_connected(self, exchange: Exchange[Connection], error: FetchError) -> None:
        """An attempt failed: the next address follows at once; without one, attempts in flight may still succeed."""
        if exchange.dials < min(MAX_DIALS, len(exchange.request.route.addresses)):
            if exchange.stagger is not None:
                exchange.stagger.cancel()
                exchange.stagger = None
            if exchange.dial is not None:
                self._dial_next(exchange)
            else:
                self._dial(exchange)
        elif exchange.dial is None and not exchange.earlier_dials:
            self.fail(exchange, error.reason, error.detail)

    def _context(self) -> ResumingContext:
        if self._tls is None:
            self._tls = tls_context(self.config.tls_verify)
        return self._tls

    def _send(self, exchange: Exchange[Connection], connection: Connection) -> None:
        response = exchange.response
        response.address = connection.key[0]
        exchange.connection = connection
        exchange.phase = HEADERS
        head = self._heads.make(exchange.request)
        if self.config.raw_capture:
            response.request_head = self._heads.shown(exchange.request)
        body = exchange.request.body
        connection.send(exchange, head if body is None else head + body)
        if exchange.request.on_sent is not None:
            exchange.request.on_sent()

    # ---- calls of the connections

    def done(self, exchange: Exchange[Connection], reuse: bool) -> None:
        """The response is complete; the connection returns to the pool, or is closed when it cannot be reused."""
        connection, exchange.connection = exchange.connection, None
        if connection is not None:
            if reuse and not self._closed:
                evicted = self._pool.put(connection.key, connection, self.clock.monotonic())
                if evicted is not None:
                    self._drop(evicted)
            else:
                self._drop(connection)
        self._deadlines.discard(exchange)
        on_done, exchange.on_done = exchange.on_done, None
        if on_done is not None:
            on_done(exchange.response)

    def _drop(self, connection: Connection) -> None:
        """Close a connection that served a request. Its TLS session is stored only now: many connections are closed by
        the end of the crawl or by the server, and need none."""
        if self._tls is not None and (tls := connection.tls_object()) is not None:
            self._tls.keep_session(tls)
        connection.drop()

    def fail(self, exchange: Exchange[Connection], reason: AnyReason, detail: str) -> None:
        """The fetch ends without a usable response."""
        response = exchange.response
        response.reason = reason
        response.detail = detail
        response.body = b""
        if response.memory is not None:
            response.memory.release()
            response.memory = None
        self.done(exchange, False)

    def lost(self, exchange: Exchange[Connection], detail: str) -> None:
        """The connection broke before the first byte of a response; a reused one may have been closed by the server.

        The fetcher never repeats the request: the server may have read it, so the delay of the host applies first.
        """
        connection = exchange.connection
        reused = connection is not None and connection.requests > 1
        self.fail(exchange, Reason.STALE if reused else Reason.DISCONNECTED, detail)

    def idle_lost(self, connection: Connection) -> None:
        """The server closed an idle connection, or sent bytes on it without a request."""
        self._pool.remove(connection.key, connection)

    def forget(self, exchange: Exchange[Connection]) -> None:
        """Close what an aborted exchange holds."""
        self._deadlines.discard(exchange)
        self._stop_dials(exchange)
        if exchange.response.memory is not None:
            exchange.response.memory.release()
        if exchange.connection is not None:
            connection, exchange.connection = exchange.connection, None
            connection.drop()

    # ---- time limits

    def time_out(self, exchange: Exchange[Connection], detail: str) -> None:
        """A limit is exceeded. After an attempt to connect, the next address may follow."""
        if self._stop_dials(exchange) and detail.startswith("connect:"):
            self._not_connected(exchange, FetchError(Reason.TIMEOUT, detail))
            return
        connection = exchange.connection
        if connection is None or not connection.give_up():
            self.fail(exchange, MEMORY if exchange.waits_for_memory else Reason.TIMEOUT, detail)

    def _on_tick(self, now: float) -> bool:
        for connection in self._pool.expired(now):
            self._drop(connection)
        return len(self._pool) > 0


def _scheme_through(hop: ProxyHop, target: TargetUrl) -> str:
    """What tells connections through a proxy apart, in the place of the scheme in a key of the pool."""
    return f"{target.scheme}:{target.port} {hop.name}"
