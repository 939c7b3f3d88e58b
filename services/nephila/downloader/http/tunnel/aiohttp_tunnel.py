"""The connector of the aiohttp fetcher for tunnels through proxies: one connection per request, none is kept."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import aiohttp

from nephila.downloader.http.direct_connector import watch_handshakes
from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.tunnel.open_tunnel import InnerTls, connect_through

TUNNEL_OF_TASK: ContextVar[tuple[ProxyHop, Callable[[], None]]] = ContextVar("TUNNEL_OF_TASK")
"""The proxy of the request that the current task makes, and what to call once it is connected."""


class TunnelConnector(aiohttp.TCPConnector):
    """Dials the address in the URL, which is the proxy's, and opens a tunnel there. Raises `FetchError`."""

    def __init__(self, context: ssl.SSLContext, demanding: set[str]) -> None:
        """`demanding` gets the names of servers that ask for a client certificate."""
        super().__init__(limit=0, ssl=context, force_close=True)
        self._context = context
        watch_handshakes(context, self, demanding)

    async def _wrap_create_connection(self, *args: Any, addr_infos: Any, **kwargs: Any) -> Any:
        address, port = addr_infos[0][4][:2]
        hop, on_connected = TUNNEL_OF_TASK.get()
        context = kwargs.get("ssl")
        inner = InnerTls(context, kwargs["server_hostname"]) if context else None
        return await connect_through(address, port, hop, args[0], inner, self._context, on_connected)
