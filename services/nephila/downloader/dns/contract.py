"""The contract of a resolver: a host name in, IP addresses out. Which of them may be dialled is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

V = TypeVar("V")


class ResolveError(Exception):
    """A name has no address, or no name server answered; the text is for people.

    `permanent`: the DNS states that there is no address. Otherwise (no answer, SERVFAIL) a later look-up may succeed.
    """

    def __init__(self, text: str, permanent: bool = False) -> None:
        super().__init__(text)
        self.permanent = permanent


class NotLookedUpError(ResolveError):
    """The look-up waited too long for a slot and was never sent: it states nothing about the name."""


class Resolver(Protocol):
    """Looks up the addresses of a name."""

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses in order of preference, never empty; raises `ResolveError`."""

    async def close(self) -> None:
        """Cancel look-ups in flight; no further look-up follows."""


class Cache(Protocol[V]):
    """Look-ups by host name. Pure: `now` is a monotonic instant in seconds."""

    def get(self, host: str, now: float) -> V | None:
        """The value of a name, None when it is unknown or expired."""

    def put(self, host: str, value: V, now: float, ttl_s: float) -> None:
        """Store a value for `ttl_s` seconds; other names may be evicted for it."""


def interleave(addresses: Sequence[str]) -> list[str]:
    """IPv6 and IPv4 addresses in turn, beginning with the family of the first one (RFC 8305 section 4)."""
    sixes = [address for address in addresses if ":" in address]
    fours = [address for address in addresses if ":" not in address]
    first, second = (sixes, fours) if addresses and ":" in addresses[0] else (fours, sixes)
    mixed = []
    for number in range(max(len(first), len(second))):
        mixed.extend(first[number : number + 1] + second[number : number + 1])
    return mixed
