"""A resolver on getaddrinfo of the C library: hosts file, resolv.conf with its search list, nsswitch.conf, mDNS.

A call cannot be cancelled: its thread keeps its slot until the C library returns, so names whose servers are silent can
occupy all `max_lookups` slots. The threads are daemons: a look-up does not delay the exit of the program.
"""

from __future__ import annotations

import asyncio
import socket
import threading

from nephila.downloader.dns.contract import Addresses, ResolveError, interleave
from nephila.downloader.dns.lookup_slots import LookupSlots

_PERMANENT = tuple(getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name))


class SystemResolver:
    """The resolver of the C library: a look-up takes a thread, of at most `max_lookups`."""

    def __init__(self, timeout_s: float = 15.0, max_lookups: int = 64) -> None:
        self._timeout_s = timeout_s
        self._slots = LookupSlots(max_lookups, timeout_s)

    async def resolve(self, host: str) -> Addresses:
        """The C library reports no TTL."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()
        threading.Thread(target=self._look_up, args=(host, loop, answer), daemon=True).start()
        try:
            async with asyncio.timeout(self._timeout_s):
                addresses = await answer
        except TimeoutError:
            raise ResolveError(f"no answer within {self._timeout_s:g} s") from None
        if not addresses:
            raise ResolveError("no address", permanent=True)
        return Addresses(interleave(addresses))

    def _look_up(self, host: str, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]]) -> None:
        addresses: list[str] = []
        error: ResolveError | None = None
        try:
            entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in entries))
        except OSError as failure:
            error = ResolveError(failure.strerror or str(failure), failure.errno in _PERMANENT)
        except UnicodeError:
            error = ResolveError("not a host name", permanent=True)
        try:
            loop.call_soon_threadsafe(self._on_answer, answer, addresses, error)
        except RuntimeError:  # the loop is closed: the program exits
            pass

    def _on_answer(self, answer: asyncio.Future[list[str]], addresses: list[str], error: ResolveError | None) -> None:
        self._slots.release()
        if answer.done():  # timed out or cancelled
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(addresses)

    async def close(self) -> None:
        """Calls in flight end by themselves."""
