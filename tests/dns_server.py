"""A DNS server on loopback whose names do what a test wants; it remembers what it was asked."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections import Counter

A, SOA, AAAA = 1, 6, 28
SERVFAIL, NXDOMAIN, REFUSED = 2, 3, 5


class DnsServer(asyncio.DatagramProtocol):
    """Names: a tuple of addresses (answer), a number (that error code), None (silence), a function of the query that
    returns the bytes of the answer; one that is missing does not exist."""

    def __init__(self, names: dict[str, object] | None = None, delay_s: float = 0.0, ttl_s: int = 60) -> None:
        """`delay_s`: before each answer. `ttl_s`: of all records."""
        self.names = names or {}
        self._delay_s = delay_s
        self._ttl_s = ttl_s
        self.minimum_s: dict[str, int] = {}
        """Minimum of the SOA record, by zone."""
        self.asked: Counter[str] = Counter()
        """Questions for A records, by name."""
        self.port = 0

    async def __aenter__(self) -> DnsServer:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.port = self._transport.get_extra_info("sockname")[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._transport.close()

    @property
    def address(self) -> str:
        """As settings name a server."""
        return f"127.0.0.1:{self.port}"

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        """One question."""
        labels, at = [], 12
        while size := data[at]:
            labels.append(data[at + 1 : at + 1 + size])
            at += 1 + size
        name = b".".join(labels).decode().lower()
        (kind,) = struct.unpack_from("!H", data, at + 1)
        question = data[12 : at + 5]
        found = self.names.get(name, NXDOMAIN)
        self.asked[name if kind == A else f"{name} {'SOA' if kind == SOA else 'AAAA'}"] += 1
        if kind == SOA:
            found = () if name in self.minimum_s else NXDOMAIN
        if found is None:
            return
        if callable(found):
            self._transport.sendto(found(data), sender)
            return
        code, records = (found, []) if isinstance(found, int) else (0, self._records(found, kind))
        if kind == SOA and not code:
            fields = bytes(2) + struct.pack("!IIIII", 1, 3600, 600, 86_400, self.minimum_s[name])
            records = [b"\xc0\x0c" + struct.pack("!HHIH", SOA, 1, 3600, len(fields)) + fields]
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        answer = head + question + b"".join(records)
        if self._delay_s:
            asyncio.get_running_loop().call_later(self._delay_s, self._transport.sendto, answer, sender)
        else:
            self._transport.sendto(answer, sender)

    def _records(self, addresses: object, kind: int) -> list[bytes]:
        found = []
        for text in addresses:  # type: ignore[attr-defined]
            packed = ipaddress.ip_address(text).packed
            if len(packed) == (4 if kind == A else 16):
                found.append(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, self._ttl_s, len(packed)) + packed)
        return found
