"""The handshakes that open a tunnel through a proxy: CONNECT (RFC 9110 9.3.6) and SOCKS5 (RFC 1928, RFC 1929). Pure.

Bytes of the proxy go in, bytes for it come out; how many bytes arrive at once does not matter. A reply that no proxy
may send raises `FetchError` with one of these reasons:

    proxy        the proxy is broken, overloaded, or refuses to serve
    proxy_auth   the proxy does not accept the credentials
    tunnel_403   the proxy refuses CONNECT by this status; other ports, or requests without a tunnel, may work
    connect      the proxy works and reports that it cannot reach the server
"""

from __future__ import annotations

import ipaddress
import struct
from base64 import b64encode
from typing import Protocol

from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.route import ProxyHop
from nephila.kernel.reasons.status_words import tunnel_reason
from nephila.kernel.reasons.table import Reason

MAX_REPLY_BYTES = 16 << 10
"""Size of the reply to CONNECT; proxies send some hundred bytes."""
_SERVER_FAULTS = frozenset((502, 503, 504))
"""Statuses by which a proxy reports that the server cannot be reached."""
_NO_AUTH, _PASSWORD, _NOTHING = 0, 2, 0xFF
_SOCKS_ERRORS = {
    1: (Reason.PROXY, "general failure"),
    2: (Reason.PROXY, "not allowed by its rules"),
    3: (Reason.CONNECT, "network unreachable"),
    4: (Reason.CONNECT, "host unreachable"),
    5: (Reason.CONNECT, "connection refused"),
    6: (Reason.CONNECT, "time to live expired"),
    7: (Reason.PROXY, "command not supported"),
    8: (Reason.PROXY, "kind of address not supported"),
}


class Handshake(Protocol):
    """One handshake, from its first bytes to an open tunnel."""

    done: bool
    """Whether the tunnel is open."""

    def start(self) -> bytes:
        """The first bytes for the proxy."""

    def feed(self, data: bytes) -> bytes:
        """Bytes of the proxy; returns the next bytes for it. Raises `FetchError`."""


def basic_credentials(hop: ProxyHop) -> str:
    """Value of Proxy-Authorization."""
    return "Basic " + b64encode(f"{hop.user}:{hop.password}".encode()).decode("ascii")


def handshake(hop: ProxyHop) -> Handshake:
    return Socks5Handshake(hop) if hop.scheme == "socks5" else ConnectHandshake(hop)


class ConnectHandshake:
    """A request CONNECT, and its answer up to the empty line."""

    def __init__(self, hop: ProxyHop) -> None:
        self._hop = hop
        self._reply = bytearray()
        self.done = False

    def start(self) -> bytes:
        hop = self._hop
        host = f"[{hop.host}]" if ":" in hop.host else hop.host
        lines = [f"CONNECT {host}:{hop.port} HTTP/1.1", f"Host: {host}:{hop.port}"]
        if hop.user:
            lines.append(f"Proxy-Authorization: {basic_credentials(hop)}")
        return "\r\n".join((*lines, "", "")).encode("latin-1")

    def feed(self, data: bytes) -> bytes:
        reply = self._reply
        reply += data
        if not b"HTTP/".startswith(reply[:5]):
            raise FetchError(Reason.PROXY, f"{self._hop.name} does not speak HTTP")
        end = reply.find(b"\r\n\r\n")
        if end < 0:
            if len(reply) > MAX_REPLY_BYTES:
                raise FetchError(Reason.PROXY, f"{self._hop.name}: an endless reply to CONNECT")
            return b""
        status = self._status(bytes(reply[: reply.find(b"\r\n")]))
        if not 200 <= status < 300:
            self._refuse(status)
        if len(reply) > end + 4:
            raise FetchError(Reason.PROXY, f"{self._hop.name}: bytes of a server that was sent nothing")
        self.done = True
        return b""

    def _status(self, line: bytes) -> int:
        parts = line.split(b" ", 2)
        if len(parts) < 2 or len(parts[1]) != 3 or not parts[1].isdigit():
            raise FetchError(Reason.PROXY, f"{self._hop.name}: a reply to CONNECT without a status")
        return int(parts[1])

    def _refuse(self, status: int) -> None:
        name = self._hop.name
        if status == 407:
            raise FetchError(Reason.PROXY_AUTH, f"{name} does not accept the credentials (407)")
        if status in _SERVER_FAULTS:
            raise FetchError(Reason.CONNECT, f"{name} cannot reach {self._hop.host} ({status})")
        if status < 300:
            raise FetchError(Reason.PROXY, f"{name}: status {status} in reply to CONNECT")
        raise FetchError(tunnel_reason(status), f"{name} refuses CONNECT to port {self._hop.port} ({status})")


