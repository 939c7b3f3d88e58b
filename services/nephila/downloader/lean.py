"""The lean fetcher: one asyncio protocol per connection, no task per request, one timer for everybody.

Reads land in one buffer shared by all connections (the loop reads and hands over in one step); a body of known length
that does not come in one read goes on in a buffer of its own, so every body is copied once. What a request costs beside
the kernel: a request head, a response head, and one bytes object. `lean_conn.py` reads, this file decides what is
dialled, reused, tried again and given up.
"""

from __future__ import annotations

import asyncio
import ssl

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.fetcher import MAX_DIALS, Answer, FetchError, OnDone, Order
from nephila.downloader.lean_conn import Buffers, Connection
from nephila.downloader.pool import Pool
from nephila.downloader.request import RequestHeads, media_filter
from nephila.kernel.clock import Clock, Timer

CONNECT, HEADERS, BODY = 1, 2, 3


class Exchange:
    """One fetch on its way; the handle its caller holds."""

    __slots__ = (
        "answer",
        "body_since",
        "connection",
        "dial",
        "dials",
        "fetcher",
        "on_done",
        "order",
        "phase",
        "phase_seen",
        "progress_seen",
        "progress_since",
        "retried",
        "since",
        "started",
    )

    def __init__(self, fetcher: LeanFetcher, order: Order, on_done: OnDone, started: float) -> None:
        self.fetcher = fetcher
        self.order = order
        self.on_done: OnDone | None = on_done
        self.answer = Answer()
        self.connection: Connection | None = None
        self.dial: asyncio.Task[object] | None = None
        self.dials = 0
        self.retried = False
        self.phase = CONNECT
        self.started = self.since = self.progress_since = started
        self.phase_seen = 0
        self.progress_seen = -1

    def abort(self) -> None:
        """See `Handle.abort`."""
        if self.on_done is not None:
            self.on_done = None
            self.fetcher.forget(self)


