"""Opens connections through a proxy: TCP, TLS to an `https` proxy, the handshake of `proxy_handshake.py`, TLS inside.

The server sends nothing before it receives something, so the handshake reads no byte that belongs to the server.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.tls import dial_error
from nephila.downloader.http.tunnel.proxy_handshake import handshake
from nephila.kernel.reasons.table import Reason

P = TypeVar("P", bound=asyncio.BaseProtocol)
_READ_BYTES = 4096


class InnerTls(NamedTuple):
    """TLS between this process and the server, within a tunnel."""

    context: ssl.SSLContext
    name: str
    """Name in the certificate of the server."""


async def connect_through(
    address: str,
    port: int,
    hop: ProxyHop,
    make_protocol: Callable[[], P],
    inner: InnerTls | None,
    outer: ssl.SSLContext,
    on_connected: Callable[[], None],
) -> tuple[Any, P]:
    """Transport and protocol of a connection that leads to the server of `hop`. Raises `FetchError`, or the error of
    the TLS handshake with the server; the caller has a time limit.

    `outer`: settings of TLS to an https proxy. `on_connected` is called once the proxy accepts the connection: a later
    delay may be that of the server.
    """
    if hop.tls_name:
        return await _through_tls(address, port, hop, make_protocol, inner, outer, on_connected)
    tunnel = await _open_tunnel(address, port, hop, on_connected)
    try:
        return await asyncio.get_running_loop().create_connection(
            make_protocol,
            sock=tunnel,
            ssl=None if inner is None else inner.context,
            server_hostname=None if inner is None else inner.name,
        )
    except BaseException:
        tunnel.close()
        raise


async def _open_tunnel(address: str, port: int, hop: ProxyHop, on_connected: Callable[[], None]) -> socket.socket:
    """A socket that leads to the server of `hop`. Raises `FetchError`."""
    loop = asyncio.get_running_loop()
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(connection, (address, port))
        on_connected()
        steps = handshake(hop)
        data = steps.start()
        while True:
            if data:
                await loop.sock_sendall(connection, data)
            received = await loop.sock_recv(connection, _READ_BYTES)
            if not received:
                raise _closed(hop)
            data = steps.feed(received)
            if steps.done:
                return connection
    except OSError as error:
        connection.close()
        raise FetchError(Reason.PROXY, f"{hop.name}: {error.strerror or error}") from None
    except BaseException:
        connection.close()
        raise


async def _through_tls(
    address: str,
    port: int,
    hop: ProxyHop,
    make_protocol: Callable[[], P],
    inner: InnerTls | None,
    outer: ssl.SSLContext,
    on_connected: Callable[[], None],
) -> tuple[Any, P]:
    loop = asyncio.get_running_loop()
    try:
        transport, opening = await loop.create_connection(
            lambda: _Opening(hop, loop.create_future()), address, port, ssl=outer, server_hostname=hop.tls_name
        )
    except (OSError, EOFError) as error:
        raise FetchError(Reason.PROXY, f"{hop.name}: {dial_error(error, 'https').detail}") from None
    on_connected()
    try:
        await opening.opened
        protocol = make_protocol()
        led: Any = transport
        if inner is None:
            transport.set_protocol(protocol)
        else:
            led = await loop.start_tls(transport, cast(Any, protocol), inner.context, server_hostname=inner.name)
        protocol.connection_made(led)
        return led, protocol
    except BaseException as error:
        transport.abort()
        if isinstance(error, TypeError) and isinstance(error.__context__, ssl.SSLError):
            raise error.__context__ from None  # asyncio of Python 3.11 fails while it closes TLS within TLS
        raise


class _Opening(asyncio.Protocol):
    """The handshake over a TLS connection to a proxy; another protocol takes over when `opened` has its result."""

    def __init__(self, hop: ProxyHop, opened: asyncio.Future[None]) -> None:
        self.opened = opened
        self._hop = hop
        self._steps = handshake(hop)
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(self._steps.start())

    def data_received(self, data: bytes) -> None:
        if self.opened.done():  # bytes of a server that was sent nothing
            self._transport.abort()
            return
        try:
            answer = self._steps.feed(data)
        except FetchError as error:
            self.opened.set_exception(error)
            return
        if answer:
            self._transport.write(answer)
        if self._steps.done:
            self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(_closed(self._hop))


def _closed(hop: ProxyHop) -> FetchError:
    return FetchError(Reason.PROXY, f"{hop.name} closed the connection within the handshake")
