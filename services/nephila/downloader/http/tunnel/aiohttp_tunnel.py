"""The connector of the aiohttp fetcher for tunnels through proxies: one connection per request, none is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import aiohttp

from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.tunnel.open_tunnel import open_tunnel

TUNNEL_OF_TASK: ContextVar[tuple[ProxyHop, Callable[[], None]]] = ContextVar("TUNNEL_OF_TASK")
"""The proxy of the request that the current task makes, and what to call once it is connected."""


class TunnelConnector(aiohttp.TCPConnector):
    """Dials the address in the URL, which is the proxy's, and opens a tunnel there. Raises `FetchError`."""

    async def _wrap_create_connection(self, *args: Any, addr_infos: Any, **kwargs: Any) -> Any:
        for name in ("client_error", "req", "timeout"):
            kwargs.pop(name, None)
        address, port = addr_infos[0][4][:2]
        tunnel = await open_tunnel(address, port, *TUNNEL_OF_TASK.get())
        try:
            return await asyncio.get_running_loop().create_connection(*args, **kwargs, sock=tunnel)
        except BaseException:
            tunnel.close()
            raise
