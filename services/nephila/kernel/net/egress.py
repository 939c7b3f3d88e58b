"""The egress guard: which IP addresses may be dialled. Pure.

A name is resolved once, each of its addresses is checked here, and only checked addresses are dialled. So neither a
name that points to an inner network nor one that changes between check and dial (DNS rebinding) reaches it. An IPv6
address that contains an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo, ISATAP) has to pass both checks.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from nephila.kernel.runtime.errors import UsageError
from nephila.native import UrlError, parse_url

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# WHATWG fetch, "port blocking": services of other protocols that a crafted HTTP request could reach.
BAD_PORTS = frozenset(
    (
        0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
        110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
        531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190,
        5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    )
)  # fmt: skip

# Networks that a crawl must not reach, with a name for messages; the first network that contains an address names it.
# IANA special-purpose address registries (RFC 6890 and its updates), plus what clouds put on them.
_DENIED = tuple(
    (ipaddress.ip_network(network), name)
    for network, name in (
        ("169.254.169.254/32", "cloud metadata"),
        ("169.254.170.2/32", "cloud metadata"),
        ("100.100.100.200/32", "cloud metadata"),
        ("168.63.129.16/32", "cloud metadata"),
        ("192.0.0.192/32", "cloud metadata"),
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmark"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("fd00:ec2::/32", "cloud metadata"),
        ("fd20:ce::254/128", "cloud metadata"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard-only"),
        ("2001:2::/48", "benchmark"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_MAPPED = ipaddress.ip_network("::ffff:0:0/96")
_TRANSLATED = ipaddress.ip_network("::ffff:0:0:0/96")
_COMPATIBLE = ipaddress.ip_network("::/96")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")
_TEREDO = ipaddress.ip_network("2001::/32")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_IETF = ipaddress.ip_network("2001::/23")


class EgressError(Exception):
    """No address of a name may be dialled; the text names the addresses and the reasons."""


@lru_cache(maxsize=65_536)
def denial(address: str) -> str:
    """Why an address may not be dialled, in a few words; empty when it may be."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "not an address"
    return _denial(parsed)


def _denial(address: Address) -> str:
    for network, name in _DENIED:
        if address in network:
            return name
    if isinstance(address, ipaddress.IPv4Address):
        return ""
    inner = embedded(address)
    for inner_address in inner:
        reason = _denial(inner_address)
        if reason:
            return f"{reason} ({inner_address} inside)"
    if address in _NAT64:
        return ""
    if address not in _GLOBAL_UNICAST or (address in _IETF and not inner):
        return "not global"
    return ""


def embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses inside an IPv6 address, by every scheme that could apply."""
    number = int(address)
    low = ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if any(address in network for network in (_MAPPED, _TRANSLATED, _COMPATIBLE, _NAT64)):
        return [low]
    addresses = []
    if address in _SIX_TO_FOUR:
        addresses.append(ipaddress.IPv4Address(number >> 80 & 0xFFFFFFFF))
    elif address in _TEREDO:
        addresses.append(ipaddress.IPv4Address(number >> 64 & 0xFFFFFFFF))
        addresses.append(ipaddress.IPv4Address(~number & 0xFFFFFFFF))
    if number >> 32 & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):  # ISATAP: RFC 5214 6.1
        addresses.append(low)
    return addresses


_NEVER: Final = ("cloud metadata", "link-local")
"""Kinds of addresses that stay closed to a crawl of private networks: they answer with credentials of the machine, and
no site is there."""


def _never(address: str) -> str:
    reason = denial(address)
    return reason if reason.startswith(_NEVER) else ""


class EgressGuard:
    """Decides which addresses and ports may be dialled. `allow_private` allows all but metadata and link-local ones."""

    def __init__(self, allow_private: bool = False) -> None:
        self.allow_private = allow_private

    def check_port(self, port: int) -> None:
        """Raise `EgressError` for a port on the list of bad ports."""
        if port in BAD_PORTS and not self.allow_private:
            raise EgressError(f"port {port} is blocked")

    def allowed(self, host: str, addresses: Iterable[str]) -> tuple[str, ...]:
        """The addresses that may be dialled, in order; raises `EgressError` when there is none."""
        denied = _never if self.allow_private else denial
        reasons: list[str] = []
        passed = []
        for address in addresses:
            reason = denied(address)
            if reason:
                reasons.append(f"{address} is {reason}")
            else:
                passed.append(address)
        if not passed:
            raise EgressError(f"{host}: {'; '.join(reasons[:3]) or 'no address'}")
        return tuple(passed)


class HostMap:
    """Entries "pattern=address[:port]": the address to dial instead of a DNS look-up.

    Exact names win over `*.suffix`, longer suffixes over shorter ones; `*` alone maps every name. A wildcard covers
    names below its suffix at any depth, not the suffix itself.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._exact: dict[str, tuple[str, int]] = {}
        self._below: dict[str, tuple[str, int]] = {}
        for entry in entries:
            pattern, _, target = (part.strip() for part in entry.partition("="))
            if not pattern or not target:
                raise UsageError(f"host map {entry!r}: expected 'name=address' or '*.name=address:port'")
            pattern = pattern.lower().rstrip(".")
            table = self._exact
            if pattern == "*" or pattern.startswith("*."):
                table, pattern = self._below, pattern[2:]
            if "*" in pattern or any(char in pattern for char in "/@ :"):
                raise UsageError(f"host map {entry!r}: {pattern!r} is not a host name; a * may only stand first")
            table[_ascii(entry, pattern)] = literal(f"host map {entry!r}", target)

    def __bool__(self) -> bool:
        return bool(self._exact or self._below)

    def find(self, host: str) -> tuple[str, int] | None:
        """Address and port to dial (0 = the port of the URL); None when no pattern covers the host."""
        host = host.lower().rstrip(".")
        target = self._exact.get(host)
        if target is not None:
            return target
        suffix = host
        while suffix:
            suffix = suffix.partition(".")[2]
            target = self._below.get(suffix)
            if target is not None:
                return target
        return None


def _ascii(entry: str, name: str) -> str:
    """A host name in the form that URLs use."""
    if name.isascii():
        return name
    try:
        return parse_url(f"http://{name}/").host_key
    except UrlError as error:
        raise UsageError(f"host map {entry!r}: {name!r} is not a host name: {error}") from None


def literal(where: str, target: str) -> tuple[str, int]:
    """IP address and port (0 = none) of a setting; raises a `UsageError` whose text begins with `where`."""
    address, port = target, ""
    if target.startswith("["):
        address, bracket, rest = target[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise UsageError(f"{where}: {target!r} is not of the form [address]:port")
        port = rest[1:]
    elif target.count(":") == 1:
        address, _, port = target.partition(":")
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(f"{where}: {address!r} is not an IP address") from None
    if (port or target.endswith(":")) and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise UsageError(f"{where}: {port!r} is not a port")
    return str(parsed), int(port or 0)