class Socks5Handshake:
    """Greeting, user and password where the proxy demands them, and the request to connect."""

    def __init__(self, hop: ProxyHop) -> None:
        self._hop = hop
        self._reply = bytearray()
        self._read = self._read_method
        self.done = False

    def start(self) -> bytes:
        methods = bytes((_NO_AUTH, _PASSWORD)) if self._hop.user else bytes((_NO_AUTH,))
        return bytes((5, len(methods))) + methods

    def feed(self, data: bytes) -> bytes:
        self._reply += data
        answer = b""
        while not self.done:
            before = len(self._reply), self._read
            answer += self._read()
            if (len(self._reply), self._read) == before:
                break
        if self.done and self._reply:
            raise FetchError(Reason.PROXY, f"{self._hop.name}: bytes of a server that was sent nothing")
        return answer

    def _take(self, size: int) -> bytes | None:
        """The next bytes of the proxy; None while they are incomplete."""
        if len(self._reply) < size:
            return None
        taken = bytes(self._reply[:size])
        del self._reply[:size]
        return taken

    def _read_method(self) -> bytes:
        if self._reply and self._reply[0] != 5:
            raise FetchError(Reason.PROXY, f"{self._hop.name} does not speak SOCKS5")
        chosen = self._take(2)
        if chosen is None:
            return b""
        if chosen[1] == _NO_AUTH:
            self._read = self._read_reply
            return self._request()
        if chosen[1] == _PASSWORD and self._hop.user:
            self._read = self._read_password
            user, password = self._hop.user.encode()[:255], self._hop.password.encode()[:255]
            return bytes((1, len(user))) + user + bytes((len(password),)) + password
        wants = "no credentials that it accepts" if chosen[1] == _NOTHING else f"method {chosen[1]} is unknown"
        raise FetchError(Reason.PROXY_AUTH, f"{self._hop.name}: {wants}")

    def _read_password(self) -> bytes:
        answer = self._take(2)
        if answer is None:
            return b""
        if answer[1]:
            raise FetchError(Reason.PROXY_AUTH, f"{self._hop.name} does not accept the credentials")
        self._read = self._read_reply
        return self._request()

    def _request(self) -> bytes:
        return b"\x05\x01\x00" + _socks_address(self._hop.host) + struct.pack("!H", self._hop.port)

    def _read_reply(self) -> bytes:
        reply = self._reply
        if len(reply) >= 2 and reply[1]:
            reason, text = _SOCKS_ERRORS.get(reply[1], (Reason.PROXY, f"error {reply[1]}"))
            raise FetchError(reason, f"{self._hop.name}: {text} ({self._hop.host})")
        if len(reply) < 5:
            return b""
        sizes = {1: 4, 3: 1 + reply[4], 4: 16}
        if reply[3] not in sizes:
            raise FetchError(Reason.PROXY, f"{self._hop.name}: a bound address of kind {reply[3]}")
        if self._take(4 + sizes[reply[3]] + 2) is not None:
            self.done = True
        return b""


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii")[:255]
        return bytes((3, len(name))) + name
    return bytes((1 if address.version == 4 else 4,)) + address.packed
