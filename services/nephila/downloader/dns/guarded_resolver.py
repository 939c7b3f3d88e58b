"""Host names to checked addresses: host map, resolver, cache and egress guard in one.

A name is looked up once, every address of the answer is checked by the guard, and only checked addresses are returned:
a name that points to an inner network, or that changes between check and dial (DNS rebinding), gains nothing. This
holds for refreshed and stale answers as well: the cache contains only addresses that the guard has passed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from typing import Any

import msgspec

from nephila.downloader.dns.contract import Addresses, Cache, ResolveError, Resolver
from nephila.downloader.dns.wildcard_zones import WildcardZones
from nephila.kernel.net.egress import EgressError, EgressGuard, HostMap
from nephila.kernel.runtime.clock import Clock

log = logging.getLogger(__name__)

Endpoint = tuple[tuple[str, ...], int]
"""(checked addresses, port to dial; 0 in the cache: the port of the URL)."""
MAX_ADDRESSES = 32
"""Addresses used of one name; an answer has room for 4,000."""
MIN_TTL_S = 30.0
"""Shortest time that an answer is used: records with a TTL of 0 would cost a look-up for each page."""
MAX_NEGATIVE_TTL_S = 900.0
"""Longest time that a name counts as nonexistent, also with a longer TTL: RFC 2308 allows hours, a crawl retries."""
RETRY_S = 30.0
"""Between two look-ups of a name whose stale answer is served (RFC 8767, section 5)."""
MAX_REFRESHES = 50
"""Look-ups in the background at once; names in use often come first, since each use is a chance to begin one."""
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


class DnsStats(msgspec.Struct):
    """Counters of a resolver since its start; only the resolver changes them."""

    hits: int = 0
    """Answers from the cache."""
    lookups: int = 0
    """Look-ups sent, refreshes included."""
    lookup_s: float = 0.0
    """Seconds spent in them, in all."""
    failures: int = 0
    """Look-ups without an answer from the DNS."""
    refreshes: int = 0
    """Look-ups in the background before an answer expired."""
    stale_served: int = 0
    """Failed look-ups that a stale answer replaced."""
    wildcards: int = 0
    """Names that the wildcard of their domain answered without a look-up."""


class GuardedResolver:
    """Where a host may be dialled. Concurrent look-ups of one name share one query; a cached name costs one get.

    An answer is used for its TTL, at least `MIN_TTL_S` and at most `ttl_s`; permanent errors and refusals of the guard
    for `negative_ttl_s`, or longer by the zone. After that a name whose servers fail keeps its old answer for
    `stale_s`. Other errors are reported to the callers that wait, and the next call looks the name up again.
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
        stale_s: float = 0.0,
        wildcards: WildcardZones | None = None,
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._cache = cache
        self._clock = clock
        self._map = host_map or HostMap()
        self._ttl_s = ttl_s
        self._negative_ttl_s = negative_ttl_s
        self._stale_s = stale_s
        self._wildcards = WildcardZones(0) if wildcards is None else wildcards
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._refreshes: set[asyncio.Task[None]] = set()
        self.stats = DnsStats()

    @property
    def names(self) -> int:
        return len(self._cache)

    def cached(self, host: str, port: int) -> Endpoint | None:
        """Checked addresses and the port to dial when they are cached, else None: `resolve` has to be awaited.

        Raises `EgressError` or `ResolveError` when that is the cached answer. A name in use whose addresses expire soon
        is looked up in the background.
        """
        now = self._clock.monotonic()
        unit = self._cache.get(host, now)
        if unit is None:
            return None
        self.stats.hits += 1
        answer = unit.answer
        if isinstance(answer, CachedError):
            raise answer.error()
        if unit.refresh_at <= now:
            self._refresh(host)
        addresses, mapped = answer
        port = mapped or port
        self._guard.check_port(port)
        return addresses, port

    async def resolve(self, host: str, port: int) -> Endpoint:
        """The endpoint as by `cached`, after a look-up if one is needed. `host` has no brackets."""
        self._guard.check_port(port)
        while True:
            endpoint = self.cached(host, port)
            if endpoint is not None:
                return endpoint
            pending = self._pending.get(host)
            if pending is not None:
                await asyncio.shield(pending)
            else:
                await self._single_flight(host)

    async def close(self) -> None:
        """Cancel look-ups in flight."""
        refreshes = list(self._refreshes)
        for task in refreshes:
            task.cancel()
        await asyncio.gather(*refreshes, return_exceptions=True)
        await self._resolver.close()

    def _refresh(self, host: str) -> None:
        if host in self._pending or len(self._refreshes) >= MAX_REFRESHES:
            return
        self.stats.refreshes += 1
        task = asyncio.get_running_loop().create_task(self._single_flight(host))
        self._refreshes.add(task)
        task.add_done_callback(self._on_refreshed)
        # Until the task runs, further uses of the name must not start another one.
        self._cache.postpone(host, self._clock.monotonic(), 0.0)

    def _on_refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshes.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a DNS refresh failed: %s: %s", type(error).__name__, error)

    async def _single_flight(self, host: str) -> None:
        pending = self._pending[host] = asyncio.get_running_loop().create_future()
        try:
            await self._look_up(host)
        finally:
            del self._pending[host]
            pending.set_result(None)

    async def _look_up(self, host: str) -> None:
        """Store the answer for a name: checked addresses or an error."""
        try:
            answer, ttl_s = await self._query(host)
        except EgressError as error:
            self._put(host, CachedError(EgressError, error.args), self._negative_ttl_s)
        except ResolveError as error:
            now = self._clock.monotonic()
            old = None if error.permanent else self._cache.stale(host, now)
            if old is not None and not isinstance(old.answer, CachedError):
                self.stats.stale_served += old.expires_at <= now
                self._cache.postpone(host, now, RETRY_S)
                return
            cached_error = CachedError(type(error), (str(error), error.permanent))
            self._put(host, cached_error, self._negative_ttl(error) if error.permanent else 0.0)
        else:
            self._put(host, answer, ttl_s, self._stale_s)

    def _negative_ttl(self, error: ResolveError) -> float:
        """Time to live of an answer without addresses: the zone's, between the setting and `MAX_NEGATIVE_TTL_S`."""
        if error.ttl_s is None:
            return self._negative_ttl_s
        return max(min(error.ttl_s, MAX_NEGATIVE_TTL_S), self._negative_ttl_s)

    async def _query(self, host: str) -> tuple[Endpoint, float]:
        """(checked addresses and mapped port, time to live)."""
        mapped = self._map.find(host)
        if mapped is not None:
            return (self._guard.allowed(host, (mapped[0],)), mapped[1]), self._ttl_s
        if _is_literal(host):
            return (self._guard.allowed(host, (host,)), 0), self._ttl_s
        answer = self._wildcards.answer(host, self._clock.monotonic())
        if answer is not None:
            self.stats.wildcards += 1
        else:
            answer = await self._ask(host)
            if random_name := self._wildcards.note(host, answer.addresses, self._clock.monotonic()):
                await self._probe(random_name)
        return (self._guard.allowed(host, answer.addresses[:MAX_ADDRESSES]), 0), self._ttl(answer)

    async def _ask(self, host: str) -> Addresses:
        started = self._clock.monotonic()
        self.stats.lookups += 1
        try:
            return await self._resolver.resolve(host)
        except ResolveError as error:
            self.stats.failures += not error.permanent
            raise
        finally:
            self.stats.lookup_s += self._clock.monotonic() - started

    async def _probe(self, name: str) -> None:
        """Look up a random name, which has an answer only by a wildcard."""
        try:
            answer = await self._ask(name)
        except ResolveError:
            self._wildcards.probed(name, None, self._clock.monotonic(), 0.0)
        else:
            self._wildcards.probed(name, answer, self._clock.monotonic(), self._ttl(answer))

    def _ttl(self, answer: Addresses) -> float:
        return self._ttl_s if answer.ttl_s is None else min(max(answer.ttl_s, MIN_TTL_S), self._ttl_s)

    def _put(self, host: str, answer: Endpoint | CachedError, ttl_s: float, stale_s: float = 0.0) -> None:
        self._cache.put(host, answer, self._clock.monotonic(), max(ttl_s, _WAITERS_S), stale_s)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
