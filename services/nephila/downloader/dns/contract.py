"""The contracts of a resolver and of its cache. Which addresses may be dialled is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

V = TypeVar("V")


class Addresses(NamedTuple):
    """The answer of a resolver."""

    addresses: Sequence[str]
    """In order of preference, never empty."""
    ttl_s: float | None = None
    """Time to live of the records; None: the source has none."""


class ResolveError(Exception):
    """A name has no address, or no name server answered; the text is for people.

    `permanent`: the DNS states that there is no address. Otherwise (no answer, SERVFAIL) a later look-up may succeed.
    `ttl_s`: how long the zone lets this be cached, the minimum of its SOA record (RFC 2308); None: unknown.
    """

    def __init__(self, text: str, permanent: bool = False, ttl_s: float | None = None) -> None:
        super().__init__(text)
        self.permanent = permanent
        self.ttl_s = ttl_s


class NotLookedUpError(ResolveError):
    """The look-up waited too long for a slot and was never sent: it states nothing about the name."""


class Resolver(Protocol):
    """Looks up the addresses of a name."""

    async def resolve(self, host: str) -> Addresses:
        """The addresses of a name; raises `ResolveError`."""

    async def close(self) -> None:
        """Cancel look-ups in flight; no further look-up follows."""


class Unit(Protocol[V]):
    answer: V
    expires_at: float
    refresh_at: float
    """From when on a use starts a look-up in the background."""


class Cache(Protocol[V]):
    """Answers by host name. Pure: `now` is a monotonic instant in seconds."""

    def __len__(self) -> int:
        """Number of names."""

    def get(self, host: str, now: float) -> Unit[V] | None:
        """The answer of a name while it is fresh; counts as a use."""

    def stale(self, host: str, now: float) -> Unit[V] | None:
        """A fresh or stale answer, which may be served in spite of a failed look-up (RFC 8767)."""

    def put(self, host: str, answer: V, now: float, ttl_s: float, stale_s: float = 0.0) -> None:
        """Store an answer: fresh for `ttl_s`, stale for `stale_s` more. Other names may be evicted for it."""

    def postpone(self, host: str, now: float, wait_s: float) -> None:
        """Serve the stored answer of a name for `wait_s` more seconds before the next look-up."""


def interleave(addresses: Sequence[str]) -> list[str]:
    """IPv6 and IPv4 addresses in turn, beginning with the family of the first one (RFC 8305 section 4)."""
    sixes = [address for address in addresses if ":" in address]
    fours = [address for address in addresses if ":" not in address]
    first, second = (sixes, fours) if addresses and ":" in addresses[0] else (fours, sixes)
    mixed = []
    for number in range(max(len(first), len(second))):
        mixed.extend(first[number : number + 1] + second[number : number + 1])
    return mixed
