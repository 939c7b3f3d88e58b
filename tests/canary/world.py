"""A network of its own with one public site and many private canaries; every packet to a canary is counted.

It runs in a network namespace, where the site has a public address and the egress guard its default settings. The
canaries are loopback, private and metadata addresses with TCP and UDP listeners. Nothing outside is reachable.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tests.dns_server import NXDOMAIN, DnsServer

SITE = "20.20.20.20"
PROXY_PORT = 3128
"""On the address of the site: a proxy that connects to anything, and resolves names to private addresses if it can."""
CANARIES = ("10.1.2.3", "127.0.0.2", "169.254.169.254", "192.168.7.7", "::1", "fd00::7")
TCP_PORTS = (80, 443, 3478, 8080)
UDP_PORTS = (443, 3478)
CERTIFICATE = Path(__file__).parents[1] / "contracts" / "fetcher_server.pem"
INSIDE = "NEPHILA_CANARY_INSIDE"


def enter(module: str) -> None:
    """Run this module again in a new network namespace, with the addresses set; returns inside of it only."""
    if os.environ.get(INSIDE):
        return
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        sys.exit("the canary needs unshare and ip: apt-get install util-linux iproute2")
    adds = "".join(f" && ip addr add {one}/{128 if ':' in one else 32} dev lo" for one in CANARIES if one != "::1")
    interface = "(ip link add site type dummy || ip link add site type bridge) 2>/dev/null"
    script = f"ip link set lo up && {interface} && ip addr add {SITE}/24 dev site && ip link set site up{adds}"
    script = script.replace(" && ip addr add 127.0.0.2/32 dev lo", "")  # 127.0.0.0/8 is there already
    command = [
        "unshare",
        "--net",
        "--map-root-user",
        "sh",
        "-ec",
        script + ' && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        module,
    ]
    sys.exit(subprocess.run([*command, *sys.argv[1:]], env={**os.environ, INSIDE: "1"}, check=False).returncode)


class Names(dict[str, object]):
    """`site.example` and names below it are public, `private-*` private, `mixed-*` both, `rebind-*` public at the first
    look-up and private later."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: Counter[str] = Counter()

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        """The addresses of a name."""
        label = name.partition(".")[0]
        if not name.endswith("site.example"):
            return default if default is not None else NXDOMAIN
        if label.startswith("private"):
            return ("10.1.2.3", "fd00::7")
        if label.startswith("mixed"):
            return ("10.1.2.3", SITE)
        if label.startswith("rebind"):
            self._asked[name] += 1
            return (SITE,) if self._asked[name] <= 2 else ("10.1.2.3",)  # A and AAAA are asked for at once
        return (SITE,)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, world: World, where: str) -> None:
        self._world = world
        self._where = where

    def datagram_received(self, data: bytes, addr: object) -> None:
        """See asyncio."""
        self._world.hit(self._where)


class World:
    """The servers. `respond` maps host and path of a request to a response of the site: (status, headers, body)."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        """Connections and datagrams that canaries received, by address and port."""
        self.site_requests: Counter[str] = Counter()
        self.proxied = 0
        """Requests that the proxy received."""
        self.respond: Callable[[str, str], tuple[int, list[str], str]] = lambda host, path: (404, [], "")
        self.dns = DnsServer()
        self.dns.names = Names()
        self._servers: list[asyncio.Server] = []
        self._datagrams: list[asyncio.BaseTransport] = []

    def hit(self, where: str) -> None:
        """A canary received something."""
        self.hits[where] += 1

    @property
    def total(self) -> int:
        """All hits so far."""
        return self.hits.total()

    async def __aenter__(self) -> World:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(CERTIFICATE)
        loop = asyncio.get_running_loop()
        self._servers += [
            await asyncio.start_server(self._serve, SITE, 80),
            await asyncio.start_server(self._serve, SITE, 443, ssl=tls),
            await asyncio.start_server(self._proxy, SITE, PROXY_PORT),
        ]
        for address in (*CANARIES, "127.0.0.1"):
            for port in TCP_PORTS:
                self._servers.append(
                    await asyncio.start_server(self._on_canary(f"{address} tcp {port}"), address, port)
                )
            for port in UDP_PORTS:
                where = f"{address} udp {port}"
                transport, _ = await loop.create_datagram_endpoint(
                    lambda where=where: _Datagrams(self, where), local_addr=(address, port)
                )
                self._datagrams.append(transport)
        await self.dns.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dns.__aexit__()
        for server in self._servers:
            server.close()
        for transport in self._datagrams:
            transport.close()

    def _on_canary(self, where: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.hit(where)
            writer.write(b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 6\r\n\r\nsecret")
            writer.close()

        return on_connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                lines = head.split("\r\n")
                path = lines[0].split(" ")[1]
                host = next((line[5:].strip() for line in lines if line.lower().startswith("host:")), "")
                self.site_requests[path] += 1
                status, headers, body = self.respond(host, path)
                content = body.encode()
                start = [f"HTTP/1.1 {status} x", *headers, f"Content-Length: {len(content)}", "", ""]
                writer.write("\r\n".join(start).encode() + content)
                await writer.drain()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """CONNECT, or a request with a whole URL, to any server."""
        upstream: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.proxied += 1
            method, url, _ = head.decode("latin-1").split(" ", 2)
            parts = urlsplit(f"//{url}" if method == "CONNECT" else url)
            host = parts.hostname or ""
            found = self.dns.names.get(host, host)
            address = found[0] if isinstance(found, tuple) else host
            answers, upstream = await asyncio.open_connection(address, parts.port or 80)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                upstream.write(head.replace(url.encode("latin-1"), path.encode("latin-1"), 1))
            await asyncio.gather(_relay(reader, upstream), _relay(answers, writer))
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            if upstream is not None:
                upstream.close()


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
