"""Wildcards of the DNS: names below a domain that has an address for any name are answered without a look-up. Pure.

A domain with a wildcard has as many hosts as pages link to. After so many names of one parent with equal answers, a
random name is looked up. If it has the same answer, the parent has a wildcard, and for the time to live of that answer
further names have it too. A name that has a record of its own beside the wildcard would get a wrong address: so many
equal names are needed first, one name with another answer ends it, and the domain itself and its www are looked up
always.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from nephila.downloader.dns.contract import Addresses
from nephila.kernel.net.public_suffix import site_of

MOST_ZONES = 10_000
"""Parents that are remembered; the oldest is forgotten first."""
FORGET_S = 3600.0
"""Time after which a parent without a wildcard is looked at again."""


class _Zone:
    """The names of one parent."""

    __slots__ = ("addresses", "names", "since", "until")

    def __init__(self, addresses: frozenset[str], now: float) -> None:
        self.addresses: frozenset[str] | None = addresses
        """The answer of all names; None: they differ, or a random name has another one."""
        self.names = 0
        """Names in a row with this answer."""
        self.since = now
        self.until = 0.0
        """Instant up to which the wildcard holds."""


class WildcardZones:
    """The parents of names that were looked up. Operations are O(1)."""

    def __init__(self, names: int, rng: random.Random | None = None) -> None:
        """`names`: equal answers before a random name is looked up; 0: no wildcard is noticed."""
        self._names = names
        self._rng = rng or random.Random()
        self._zones: dict[str, _Zone] = {}

    def __len__(self) -> int:
        return len(self._zones)

    def answer(self, host: str, now: float) -> Addresses | None:
        """The answer of the wildcard that covers a name; None: the name has to be looked up."""
        zone = self._zones.get(host.partition(".")[2])
        if zone is None or zone.until <= now or zone.addresses is None or not parent_of(host):
            return None
        return Addresses(sorted(zone.addresses), zone.until - now)

    def note(self, host: str, addresses: Sequence[str], now: float) -> str:
        """A name was looked up; returns a random name that has to be looked up next, or the empty string."""
        parent = parent_of(host) if self._names else ""
        if not parent:
            return ""
        zone = self._zones.get(parent)
        if zone is None or (zone.addresses is None and now - zone.since > FORGET_S):
            zone = self._add(parent, frozenset(addresses), now)
        if zone.addresses is None:
            return ""
        if zone.addresses != frozenset(addresses):
            zone.addresses, zone.since = None, now
            return ""
        zone.names += 1
        return f"{self._rng.getrandbits(64):016x}.{parent}" if zone.names >= self._names else ""

    def probed(self, name: str, answer: Addresses | None, now: float, ttl_s: float) -> None:
        """The answer for a random name; None: it has none."""
        zone = self._zones.get(name.partition(".")[2])
        if zone is None:
            return
        if answer is not None and frozenset(answer.addresses) == zone.addresses:
            zone.until = now + ttl_s
        else:
            zone.addresses, zone.since = None, now

    def _add(self, parent: str, addresses: frozenset[str], now: float) -> _Zone:
        self._zones.pop(parent, None)
        if len(self._zones) >= MOST_ZONES:
            del self._zones[next(iter(self._zones))]
        zone = self._zones[parent] = _Zone(addresses, now)
        return zone


def parent_of(host: str) -> str:
    """The name above a host that may have a wildcard; empty for a registrable domain, its www, and an address."""
    label, _, parent = host.partition(".")
    domain = site_of(host)
    inside = parent == domain or parent.endswith(f".{domain}")
    return parent if inside and label != "www" else ""
