"""A socket pair for a `Channel`: ordered bytes in both directions, and a callback when the other end is gone.

Invariant: everything the other end wrote before it died is passed on before `on_gone`, which is called once. Unread
bytes are buffered here; the requests in flight bound them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

BUFFER_BYTES = 512 << 10
"""Size of the socket buffers: messages of some hundred pages fit while the other end is busy."""


class Pipe(asyncio.Protocol):
    """An error while reading ends the pipe: a peer that writes invalid bytes is treated as dead."""

    def __init__(self, on_bytes: Callable[[bytes], None], on_gone: Callable[[Exception | None], None]) -> None:
        self._on_bytes = on_bytes
        self._on_gone = on_gone
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def write(self, data: bytearray) -> None:
        """Send; ignored when the other end is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Send what is left, then close."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            self._on_bytes(data)
        except Exception as error:
            self._gone(error)
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._gone(error)

    def _gone(self, error: Exception | None) -> None:
        on_gone, self._on_gone = self._on_gone, _nothing
        on_gone(error)


def _nothing(error: Exception | None) -> None:
    """Replaces `on_gone` after its one call."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends: ours and the worker's."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in ends:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    return ends


async def connect(end: socket.socket, pipe: Pipe) -> None:
    """Start reading and writing on one end."""
    end.setblocking(False)
    await asyncio.get_running_loop().create_unix_connection(lambda: pipe, sock=end)