class LeanFetcher:
    """See `nephila.downloader.fetcher.Fetcher`. Needs a loop that reads and hands over in one step (not Proactor)."""

    def __init__(self, config: DownloaderConfig, clock: Clock) -> None:
        self.config = config
        self.buffers = Buffers()
        self.wanted = media_filter(config.accept, config.refuse)
        self._clock = clock
        self._heads = RequestHeads(config)
        self._pool: Pool[Connection] = Pool(config.pool_size, config.keepalive_s)
        self._active: set[Exchange] = set()
        self._timer: Timer | None = None
        shortest = min(
            config.connect_timeout_s, config.headers_timeout_s, config.idle_timeout_s, config.body_timeout_s,
            config.total_timeout_s, config.keepalive_s,
        )  # fmt: skip
        self._tick_s = min(0.5, max(0.01, shortest / 8))
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    # What callers see

    def fetch(self, order: Order, on_done: OnDone) -> Exchange:
        """See `Fetcher.fetch`."""
        exchange = Exchange(self, order, on_done, self._clock.monotonic())
        self._active.add(exchange)
        if self._timer is None:
            self._arm()
        connection = self._pool.take(self._keys(order))
        if connection is not None:
            self._send(exchange, connection)
        else:
            self._dial(exchange)
        return exchange

    async def close(self) -> None:
        """See `Fetcher.close`."""
        self._closed = True
        for exchange in list(self._active):
            exchange.abort()
        for connection in self._pool.drain():
            connection.drop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Transports tell their protocols in the next turns of the loop; without them sockets would outlive us.
        for _ in range(2):
            await asyncio.sleep(0)

    @property
    def idle_connections(self) -> int:
        """Connections waiting for their next request."""
        return len(self._pool)

    # Connections

    @staticmethod
    def _keys(order: Order) -> list[tuple[str, int, str, str]]:
        target = order.target
        return [(address, order.dial_port, target.host, target.scheme) for address in order.addresses[:MAX_DIALS]]

    def _dial(self, exchange: Exchange) -> None:
        order = exchange.order
        target = order.target
        exchange.phase = CONNECT
        address = exchange.answer.address = order.addresses[exchange.dials]
        exchange.dials += 1
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        exchange.dial = loop.create_task(
            loop.create_connection(
                lambda: Connection(self, (address, order.dial_port, target.host, target.scheme)),
                address,
                order.dial_port,
                ssl=self._context() if secure else None,
                server_hostname=target.dial_host.rstrip(".") if secure else None,
            )
        )
        exchange.dial.add_done_callback(lambda task: self._dialled(exchange, task))

    def _dialled(self, exchange: Exchange, task: asyncio.Task[object]) -> None:
        if exchange.dial is not task:  # given up meanwhile
            if not task.cancelled() and task.exception() is None:
                task.result()[1].drop()  # type: ignore[index]
            return
        exchange.dial = None
        if task.cancelled():
            self._not_connected(exchange, FetchError("connect", "the attempt was cancelled"))
        elif (error := task.exception()) is not None:
            self._not_connected(exchange, dial_error(error, exchange.order.target.scheme))
        else:
            self._send(exchange, task.result()[1])  # type: ignore[index]

    def _not_connected(self, exchange: Exchange, error: FetchError) -> None:
        if exchange.dials < min(MAX_DIALS, len(exchange.order.addresses)):
            self._dial(exchange)
        else:
            self.fail(exchange, error.reason, error.detail)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = tls_context(self.config.tls_verify)
        return self._tls

    def _send(self, exchange: Exchange, connection: Connection) -> None:
        answer = exchange.answer
        answer.address = connection.key[0]
        exchange.connection = connection
        exchange.phase = HEADERS
        head = self._heads.make(exchange.order)
        if self.config.raw_capture:
            answer.request_head = head
        connection.send(exchange, head)

    # What connections report

    def done(self, exchange: Exchange, reuse: bool) -> None:
        """The answer is complete; the connection is free, or dropped where it cannot be used again."""
        connection, exchange.connection = exchange.connection, None
        if connection is not None:
            if reuse and not self._closed:
                evicted = self._pool.put(connection.key, connection, self._clock.monotonic())
                if evicted is not None:
                    evicted.drop()
            else:
                connection.drop()
        self._active.discard(exchange)
        on_done, exchange.on_done = exchange.on_done, None
        if on_done is not None:
            on_done(exchange.answer)

    def fail(self, exchange: Exchange, reason: str, detail: str) -> None:
        """The fetch ends without an answer worth having."""
        answer = exchange.answer
        answer.reason = reason
        answer.detail = detail
        answer.body = b""
        self.done(exchange, False)

    def lost(self, exchange: Exchange, detail: str) -> None:
        """The connection died before the first byte of an answer; a reused one may have been closed meanwhile."""
        connection, exchange.connection = exchange.connection, None
        if connection is not None and connection.requests > 1 and not exchange.retried:
            exchange.retried = True
            exchange.dials = 0
            connection.drop()
            self._dial(exchange)
        else:
            exchange.connection = connection
            self.fail(exchange, "disconnected", detail)

    def idle_lost(self, connection: Connection) -> None:
        """An idle connection was closed by the server, or spoke out of turn."""
        self._pool.remove(connection.key, connection)

    def forget(self, exchange: Exchange) -> None:
        """Drop what an aborted exchange holds."""
        self._active.discard(exchange)
        if exchange.dial is not None:
            task, exchange.dial = exchange.dial, None
            task.cancel()
        if exchange.connection is not None:
            connection, exchange.connection = exchange.connection, None
            connection.drop()

    # The one timer

    def _arm(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + self._tick_s, self._sweep)

    def _sweep(self) -> None:
        """Look at every exchange: O(active) per tick, and no clock is read on the way of a byte."""
        self._timer = None
        now = self._clock.monotonic()
        for exchange in list(self._active):
            if exchange.on_done is not None:
                self._look_at(exchange, now)
        for connection in self._pool.expired(now):
            connection.drop()
        if (self._active or len(self._pool)) and not self._closed and self._timer is None:
            self._arm()

    def _look_at(self, exchange: Exchange, now: float) -> None:
        config = self.config
        if now - exchange.started > config.total_timeout_s:
            self._time_out(exchange, f"total: not done after {config.total_timeout_s:g} s")
            return
        phase = exchange.phase + 8 * exchange.dials
        if phase != exchange.phase_seen:
            exchange.phase_seen, exchange.since = phase, now
        elapsed = now - exchange.since
        if exchange.phase == CONNECT:
            if elapsed > config.connect_timeout_s:
                if exchange.dial is not None:
                    task, exchange.dial = exchange.dial, None
                    task.cancel()
                detail = f"connect: no connection within {config.connect_timeout_s:g} s"
                self._not_connected(exchange, FetchError("timeout", detail))
        elif exchange.phase == HEADERS:
            if elapsed > config.headers_timeout_s:
                self._time_out(exchange, f"headers: none complete within {config.headers_timeout_s:g} s")
        elif exchange.connection is not None:
            progress = exchange.connection.progress
            if progress != exchange.progress_seen:
                exchange.progress_seen, exchange.progress_since = progress, now
            if now - exchange.progress_since > config.idle_timeout_s:
                self._time_out(exchange, f"body: nothing came for {config.idle_timeout_s:g} s")
            elif elapsed > config.body_timeout_s:
                self._time_out(exchange, f"body: not complete within {config.body_timeout_s:g} s")

    def _time_out(self, exchange: Exchange, detail: str) -> None:
        if exchange.dial is not None:
            task, exchange.dial = exchange.dial, None
            task.cancel()
        connection = exchange.connection
        if connection is None or not connection.give_up():
            self.fail(exchange, "timeout", detail)


def tls_context(verify: bool) -> ssl.SSLContext:
    """The client's TLS settings; one context for all connections."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def dial_error(error: BaseException, scheme: str) -> FetchError:
    """One word and one line for why no connection came about."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return FetchError("tls", f"certificate: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return FetchError("tls", f"handshake: {error.reason or text}")
    if scheme == "https" and isinstance(error, (ConnectionResetError, ConnectionAbortedError, EOFError)):
        return FetchError("tls", f"the connection was closed during the handshake: {text}")
    if isinstance(error, OSError):
        return FetchError("connect", text)
    return FetchError("connect", f"{type(error).__name__}: {text}")
