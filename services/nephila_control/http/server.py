"""The HTTP server of every program: a Unix socket or a TCP port, h11 by way of uvicorn, on the program's own loop.

Invariants: a connection that sends no whole request head for HEAD_S is closed; at most MAX_WAITING connections wait for
a head, and a further one closes the oldest of them, so incomplete requests refuse no other client; with no request
under way the server causes no wake-ups of the loop but those. Requests under way: see `application.MAX_REQUESTS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h11
import uvicorn
from nephila.kernel.runtime.errors import UserError
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from nephila_control.http.errors import CODES, error_json
from nephila_control.http.unix_socket import NAME, bind

BACKLOG = 64
"""Connections that the system holds until they are accepted."""
MAX_WAITING = 512
"""Connections without a request under way: the head is incomplete, or the client keeps the connection; 10 KB each."""
MAX_HEAD = 64 << 10
"""Bytes of a request's head; a URL of 20,000 characters is percent-encoded in it."""
HEAD_S = 10.0
END_S = 2.0
"""Longest wait at the end for requests under way."""


class _Protocol(H11Protocol):
    """Closes connections on which no whole request head arrives in time."""

    _timer: asyncio.TimerHandle
    _since: float
    """Instant of the loop at which the connection began to wait for a head."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
        waiting: dict[_Protocol, None],
    ) -> None:
        """`waiting` holds the connections without a request under way, the longest waiting first."""
        super().__init__(config, state, {}, loop)
        self._waiting = waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._check)
        self._note()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.pop(self, None)
        self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answers an invalid or too long head with the API's error in place of uvicorn's plain text."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        long = len(self.conn.trailing_data[0]) > MAX_HEAD
        wrong = f"its head is longer than {MAX_HEAD} bytes" if long else "it is not a request of HTTP/1.1"
        body = error_json("invalid", f"the request cannot be read: {wrong}")
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        response = h11.Response(status_code=CODES["invalid"], headers=headers)
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _is_waiting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _note(self) -> None:
        """Enters the connection into the list of waiting ones, or removes it."""
        if not self._is_waiting or self.transport.is_closing():
            self._waiting.pop(self, None)
        elif self not in self._waiting:
            if len(self._waiting) >= MAX_WAITING:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                oldest.transport.abort()
            self._waiting[self] = None
            self._since = self.loop.time()

    def _check(self) -> None:
        left = self._since + HEAD_S - self.loop.time() if self._is_waiting else HEAD_S
        if left <= 0:
            self.transport.close()
        else:
            self._timer = self.loop.call_later(left, self._check)


class HttpServer:
    def __init__(self, application: Any, bind: Callable[[], socket.socket], path: Path | None = None) -> None:
        """`bind` is called by `open`. `path` is that of a Unix socket, which is removed at the end."""
        self.path = path
        self.port = 0
        """Port of the open TCP server, else 0."""
        self._bind = bind
        self._server: asyncio.Server | None = None
        self._state = ServerState()
        self._waiting: dict[_Protocol, None] = {}
        self._config = uvicorn.Config(
            application,
            http=H11Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(HEAD_S),
            h11_max_incomplete_event_size=MAX_HEAD,
        )

    async def open(self) -> None:
        """Raises `UserError`."""
        loop = asyncio.get_running_loop()
        listener = self._bind()
        self._config.load()

        def protocol() -> asyncio.Protocol:
            return _Protocol(self._config, self._state, loop, self._waiting)

        if self.path is not None:
            self._server = await loop.create_unix_server(protocol, sock=listener, backlog=BACKLOG)
        else:
            self.port = int(listener.getsockname()[1])
            self._server = await loop.create_server(protocol, sock=listener, backlog=BACKLOG)

    async def close(self) -> None:
        """Take no further connection; requests under way have END_S to finish."""
        if self._server is None:
            return
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(list(self._state.tasks), timeout=END_S)
            for task in late:
                task.cancel()
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self._server = None


def unix_server(application: Any, directory: Path) -> HttpServer:
    return HttpServer(application, lambda: bind(directory), directory / NAME)


def tcp_server(application: Any, host: str, port: int, option: str) -> HttpServer:
    """An empty host means all addresses, port 0 a free port. `option` names the setting in errors."""

    def listener() -> socket.socket:
        try:
            return _listener(host, port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"port {port} cannot be listened on ({reason}); choose another {option}") from None

    return HttpServer(application, listener)


def _listener(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)
