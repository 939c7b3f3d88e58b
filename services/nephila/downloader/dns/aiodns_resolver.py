"""A resolver on c-ares (aiodns): hundreds of concurrent look-ups over a few sockets, without threads.

The hosts file is read first. Names are absolute: the search list of resolv.conf does not apply. A and AAAA are queried
at once; truncated answers are repeated over TCP. The library is imported with the first look-up, which takes 35 ms.

A malformed answer closes the socket that it came through, and c-ares ends every look-up in flight on it with the same
error. Each of them is repeated by a channel of its own, so only the name with the malformed answer fails. Its site is
looked up by such a channel from then on.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Sequence

from nephila.downloader.dns.contract import Addresses, ResolveError, interleave
from nephila.downloader.dns.lookup_slots import LookupSlots
from nephila.kernel.net.public_suffix import site_of

_FIRST_TRY_S = 2.0
_TRIES = 5
"""Each try waits twice as long as the one before. c-ares shortens the first to five times the usual delay of a server
(at least 250 ms): three tries would end after 1.75 s, too early for a name that the name server has to look up."""
_ALL_TRIES = 2**_TRIES - 1
_SOA_S = 1.0
"""Wait for the SOA record after an answer without addresses."""
_LOOKUPS = 2_000
"""Look-ups per channel. c-ares caches answers for an hour without a bound; `GuardedResolver` has a bounded cache."""
_SEPARATE_TRIES = 2
_SEPARATE = 50
"""Channels for single names at a time."""
_MAX_MALFORMED = 10_000
"""Sites with malformed answers that are remembered; the oldest is forgotten first."""
_PERMANENT = {"ENOTFOUND": "no such name", "ENODATA": "no address", "EBADNAME": "not a host name"}


class _Unreachable(ResolveError):
    """No name server could be contacted: none answers, or the sockets of the channel are dead."""


class _MalformedError(ResolveError):
    """An answer is malformed: that of this name, or of another one on the same socket."""


class _Channel:
    """One c-ares channel with its sockets; it is closed after its replacement, once its last look-up has ended."""

    def __init__(self, servers: Sequence[str], timeout_s: float, tries: int = _TRIES) -> None:
        import aiodns
        import pycares

        self._error = aiodns.error.DNSError
        self._permanent = {getattr(aiodns.error, f"ARES_{name}"): text for name, text in _PERMANENT.items()}
        self._refused = aiodns.error.ARES_ECONNREFUSED
        self._malformed = (aiodns.error.ARES_EBADRESP, aiodns.error.ARES_EFORMERR)
        self._resolver = aiodns.DNSResolver(
            servers or None,
            flags=pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS,
            lookups="fb",
            timeout=min(timeout_s / _ALL_TRIES / max(len(servers), 1), _FIRST_TRY_S),
            tries=tries,
        )
        self._running = 0
        self.looked_up = 0

    async def addresses(self, host: str) -> Addresses:
        """The addresses in the order of RFC 6724; raises `ResolveError`."""
        self.looked_up += 1
        self._running += 1
        try:
            answer = await self._resolver.getaddrinfo(host, type=socket.SOCK_STREAM)
        except self._error as error:
            if error.args[0] == self._refused:
                raise _Unreachable(str(error.args[-1])) from None
            if error.args[0] in self._malformed:
                raise _MalformedError("a malformed answer") from None
            text = self._permanent.get(error.args[0])
            raise ResolveError(text or str(error.args[-1]), permanent=text is not None) from None
        finally:
            self._running -= 1
            if self.looked_up >= _LOOKUPS and not self._running:
                await self.close()
        texts = (node.addr[0] for node in answer.nodes)
        addresses = list(dict.fromkeys(text.decode() if isinstance(text, bytes) else text for text in texts))
        return Addresses(addresses, min((float(node.ttl) for node in answer.nodes), default=None))

    async def negative_ttl_s(self, zone: str) -> float | None:
        """Minimum of the SOA record of a zone; None: there is none, or no answer soon."""
        try:
            async with asyncio.timeout(_SOA_S):
                reply = await self._resolver.query_dns(zone, "SOA")
        except TimeoutError:
            return None
        except self._error as error:
            if error.args[0] in self._malformed:
                raise _MalformedError("a malformed answer") from None
            return None
        times = (float(min(rr.data.minimum, rr.ttl)) for rr in reply.answer if hasattr(rr.data, "minimum"))
        return min(times, default=None)

    async def retire(self) -> None:
        """Accept no further look-up; those in flight end first."""
        self.looked_up = _LOOKUPS
        if not self._running:
            await self.close()

    async def close(self) -> None:
        """Cancel look-ups in flight and close the sockets."""
        await self._resolver.close()


class AiodnsResolver:
    """The resolver asks name servers itself. `servers`: "address[:port]"; none = those of resolv.conf.

    At most `max_lookups` look-ups at a time. One takes at most `timeout_s`, all tries at all servers included.
    """

    def __init__(self, servers: Sequence[str] = (), timeout_s: float = 15.0, max_lookups: int = 1000) -> None:
        self._servers = servers
        self._timeout_s = timeout_s
        self._slots = LookupSlots(max_lookups, timeout_s)
        self._channel: _Channel | None = None
        self._separate = asyncio.Semaphore(_SEPARATE)
        self._malformed: OrderedDict[str, None] = OrderedDict()
        """Sites whose names have had malformed answers."""

    async def resolve(self, host: str) -> Addresses:
        async with self._slots.held():
            try:
                async with asyncio.timeout(self._timeout_s):
                    addresses, ttl_s = await self._addresses(host)
            except TimeoutError:
                raise ResolveError(f"no answer within {self._timeout_s:g} s") from None
            except ResolveError as error:
                if not error.permanent or "." not in host.rstrip("."):
                    raise
                raise ResolveError(str(error), True, await self._negative_ttl_s(site_of(host))) from None
        if not addresses:
            raise ResolveError("no address", permanent=True)
        return Addresses(interleave(addresses), ttl_s)

    async def _addresses(self, host: str) -> Addresses:
        """Look up by the current channel. When its servers cannot be contacted, try once by a new channel: sockets of a
        channel do not survive a change of the network."""
        if self._malformed and site_of(host) in self._malformed:
            return await self._addresses_separately(host)
        channel = self._open()
        try:
            try:
                return await channel.addresses(host)
            except _Unreachable:
                await channel.retire()
                return await self._open().addresses(host)
        except (_Unreachable, _MalformedError):
            # Malformed answers for other names close sockets faster than new ones are opened.
            return await self._addresses_separately(host)

    async def _addresses_separately(self, host: str) -> Addresses:
        """Look up by a channel that no other name uses."""
        site = site_of(host)
        async with self._separate:
            channel = _Channel(self._servers, self._timeout_s, _SEPARATE_TRIES)
            try:
                addresses = await channel.addresses(host)
            except _MalformedError:
                self._note_malformed(site)
                raise
            finally:
                await channel.retire()
        self._malformed.pop(site, None)
        return addresses

    async def _negative_ttl_s(self, zone: str) -> float | None:
        """c-ares reports no authority section; it caches this query for the other names of the site."""
        if zone in self._malformed:
            return None
        try:
            return await self._open().negative_ttl_s(zone)
        except _MalformedError:  # of this zone, or of another name
            return None

    def _note_malformed(self, site: str) -> None:
        self._malformed[site] = None
        if len(self._malformed) > _MAX_MALFORMED:
            self._malformed.popitem(last=False)

    def _open(self) -> _Channel:
        channel = self._channel
        if channel is None or channel.looked_up >= _LOOKUPS:
            channel = self._channel = _Channel(self._servers, self._timeout_s)
        return channel

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
