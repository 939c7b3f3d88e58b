"""One HTTP/1.1 connection of the lean fetcher: bytes in, calls to the fetcher out.

Invariant: between two calls of the event loop a connection is idle (no exchange) or in one state of one exchange. Bytes
that arrive while it is idle close it. A connection returns to the pool only when its message ended exactly where its
framing said.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from typing import Any

from nephila.downloader.http.buffers import SHARED_BYTES
from nephila.downloader.http.contract import DRAIN_BYTES, SLICE_S, FetchError
from nephila.downloader.http.deadlines import BODY, MEMORY
from nephila.downloader.http.exchange import Exchange, ExchangeOwner
from nephila.downloader.http.response import response_head
from nephila.downloader.http.response.body import Body, decoding
from nephila.downloader.http.response.chunked import Chunked
from nephila.downloader.http.response.decode import codings_of
from nephila.downloader.http.response.head_reader import HeadReader, StaleError
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.memory_budget import BODY_FACTOR, ReservationKind, further

RESERVE_BYTES = SHARED_BYTES
LARGE_BYTES = 4 << 20

IDLE, HEAD, FILL, LENGTH, CHUNKS, CLOSE, GONE = range(7)


class Connection(asyncio.BufferedProtocol):
    """The protocol of one connection. `progress` changes with every read; `requests` counts the requests sent on it.

    Content decoding may need several turns of the event loop (`_work`). Nothing is read until it is done, and an end of
    the connection that comes in between (`_lost`) takes effect after it.

    The memory of a body above `RESERVE_BYTES` is reserved before it is read: of a known length at once, of an unknown
    one in steps (`_covered`: the size up to which it is). Without memory nothing is read.
    """

    __slots__ = (
        "_body",
        "_chunked",
        "_covered",
        "_exchange",
        "_fetcher",
        "_filled",
        "_heads",
        "_left",
        "_lost",
        "_own",
        "_paused",
        "_reuse",
        "_state",
        "_transport",
        "_view",
        "_work",
        "key",
        "progress",
        "requests",
        "waits_for_memory",
    )

    def __init__(self, fetcher: ExchangeOwner, key: tuple[str, int, str, str]) -> None:
        self._fetcher = fetcher
        self.key = key
        self._transport: Any = None
        self._exchange: Exchange[Connection] | None = None
        self._state = IDLE
        self._view = fetcher.buffers.shared_view
        self._own: memoryview | None = None
        self._filled = 0
        self._left = 0
        self._reuse = False
        self._heads = HeadReader()
        self._body: Body | None = None
        self._chunked: Chunked | None = None
        self._work: Iterator[None] | None = None
        self._paused = False
        self._lost: tuple[Exception | None] | None = None
        self._covered = 0
        self.waits_for_memory = False
        self.requests = 0
        self.progress = 0

    # ---- calls of the fetcher

    def send(self, exchange: Exchange[Connection], head: bytes) -> None:
        """Write a request; the next bytes belong to `exchange`."""
        if self._state == GONE:
            self._exchange = exchange
            asyncio.get_running_loop().call_soon(self.connection_lost, None)
            return
        self.requests += 1
        self._exchange = exchange
        self._state = HEAD
        self._heads.begin()
        self._transport.write(head)

    def drop(self) -> None:
        """Close at once without a call to the fetcher."""
        self._exchange = None
        self._state = GONE
        self._release()
        # A TLS transport keeps a reference to its protocol: without the one here there is no reference cycle.
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def tls_object(self) -> ssl.SSLObject | None:
        """The TLS state of an open connection; None without TLS."""
        transport = self._transport
        return None if transport is None else transport.get_extra_info("ssl_object")

    @property
    def received_bytes(self) -> int:
        """Bytes of the body received so far."""
        return self._filled if self._state == FILL else self._body.wire_bytes if self._body is not None else 0

    def give_up(self) -> bool:
        """A time limit is exceeded. True when the response (a 404, say) is complete without its body, and reported."""
        exchange = self._exchange
        if exchange is None or self._state < FILL or self._is_wanted(exchange):
            return False
        self._finish(b"", False)
        return True

    # ---- calls of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio: `nbytes` were read into the buffer of `get_buffer`."""
        self.progress += 1
        state = self._state
        try:
            if state == FILL:
                self._filled += nbytes
                if self._filled == self._left:
                    self._finish_filled()
                else:
                    self._view = self._own[self._filled : self._left]  # type: ignore[index]
            elif state == HEAD:
                self._on_head(nbytes)
            elif state == IDLE:
                self._fetcher.idle_lost(self)
                self.drop()
            elif state != GONE:
                self._on_body(self._view[:nbytes])
        except FetchError as error:
            self._fail(error)

    def eof_received(self) -> None:
        """See asyncio: the transport closes itself and calls `connection_lost`."""

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._transport = None
        if self._work is not None:
            self._lost = (exc,)
            return
        state, self._state = self._state, GONE
        exchange = self._exchange
        if exchange is None:
            if state == IDLE:
                self._fetcher.idle_lost(self)
            return
        how = "closed" if exc is None else f"lost ({getattr(exc, 'strerror', None) or exc or type(exc).__name__})"
        if state == CLOSE and exc is None:
            try:
                self._finish_body(False)
            except FetchError as error:
                self._fail(error)
        elif (state == HEAD and not self._heads.begun) or state == GONE:
            self._exchange = None
            self._fetcher.lost(exchange, f"the connection was {how} before any answer")
        elif state == HEAD:
            self._fail(FetchError(Reason.DISCONNECTED, f"the connection was {how} within the headers"))
        else:
            self._fail(FetchError(Reason.DISCONNECTED, f"the connection was {how} within the body"))

    # ---- head

    def _on_head(self, nbytes: int) -> None:
        buffers = self._fetcher.buffers
        head = self._heads.feed(buffers.shared, buffers.shared_view, nbytes, self.requests > 1)
        if head is not None:
            self._on_headers(*head)

    def _on_headers(self, status: int, headers: dict[str, str], http11: bool, raw: bytes, rest: memoryview) -> None:
        exchange = self._exchange
        assert exchange is not None
        fetcher = self._fetcher
        response = exchange.response
        response.status = status
        response.headers = headers
        response.head_at = fetcher.clock.monotonic()
        exchange.phase = BODY
        if fetcher.config.raw_capture:
            response.response_head = raw
        value = headers.get("content-type")
        if value is not None:
            response.content_type, response.charset = response_head.media_type(value)
        wanted = exchange.request.wants_body(status)
        if wanted and not exchange.request.any_type and not fetcher.wanted(response.content_type):
            response.reason = Reason.CONTENT_TYPE
            response.detail = f"{response.content_type} is not wanted"
            self._state = GONE
            fetcher.done(exchange, False)
            return
        is_head = exchange.request.method == "HEAD"
        length, exact = (0, response_head.is_exact(headers)) if is_head else response_head.framing(status, headers)
        self._reuse = exact and response_head.keeps_alive(headers, http11)
        self._begin_body(length, headers.get("content-encoding", ""), wanted, rest)

    # ---- body

    def _is_wanted(self, exchange: Exchange[Connection]) -> bool:
        return exchange.request.wants_body(exchange.response.status)

    def _begin_body(self, length: int, encoding: str, wanted: bool, rest: memoryview) -> None:
        exchange = self._exchange
        assert exchange is not None
        config, request = self._fetcher.config, exchange.request
        keep = request.keep if wanted else DRAIN_BYTES
        if length >= 0:
            limit = request.max_bytes or config.max_wire_bytes
            if length > limit and not keep:
                raise FetchError(Reason.TOO_LARGE, f"Content-Length {length} is over {limit}")
            if not wanted and length > DRAIN_BYTES:
                exchange.response.truncated = "length"
                self._finish(b"", False)
                return
            if len(rest) > length:
                rest = rest[:length]
                self._reuse = False
            if length <= SHARED_BYTES and not encoding and (not keep or length <= keep):
                self._fill(length, rest)
                return
        codings = codings_of(encoding) if wanted else []
        self._body = Body(config, codings, keep, config.raw_capture, request.max_bytes)
        self._left = length
        self._covered = RESERVE_BYTES
        if length == response_head.CHUNKED:
            self._state = CHUNKS
            self._chunked = Chunked()
        else:
            self._state = LENGTH if length >= 0 else CLOSE
            if length > RESERVE_BYTES and not keep:
                self._reserve(length)
        if len(rest) or length == 0:
            self._on_body(rest)

    def _fill(self, length: int, rest: memoryview) -> None:
        """The fast path: a known length, no coding. The body is in one read, or the kernel fills its own buffer."""
        have = len(rest)
        if have == length:
            self._exchange.response.wire_bytes = length  # type: ignore[union-attr]
            self._finish(bytes(rest), self._reuse)
            return
        own = self._own = self._fetcher.buffers.take()
        own[:have] = rest
        self._filled = have
        self._left = length
        self._view = own[have:length]
        self._state = FILL

    def _finish_filled(self) -> None:
        body = bytes(self._own[: self._left])  # type: ignore[index]
        self._exchange.response.wire_bytes = self._left  # type: ignore[union-attr]
        self._release()
        self._finish(body, self._reuse)

    def _on_body(self, data: memoryview) -> None:
        body = self._body
        assert body is not None
        if self._state == LENGTH:
            if len(data) > self._left:
                data = data[: self._left]
                self._reuse = False
            self._left -= len(data)
        if self._chunked is None and not body.coded:
            body.feed(data)
            self._after_body()
            if body is self._body and body.size > self._covered:
                self._reserve(further(body.size))
        else:
            # Other connections read into the shared buffer before the work is done, so the data is copied.
            self._work = decoding(body, self._chunked, bytes(data))
            self._run()

    def _run(self) -> None:
        """Decode for SLICE_S; the rest follows in later turns of the event loop. Nothing is read in between."""
        assert self._work is not None
        monotonic = self._fetcher.clock.monotonic
        until = monotonic() + SLICE_S
        body = self._body
        for _ in self._work:
            if body is not None and body.size > self._covered and not self._reserve(further(body.size)):
                return
            if monotonic() >= until:
                self._pause(True)
                asyncio.get_running_loop().call_soon(self._continue)
                return
        self._work = None
        self._pause(False)
        self._after_body()

    def _continue(self) -> None:
        if self._work is None:  # closed in the meantime
            return
        try:
            self._run()
        except FetchError as error:
            self._work = None
            self._fail(error)
        if self._work is None and self._lost is not None:
            (exc,) = self._lost
            self._lost = None
            self.connection_lost(exc)

    def _reserve(self, size: int) -> bool:
        """Reserve the memory of a body of `size` bytes; False: nothing is read until it is granted. O(1)."""
        exchange, body = self._exchange, self._body
        assert exchange is not None
        assert body is not None
        self._covered = size = min(size, max(body.limit, body.size))
        response, budget = exchange.response, self._fetcher.budget
        if response.memory is None:
            response.memory = budget.open(ReservationKind.BODY)
        response.memory.arrived_bytes = body.size
        self.waits_for_memory = not response.memory.ask(BODY_FACTOR * size, self._on_memory)
        if self.waits_for_memory:
            self._pause(True)
        return not self.waits_for_memory

    def _on_memory(self, granted: bool) -> None:
        """The reservation is granted: continue. Refused: the fetch ends."""
        if not self.waits_for_memory:  # ended in the meantime
            return
        self.waits_for_memory = False
        if not granted:
            self._fail(FetchError(MEMORY, "the memory is needed for an earlier body"))
            return
        if self._work is not None:
            self._continue()
        else:
            self._pause(False)

    def _pause(self, paused: bool) -> None:
        if paused is self._paused:
            return
        self._paused = paused
        transport = self._transport
        if transport is not None and not transport.is_closing():
            (transport.pause_reading if paused else transport.resume_reading)()

    def _after_body(self) -> None:
        """A read was processed: the message may be complete."""
        body, chunked = self._body, self._chunked
        assert body is not None
        if body.full:
            self._finish_body(False)
        elif chunked is not None:
            if chunked.done:
                self._finish_body(self._reuse and not chunked.trailing)
        elif self._state == LENGTH and self._left == 0:
            self._finish_body(self._reuse)

    def _finish_body(self, reuse: bool) -> None:
        exchange, body = self._exchange, self._body
        assert exchange is not None
        assert body is not None
        response = exchange.response
        response.wire_bytes = body.wire_bytes
        response.wire_body = body.wire_body()
        if response.memory is not None:
            response.memory.settle(BODY_FACTOR * body.size)
            response.memory.arrived_bytes = body.size
        if body.full:
            response.truncated = "length"
        self._finish(body.finish(), reuse)

    def _finish(self, body: bytes, reuse: bool) -> None:
        exchange, self._exchange = self._exchange, None
        assert exchange is not None
        self._body = self._chunked = self._work = None
        response = exchange.response
        if self._is_wanted(exchange):
            response.body = body
        else:
            response.error_body = body
            if self._fetcher.config.raw_capture:
                response.wire_body = body
        if len(body) >= LARGE_BYTES:
            # The receiver hashes it in the same turn of the loop, which takes tens of milliseconds, as joining it did.
            self._state = GONE
            asyncio.get_running_loop().call_soon(self._fetcher.done, exchange, False)
            return
        self._state = IDLE if reuse else GONE
        self._fetcher.done(exchange, reuse)

    def _fail(self, error: FetchError) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if isinstance(error, StaleError):
            self._state = GONE
            self._exchange = None
            self._fetcher.lost(exchange, error.detail)
        elif exchange.response.status and not self._is_wanted(exchange):
            # The status is sufficient; the body was read only to keep the connection.
            exchange.response.truncated = "disconnect"
            self._finish(b"", False)
        else:
            if self._body is not None:
                exchange.response.wire_bytes = self._body.wire_bytes
            self._state = GONE
            self._exchange = None
            self._fetcher.fail(exchange, error.reason, error.detail)

    def _release(self) -> None:
        if self._own is not None:
            self._fetcher.buffers.give(self._own)
            self._own = None
        self._view = self._fetcher.buffers.shared_view
        self._body = self._chunked = self._work = None
        self._heads.begin()
        self.waits_for_memory = False
