"""Host names to checked addresses: one look-up per name, cached, every address checked by the egress guard.

`GuardedResolver` combines host map, resolver, cache and guard. A cached name costs one dict look-up.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from nephila.kernel.net.egress import EgressError, EgressGuard, HostMap
from nephila.kernel.runtime.clock import Clock


class ResolveError(Exception):
    """A name has no address, or no server could be asked; the text is for people.

    `permanent`: the DNS says that there is no address. Otherwise (no answer, SERVFAIL) a later question may have one.
    """

    def __init__(self, text: str, permanent: bool = False) -> None:
        super().__init__(text)
        self.permanent = permanent


class NotLookedUpError(ResolveError):
    """The look-up waited too long for its turn and was never made: it says nothing about the name."""


class Resolver(Protocol):
    """Looks up the addresses of a name."""

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses in order of preference, never empty; raises `ResolveError`."""

    async def close(self) -> None:
        """End what is under way; nothing is looked up any more."""


class LookupSlots:
    """At most `max_lookups` look-ups at a time; further ones wait in order. The time limit starts with the slot."""

    def __init__(self, max_lookups: int, wait_s: float) -> None:
        self._free = asyncio.Semaphore(max_lookups)
        self._wait_s = wait_s

    async def acquire(self) -> None:
        """Wait for a turn; raises `NotLookedUpError` when it does not come within `wait_s`."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise NotLookedUpError(f"not looked up: too many look-ups under way for {self._wait_s:g} s") from None

    def release(self) -> None:
        """A turn is over."""
        self._free.release()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """A turn for the time of a block."""
        await self.acquire()
        try:
            yield
        finally:
            self.release()


_PERMANENT = tuple(getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name))


class SystemResolver:
    """getaddrinfo: hosts file, resolv.conf with its search list, nsswitch.conf.

    A call cannot be cancelled: its thread keeps its turn until the C library answers, so silent names can hold all
    `max_lookups` of them. The threads are daemons: a look-up does not delay the end of the program.
    """

    def __init__(self, timeout_s: float = 15.0, max_lookups: int = 64) -> None:
        self._timeout_s = timeout_s
        self._slots = LookupSlots(max_lookups, timeout_s)

    async def resolve(self, host: str) -> Sequence[str]:
        """See `Resolver.resolve`."""
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
        return interleave(addresses)

    def _look_up(self, host: str, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]]) -> None:
        addresses: list[str] = []
        error: ResolveError | None = None
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        except OSError as failure:
            error = ResolveError(failure.strerror or str(failure), failure.errno in _PERMANENT)
        except UnicodeError:
            error = ResolveError("not a host name", permanent=True)
        try:
            loop.call_soon_threadsafe(self._looked_up, answer, addresses, error)
        except RuntimeError:  # the loop is closed: the program ends
            pass

    def _looked_up(self, answer: asyncio.Future[list[str]], addresses: list[str], error: ResolveError | None) -> None:
        self._slots.release()
        if answer.done():  # the time was over, or the question was cancelled
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(addresses)

    async def close(self) -> None:
        """See `Resolver.close`; calls under way end by themselves."""


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
MAX_ADDRESSES = 32
"""Of one name; an answer has room for 4,000, and a zone for any number of names that have them."""


class GuardedResolver:
    """Where a host may be dialled. Look-ups of one name share one question. An answer is remembered for `ttl_s`, that
    there is none for `negative_ttl_s`; a failure that may pass is told to those who wait, and the next one asks again.

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
        self._cache: dict[str, tuple[float, Place | _CachedError]] = {}
        self._pending: dict[str, asyncio.Future[None]] = {}

    def cached(self, host: str, port: int) -> Place | None:
        """Checked addresses and the port to dial, when they are known; None when `places` has to be awaited.

        Raises `EgressError` or `ResolveError` when that is what is known.
        """
        entry = self._cache.get(host)
        if entry is None or entry[0] <= self._clock.monotonic():
            return None
        place = entry[1]
        if isinstance(place, _CachedError):
            raise place.error()
        addresses, mapped = place
        port = mapped or port
        self._guard.check_port(port)
        return addresses, port

    async def resolve(self, host: str, port: int) -> Place:
        """The same, asking where needed. `host` has no brackets."""
        self._guard.check_port(port)
        while True:
            known = self.cached(host, port)
            if known is not None:
                return known
            waiting = self._pending.get(host)
            if waiting is not None:
                await asyncio.shield(waiting)
                continue
            waiting = self._pending[host] = asyncio.get_running_loop().create_future()
            try:
                await self._look_up(host)
            finally:
                del self._pending[host]
                waiting.set_result(None)

    async def close(self) -> None:
        """Look nothing up any more."""
        await self._resolver.close()

    async def _look_up(self, host: str) -> None:
        ttl_s = self._ttl_s
        place: Place | _CachedError
        try:
            mapped = self._map.find(host)
            if mapped is not None:
                place = self._guard.allowed(host, (mapped[0],)), mapped[1]
            elif _is_literal(host):
                place = self._guard.allowed(host, (host,)), 0
            else:
                found = await self._resolver.resolve(host)
                place = self._guard.allowed(host, found[:MAX_ADDRESSES]), 0
        except EgressError as error:
            place, ttl_s = _CachedError(EgressError, error.args), self._negative_ttl_s
        except ResolveError as error:
            place = _CachedError(type(error), (str(error), error.permanent))
            ttl_s = self._negative_ttl_s if error.permanent else 0.0
        self._cache.pop(host, None)
        while len(self._cache) >= self._size:
            del self._cache[next(iter(self._cache))]
        # A ttl of 0 still answers those who wait now.
        self._cache[host] = (self._clock.monotonic() + max(ttl_s, 0.05), place)


class _CachedError:
    """An error as the cache keeps it: an exception would hold the frames it went through, and the fetches in them."""

    __slots__ = ("args", "kind")

    def __init__(self, kind: type[Exception], args: tuple[Any, ...]) -> None:
        self.kind = kind
        self.args = args

    def error(self) -> Exception:
        """The error anew."""
        return self.kind(*self.args)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
