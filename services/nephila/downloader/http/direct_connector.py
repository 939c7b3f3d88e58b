"""The connector of the aiohttp fetcher for connections without a tunnel: guards against faulty servers.

A connection rests between two requests. So a response that its server sends late and unasked is noticed, and is not
taken for that of the next request. A server that sends TLS tickets instead of content is cut off: reading them would
take all of the event loop.
"""

from __future__ import annotations

import asyncio
import ssl
import weakref
from time import monotonic
from typing import Any

import aiohttp

MAX_RESTING = 4
"""Connections to one server that rest at once; with more, the oldest one is used in any case."""
PROVING = 2
"""Rests of connections to one server after which they rest no more."""
MAX_TRUSTED = 10_000
MAX_TICKETS = 64
"""TLS tickets that a connection may receive; servers send two to ten."""
_HANDSHAKE, _TICKET, _CERTIFICATE_REQUEST = 22, 4, 13
"""Numbers of RFC 8446: the content type, and the types of messages."""
MAX_DEMANDING = 1000
"""Names of servers that are remembered for their demand of a client certificate."""


class DirectConnector(aiohttp.TCPConnector):
    """Opens and keeps direct connections."""

    def __init__(self, context: ssl.SSLContext, keepalive_s: float, rest_s: float, demanding: set[str]) -> None:
        """`demanding` gets the names of servers that ask for a client certificate."""
        super().__init__(limit=0, ssl=context, keepalive_timeout=keepalive_s)
        self._rest_s = rest_s
        self._rests: dict[Any, int] = {}
        """Server → rests of its connections that no late response has ended."""
        watch_handshakes(context, self, demanding)

    async def _get(self, key: Any, traces: Any) -> Any:
        idle = self._conns.get(key)
        while idle and idle[0][0].should_close:  # bytes that came before the request are no response to it
            idle.popleft()[0].close()
            self._rests.pop(key, None)
        if idle and self._rest_s and (rests := self._rests.get(key, 0)) < PROVING:
            if monotonic() - idle[0][1] >= self._rest_s:
                if len(self._rests) >= MAX_TRUSTED:
                    self._rests.clear()
                self._rests[key] = rests + 1
            elif len(idle) < MAX_RESTING:
                return None
        return await super()._get(key, traces)


def watch_handshakes(context: ssl.SSLContext, connector: aiohttp.BaseConnector, demanding: set[str]) -> None:
    """Close connections of this connector and context that receive more than `MAX_TICKETS`, and note servers that ask
    for a client certificate: some close without an alert. Connections are closed in a later turn: an exception in the
    callback of OpenSSL would be lost."""
    owner = weakref.ref(connector)  # the connector holds the context
    received: weakref.WeakKeyDictionary[ssl.SSLObject, int] = weakref.WeakKeyDictionary()

    def close(connection: ssl.SSLObject) -> None:
        living = owner()
        for protocol in living._acquired if living is not None else ():
            transport = protocol.transport
            if transport is not None and transport.get_extra_info("ssl_object") is connection:
                protocol.set_exception(aiohttp.ClientOSError(f"over {MAX_TICKETS} TLS tickets"))
                transport.abort()

    def on_message(connection: Any, way: str, _version: Any, content: int, message: int, _data: bytes) -> None:
        if content != _HANDSHAKE or way != "read":
            return
        if message == _CERTIFICATE_REQUEST and len(demanding) < MAX_DEMANDING:
            demanding.add(connection.server_hostname or "")
        if message == _TICKET:
            received[connection] = count = received.get(connection, 0) + 1
            if count % MAX_TICKETS == 0:
                asyncio.get_running_loop().call_soon(close, connection)

    context._msg_callback = on_message  # type: ignore[attr-defined]
