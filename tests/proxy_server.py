"""A proxy on loopback (HTTP, CONNECT and SOCKS5 on one port) that can die, lie, be slow, ban and demand credentials."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import struct
from collections import Counter
from enum import Enum
from urllib.parse import urlsplit


class Mood(Enum):
    """How a proxy behaves."""

    GOOD = "good"
    DEAD = "dead"
    """Connections are closed at once, also those that are open."""
    LYING = "lying"
    """Answers each request with a page of its own."""
    BANNED = "banned"
    """As if the server blocked its address: 403."""
    SLOW = "slow"
    """Never answers."""
    BROKEN = "broken"
    """Closes the connection once the request is sent."""
    SILENT = "silent"
    """Accepts connections and never answers CONNECT or a SOCKS5 request."""
    GATEWAY = "gateway"
    """Reports that the server cannot be reached."""


class ProxyServer:
    """`hosts` maps names to (address, port), for requests whose name the proxy resolves; others are dialled as they
    are. `asked` counts requests by what the proxy was asked to reach."""

    def __init__(
        self,
        hosts: dict[str, tuple[str, int]] | None = None,
        user: str = "",
        password: str = "",
        reveals: str = "",
        source: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`source`: address that servers see, such as 127.0.1.7. `reveals`: sent as X-Forwarded-For. `tls`: clients
        connect over TLS."""
        self._tls = tls
        self.hosts = hosts or {}
        self.mood = Mood.GOOD
        self.asked: Counter[str] = Counter()
        self.port = 0
        self._user, self._password = user, password
        self._reveals = reveals
        self._source = (source, 0) if source else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ProxyServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and abort every connection."""
        self._server.close()
        self.drop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def become(self, mood: Mood) -> None:
        """Behave in another way from now on."""
        self.mood = mood
        if mood is Mood.DEAD:
            self.drop()

    def drop(self) -> None:
        """Abort all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    def url(self, scheme: str = "http") -> str:
        """As settings name this proxy."""
        user = f"{self._user}:{self._password}@" if self._user else ""
        return f"{scheme}://{user}127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if self.mood is not Mood.DEAD:
                first = await reader.readexactly(1)
                await (self._socks(reader, writer) if first == b"\x05" else self._http(first, reader, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _http(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first = b""
            method, target, _ = head.split("\r\n", 1)[0].split(" ")
            expected = base64.b64encode(f"{self._user}:{self._password}".encode()).decode()
            if self._user and f"proxy-authorization: basic {expected}".lower() not in head.lower():
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                continue
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                if self.mood is Mood.SILENT:
                    await asyncio.Event().wait()
                if self.mood is Mood.GATEWAY:
                    writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                    await writer.drain()
                    return
                self.asked[target] += 1
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._tunnel(host.strip("[]"), int(port), reader, writer)
                return
            await self._forward(method, target, head, writer)

    async def _forward(self, method: str, target: str, head: str, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(target)
        self.asked[url.netloc] += 1
        if await self._own_answer(writer):
            return
        address, port = self.hosts.get(url.hostname or "", (url.hostname or "", url.port or 80))
        lines = [line for line in head.split("\r\n")[1:] if line and not line.lower().startswith("proxy-")]
        if self._reveals:
            lines.append(f"X-Forwarded-For: {self._reveals}")
        upstream_reader, upstream = await asyncio.open_connection(address, port, local_addr=self._source)
        try:
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            lines = [line for line in lines if not line.lower().startswith("connection:")]
            upstream.write("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "Connection: close", "", ""]).encode())
            head = await upstream_reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), -1
            )
            body = await (upstream_reader.readexactly(length) if length >= 0 else upstream_reader.read())
            kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            writer.write(b"\r\n".join(kept) + body)
            await writer.drain()
        finally:
            upstream.close()

    async def _own_answer(self, writer: asyncio.StreamWriter) -> bool:
        """The answer of a proxy that does not forward the request; False: it does."""
        if self.mood is Mood.GOOD:
            return False
        if self.mood is Mood.SLOW:
            await asyncio.Event().wait()
        if self.mood in (Mood.BROKEN, Mood.DEAD):
            raise ConnectionResetError
        status = {Mood.BANNED: b"403 Forbidden", Mood.GATEWAY: b"502 Bad Gateway"}.get(self.mood, b"200 OK")
        body = b"<title>Best offers</title>bought domain" if self.mood is Mood.LYING else b"go away"
        writer.write(
            b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body
        )
        await writer.drain()
        return True

    async def _tunnel(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mood is not Mood.GOOD:
            while True:
                if not await reader.read(65_536):
                    return
                await self._own_answer(writer)
        address, port = self.hosts.get(host, (host, port))
        upstream_reader, upstream = await asyncio.open_connection(address, port, local_addr=self._source)
        try:
            forth = asyncio.create_task(self._pump(reader, upstream, writer))
            await _copy(upstream_reader, writer)
            forth.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await forth
        finally:
            upstream.close()

    async def _pump(
        self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        """Bytes of the client; a proxy whose mood changes answers the next request in an open tunnel itself."""
        while data := await reader.read(65_536):
            if self.mood is not Mood.GOOD:
                try:
                    await self._own_answer(back)
                except ConnectionResetError:
                    back.transport.abort()
                    return
                continue
            upstream.write(data)
            await upstream.drain()
        upstream.close()

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        if self._user:
            if 2 not in methods:
                writer.write(b"\x05\xff")
                await writer.drain()
                return
            writer.write(b"\x05\x02")
            await reader.readexactly(1)
            user = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            accepted = (user.decode(), password.decode()) == (self._user, self._password)
            writer.write(b"\x01" + bytes((not accepted,)))
            if not accepted:
                await writer.drain()
                return
        else:
            writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            packed = await reader.readexactly(4 if kind == 1 else 16)
            host = ".".join(map(str, packed)) if kind == 1 else packed.hex()
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        if self.mood is Mood.SILENT:
            await asyncio.Event().wait()
        if self.mood is Mood.GATEWAY:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))
            await writer.drain()
            return
        self.asked[f"{host}:{port}"] += 1
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await self._tunnel(host, port, reader, writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
