"""Limits per server address, by network: a table that scheduler and downloader read from their settings.

An entry is "CIDR=connections/gap": "10.0.0.0/8=16/0.05" allows sixteen fetches at once and a start every 0.05 s on
each address of 10.0.0.0/8. 0 means no limit. The longest matching prefix applies, in any order of the
entries.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable

import msgspec

from nephila.kernel.runtime.errors import UsageError

_BITS = {4: 32, 6: 128}


class AddressLimit(msgspec.Struct, frozen=True):
    connections: int
    """Fetches in flight at once; 0 = no limit."""
    gap_s: float
    """Seconds between two starts; 0 = none."""

    @property
    def unlimited(self) -> bool:
        """Whether there is no limit on count and gap."""
        return not self.connections and not self.gap_s


class AddressLimits:
    """Address → `AddressLimit`. A look-up is one dict access per prefix length in the table, none when it is empty.

    Raises `UsageError` for a default or an entry that makes no sense.
    """

    def __init__(self, connections: int, gap_s: float, entries: Iterable[str] = (), where: str = "networks") -> None:
        self.default = _limit(f"{where}: default {connections}/{gap_s:g}", connections, gap_s)
        self._tables: dict[tuple[int, int], dict[int, AddressLimit]] = {}
        for entry in entries:
            network, limit = _parse(entry, where)
            table = self._tables.setdefault((network.version, network.prefixlen), {})
            if int(network.network_address) in table:
                raise UsageError(f"{where}: {entry!r}: {network} is named twice; remove one of the entries")
            table[int(network.network_address)] = limit
        self._lengths = sorted(self._tables, key=lambda key: -key[1])

    @property
    def unlimited(self) -> bool:
        """Whether no address has a limit."""
        return self.default.unlimited and all(b.unlimited for table in self._tables.values() for b in table.values())

    def find(self, address: str) -> AddressLimit:
        """The limit of an address; the default when no entry matches or the text is not an address."""
        if not self._lengths:
            return self.default
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return self.default
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        number, bits = int(parsed), _BITS[parsed.version]
        for version, length in self._lengths:
            if version == parsed.version:
                shift = bits - length
                limit = self._tables[version, length].get(number >> shift << shift)
                if limit is not None:
                    return limit
        return self.default


def _parse(entry: str, where: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, AddressLimit]:
    name, equals, limits = (part.strip() for part in entry.partition("="))
    connections, slash, gap_s = (part.strip() for part in limits.partition("/"))
    if not (equals and slash and name and connections.isascii() and connections.isdigit() and len(connections) < 10):
        raise UsageError(f"{where}: {entry!r}: expected 'network=connections/gap', for example '10.0.0.0/8=16/0.05'")
    try:
        network = ipaddress.ip_network(name, strict=False)
    except ValueError:
        raise UsageError(f"{where}: {entry!r}: {name!r} is not a network; expected a form such as 10.0.0.0/8") from None
    if "/" in name and network.network_address != ipaddress.ip_address(name.partition("/")[0]):
        raise UsageError(f"{where}: {entry!r}: {name} is an address inside a network; the network is {network}")
    try:
        seconds = float(gap_s)
    except ValueError:
        raise UsageError(f"{where}: {entry!r}: {gap_s!r} is not a number of seconds") from None
    return network, _limit(f"{where}: {entry!r}", int(connections), seconds)


def _limit(what: str, connections: int, gap_s: float) -> AddressLimit:
    if connections < 0 or not math.isfinite(gap_s) or not 0 <= gap_s <= 3600:
        raise UsageError(f"{what}: connections are 0 or more, the gap is 0-3600 seconds (0 = no limit)")
    return AddressLimit(connections, gap_s)
