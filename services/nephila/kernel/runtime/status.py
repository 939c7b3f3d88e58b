"""The status server of a service: GET /healthz, /readyz and /metrics over HTTP/1.1 on a port of its own.

/healthz answers while the event loop runs. /readyz answers 503 with the reason while the service cannot accept work.
One request per connection, bounded in bytes and time: the port may be open to more clients than Prometheus.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from nephila.kernel.runtime.errors import UserError

MAX_REQUEST_BYTES = 8192
REQUEST_S = 5.0
_PLAIN = "text/plain; charset=utf-8"
Answer = tuple[str, str, bytes]
"""(status line, content type, body)"""


class StatusServer:
    """Serves until it is closed; port 0 takes a free one."""

    def __init__(self, port: int, registry: CollectorRegistry, unready: Callable[[], str], host: str = "") -> None:
        """`unready`: why no work can be accepted, or the empty string."""
        self.port = port
        self._host = host
        self._registry = registry
        self._unready = unready
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen. Raises `UserError` when the port is taken."""
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host or None, self.port, limit=MAX_REQUEST_BYTES
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(f"port {self.port} cannot be listened on ({reason}); choose another metrics_port") from None
        # Port 0 gives each address family another port; IPv4 exists on every machine.
        sockets = sorted(self._server.sockets, key=lambda one: one.family != socket.AF_INET)
        self.port = sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop to listen."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_S)
            status, kind, body = self._answer(*head.split(b"\r\n", 1)[0].split(b" ")[:2])
            lines = (
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(lines.encode() + (b"" if head.startswith(b"HEAD ") else body))
            await asyncio.wait_for(writer.drain(), REQUEST_S)
        except (TimeoutError, TypeError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # no request, no response
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer(self, method: bytes, path: bytes) -> Answer:
        if method not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed", _PLAIN, b"GET only\n"
        page = path.partition(b"?")[0]
        if page == b"/healthz":
            return "200 OK", _PLAIN, b"alive\n"
        if page == b"/readyz":
            reason = self._unready()
            return ("503 Service Unavailable" if reason else "200 OK"), _PLAIN, (reason or "ready").encode() + b"\n"
        if page == b"/metrics":
            return "200 OK", CONTENT_TYPE_LATEST, generate_latest(self._registry)
        return "404 Not Found", _PLAIN, b"/healthz, /readyz or /metrics\n"
