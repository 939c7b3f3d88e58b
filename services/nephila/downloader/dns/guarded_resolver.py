"""Host names to checked addresses: host map, resolver, cache and egress guard in one.

A name is looked up once, every address of the answer is checked by the guard, and only checked addresses are returned:
a name that points to an inner network, or that changes between check and dial (DNS rebinding), gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

from nephila.downloader.dns.contract import Cache, ResolveError, Resolver
from nephila.kernel.net.egress import EgressError, EgressGuard, HostMap
from nephila.kernel.runtime.clock import Clock

Endpoint = tuple[tuple[str, ...], int]
"""(checked addresses, port to dial)."""
MAX_ADDRESSES = 32
"""Addresses used of one name; an answer has room for 4,000."""
_WAITERS_S = 0.05
"""How long an answer that must not be cached stays, so that all callers that wait for it receive it."""


class CachedError:
    """An error as the cache stores it. The exception itself would keep its frames alive, and the fetches in them."""

    __slots__ = ("args", "kind")

    def __init__(self, kind: type[Exception], args: tuple[Any, ...]) -> None:
        self.kind = kind
        self.args = args

    def error(self) -> Exception:
        """A new exception of the same kind."""
        return self.kind(*self.args)


class GuardedResolver:
    """Where a host may be dialled. Concurrent look-ups of one name share one query; a cached name costs one get.

    Addresses are cached for `ttl_s`, permanent errors and refusals of the guard for `negative_ttl_s`; other errors are
    reported to the callers that wait, and the next call looks the name up again.
    """

    def __init__(
        self,
        guard: EgressGuard,
        resolver: Resolver,
        cache: Cache[Endpoint | CachedError],
        clock: Clock,
        host_map: HostMap | None = None,
        *,
        ttl_s: float = 300.0,
        negative_ttl_s: float = 30.0,
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._cache = cache
        self._clock = clock
        self._map = host_map or HostMap()
        self._ttl_s = ttl_s
        self._negative_ttl_s = negative_ttl_s
        self._pending: dict[str, asyncio.Future[None]] = {}

    def cached(self, host: str, port: int) -> Endpoint | None:
        """Checked addresses and the port to dial when they are cached, else None: `resolve` has to be awaited.

        Raises `EgressError` or `ResolveError` when that is the cached answer.
        """
        found = self._cache.get(host, self._clock.monotonic())
        if found is None:
            return None
        if isinstance(found, CachedError):
            raise found.error()
        addresses, mapped = found
        port = mapped or port
        self._guard.check_port(port)
        return addresses, port

    async def resolve(self, host: str, port: int) -> Endpoint:
        """The same, with a look-up where one is needed. `host` has no brackets."""
        self._guard.check_port(port)
        while True:
            found = self.cached(host, port)
            if found is not None:
                return found
            pending = self._pending.get(host)
            if pending is not None:
                await asyncio.shield(pending)
                continue
            pending = self._pending[host] = asyncio.get_running_loop().create_future()
            try:
                await self._look_up(host)
            finally:
                del self._pending[host]
                pending.set_result(None)

    async def close(self) -> None:
        """Cancel look-ups in flight."""
        await self._resolver.close()

    async def _look_up(self, host: str) -> None:
        ttl_s = self._ttl_s
        found: Endpoint | CachedError
        try:
            mapped = self._map.find(host)
            if mapped is not None:
                found = self._guard.allowed(host, (mapped[0],)), mapped[1]
            elif _is_literal(host):
                found = self._guard.allowed(host, (host,)), 0
            else:
                addresses = await self._resolver.resolve(host)
                found = self._guard.allowed(host, addresses[:MAX_ADDRESSES]), 0
        except EgressError as error:
            found, ttl_s = CachedError(EgressError, error.args), self._negative_ttl_s
        except ResolveError as error:
            found = CachedError(type(error), (str(error), error.permanent))
            ttl_s = self._negative_ttl_s if error.permanent else 0.0
        self._cache.put(host, found, self._clock.monotonic(), max(ttl_s, _WAITERS_S))


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
