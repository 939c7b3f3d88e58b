"""Opens a tunnel through a proxy: a TCP connection, then the handshake of `proxy_handshake.py`.

The server sends nothing before it receives something, so the handshake reads no byte that belongs to the server.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.tunnel.proxy_handshake import handshake

_READ_BYTES = 4096


async def open_tunnel(address: str, port: int, hop: ProxyHop, on_connected: Callable[[], None]) -> socket.socket:
    """A socket that leads to the server of `hop`. Raises `FetchError`; the caller has a time limit. `on_connected` is
    called once the proxy accepts the TCP connection: a later delay may be that of the server."""
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
                raise FetchError("proxy", f"{hop.name} closed the connection within the handshake")
            data = steps.feed(received)
            if steps.done:
                return connection
    except OSError as error:
        connection.close()
        raise FetchError("proxy", f"{hop.name}: {error.strerror or error}") from None
    except BaseException:
        connection.close()
        raise
