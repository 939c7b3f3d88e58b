"""The server side of a WebSocket: bytes are relayed, counted, and held back while the other side reads slowly."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol

from nephila.downloader.http.contract import MAX_DIALS
from nephila.downloader.http.route import Route
from nephila.downloader.http.tls import dial_error
from nephila.kernel.reasons.table import Reason

from nephila_browser.gateway.upstream import Call, UpstreamRefused


class Peer(Protocol):
    """The connection of the browser."""

    def write(self, data: bytes) -> None:
        """Send bytes of the server to the browser."""

    def close(self) -> None:
        """Close the connection."""


class WebSocketTunnel(asyncio.Protocol):
    """The connection to the server. It sends the handshake; the response and all frames pass unchanged."""

    def __init__(self, peer: Peer, count: Callable[[int], bool]) -> None:
        self._peer = peer
        self._count = count
        self._transport: asyncio.Transport | None = None

    def send(self, data: bytes) -> None:
        """Send bytes of the browser to the server."""
        if self._transport is not None and self._count(len(data)):
            self._transport.write(data)
        else:
            self._peer.close()

    def hold(self, held: bool) -> None:
        """Stop reading while the browser does not read."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            (transport.pause_reading if held else transport.resume_reading)()

    def close(self) -> None:
        """Close the connection to the server."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._count(len(data)):
            self._peer.write(data)
        else:
            self._peer.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._peer.close()


def handshake(call: Call, headers: dict[str, str]) -> bytes:
    """The request of a WebSocket as the server receives it."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {call.target.path} HTTP/1.1\r\nhost: {call.target.host_header}\r\n{lines}\r\n".encode("latin-1")


async def dial(
    route: Route, tls: ssl.SSLContext, timeout_s: float, make: Callable[[], WebSocketTunnel]
) -> WebSocketTunnel:
    """Connect to the first address that accepts; every one has passed the egress guard. Raises `UpstreamRefused`."""
    loop = asyncio.get_running_loop()
    failure = UpstreamRefused(Reason.CONNECT, "no address")
    for address in route.addresses[:MAX_DIALS]:
        try:
            async with asyncio.timeout(timeout_s):
                _, tunnel = await loop.create_connection(
                    make,
                    address,
                    route.port,
                    ssl=tls if route.tls_name else None,
                    server_hostname=route.tls_name or None,
                )
            return tunnel
        except TimeoutError:
            failure = UpstreamRefused(Reason.TIMEOUT, f"connect: no connection within {timeout_s:g} s")
        except (OSError, ValueError) as error:
            refusal = dial_error(error, "https" if route.tls_name else "http")
            failure = UpstreamRefused(refusal.reason, refusal.detail)
    raise failure
