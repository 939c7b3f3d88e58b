"""A DNS server on loopback whose names do what a test wants; it remembers what it was asked."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections import Counter

A, SOA, AAAA, OPT = 1, 6, 28, 41
TRUNCATED = 0x0200
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
        self.over_tcp: dict[str, tuple[str, ...]] = {}
        """Names whose answer is truncated over UDP, with their addresses over TCP."""
        self.tcp_asked: Counter[str] = Counter()
        """Questions over TCP, by name."""
        self.edns_sizes: set[int] = set()
        """Sizes of answers that questions allow (RFC 6891); 0 for a question without EDNS."""
        self.port = 0
        self._tcp: asyncio.Server | None = None

    async def __aenter__(self) -> DnsServer:
        loop = asyncio.get_running_loop()
        while self._tcp is None:
            self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
            self.port = self._transport.get_extra_info("sockname")[1]
            if not self.over_tcp:
                break
            try:
                self._tcp = await loop.create_server(lambda: _TcpConnection(self), "127.0.0.1", self.port)
            except OSError:  # another process has this port over TCP
                self._transport.close()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._transport.close()
        if self._tcp is not None:
            self._tcp.close()

    @property
    def address(self) -> str:
        """As settings name a server."""
        return f"127.0.0.1:{self.port}"

    def answer_over_tcp(self, data: bytes) -> bytes:
        """The answer to one question over TCP."""
        name, kind, question = _question(data)
        self.tcp_asked[name] += 1
        records = self._records(self.over_tcp[name], kind)
        return data[:2] + struct.pack("!HHHHH", 0x8180, 1, len(records), 0, 0) + question + b"".join(records)

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        """One question."""
        name, kind, question = _question(data)
        rest = data[12 + len(question) :]
        self.edns_sizes.add(int.from_bytes(rest[3:5], "big") if rest[:3] == struct.pack("!BH", 0, OPT) else 0)
        if name in self.over_tcp:
            head = data[:2] + struct.pack("!HHHHH", 0x8180 | TRUNCATED, 1, 0, 0, 0)
            self._transport.sendto(head + question, sender)
            return
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


class _TcpConnection(asyncio.Protocol):
    """Questions over TCP, each after its length."""

    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client connects."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each complete question."""
        self._data += data
        while len(self._data) >= 2 and len(self._data) >= (end := 2 + int.from_bytes(self._data[:2], "big")):
            answer = self._server.answer_over_tcp(self._data[2:end])
            self._data = self._data[end:]
            assert isinstance(self._transport, asyncio.WriteTransport)
            self._transport.write(len(answer).to_bytes(2, "big") + answer)


def _question(data: bytes) -> tuple[str, int, bytes]:
    """Name, type and bytes of the question in a message."""
    labels, at = [], 12
    while size := data[at]:
        labels.append(data[at + 1 : at + 1 + size])
        at += 1 + size
    (kind,) = struct.unpack_from("!H", data, at + 1)
    return b".".join(labels).decode().lower(), kind, data[12 : at + 5]
