"""Names into addresses: asked once, remembered for a while, checked by the egress guard before anybody sees them.

`Egress` is what a dialler holds: host map, resolver and guard in one. A name that is known costs one dict lookup.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Protocol

from nephila.kernel.clock import Clock
from nephila.kernel.egress import EgressError, EgressGuard, HostMap


class ResolveError(Exception):
    """A name has no address, or nobody could be asked; the text is for people."""


class Resolver(Protocol):
    """Asks for the addresses of a name."""

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses in order of preference, never empty; raises `ResolveError`."""


class SystemResolver:
    """getaddrinfo in the loop's thread pool: hosts file, resolv.conf and the order of RFC 6724."""

    def __init__(self, timeout_s: float = 15.0) -> None:
        self._timeout_s = timeout_s

    async def resolve(self, host: str) -> Sequence[str]:
        """See `Resolver.resolve`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise ResolveError(f"no answer within {self._timeout_s:g} s") from None
        except OSError as error:
            raise ResolveError(error.strerror or str(error)) from None
        except UnicodeError:
            raise ResolveError("not a host name") from None
        addresses = dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)
        if not addresses:
            raise ResolveError("no address")
        return interleave(list(addresses))


def interleave(addresses: Sequence[str]) -> list[str]:
    """IPv6 and IPv4 in turn, beginning with the family that came first (RFC 8305 4)."""
    sixes = [address for address in addresses if ":" in address]
    fours = [address for address in addresses if ":" not in address]
    first, second = (sixes, fours) if addresses and ":" in addresses[0] else (fours, sixes)
    mixed = []
    for number in range(max(len(first), len(second))):
        mixed.extend(first[number : number + 1] + second[number : number + 1])
    return mixed


Place = tuple[tuple[str, ...], int]


class Egress:
    """Where a host may be dialled. One question per name is on its way at a time; bad answers are remembered too.

    Bounded: at most `cache_size` names, the one asked first goes first.
    """

    def __init__(
        self,
        guard: EgressGuard,
        resolver: Resolver,
        clock: Clock,
        host_map: HostMap | None = None,
        *,
        ttl_s: float = 300.0,
        negative_ttl_s: float = 30.0,
        cache_size: int = 100_000,
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._clock = clock
        self._map = host_map or HostMap()
        self._ttl_s = ttl_s
        self._negative_ttl_s = negative_ttl_s
        self._size = max(1, cache_size)
        self._cache: dict[str, tuple[float, Place | Exception]] = {}
        self._asking: dict[str, asyncio.Future[None]] = {}

    def known(self, host: str, port: int) -> Place | None:
        """Checked addresses and the port to dial, when they are known; None when `places` has to be awaited.

        Raises `EgressError` or `ResolveError` when that is what is known.
        """
        entry = self._cache.get(host)
        if entry is None or entry[0] <= self._clock.monotonic():
            return None
        place = entry[1]
        if isinstance(place, Exception):
            raise place.with_traceback(None)
        addresses, mapped = place
        port = mapped or port
        self._guard.check_port(port)
        return addresses, port

    async def place(self, host: str, port: int) -> Place:
        """The same, asking where needed. `host` has no brackets."""
        self._guard.check_port(port)
        while True:
            known = self.known(host, port)
            if known is not None:
                return known
            waiting = self._asking.get(host)
            if waiting is not None:
                await asyncio.shield(waiting)
                continue
            waiting = self._asking[host] = asyncio.get_running_loop().create_future()
            try:
                await self._ask(host)
            finally:
                del self._asking[host]
                waiting.set_result(None)

    async def _ask(self, host: str) -> None:
        ttl_s = self._ttl_s
        place: Place | Exception
        try:
            mapped = self._map.find(host)
            if mapped is not None:
                place = self._guard.allowed(host, (mapped[0],)), mapped[1]
            elif _is_literal(host):
                place = self._guard.allowed(host, (host,)), 0
            else:
                place = self._guard.allowed(host, await self._resolver.resolve(host)), 0
        except (EgressError, ResolveError) as error:
            place, ttl_s = error, self._negative_ttl_s
        self._cache.pop(host, None)
        while len(self._cache) >= self._size:
            del self._cache[next(iter(self._cache))]
        # A ttl of 0 still answers those who wait now.
        self._cache[host] = (self._clock.monotonic() + max(ttl_s, 0.05), place)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
