"""The adversary: servers that break HTTP, content codings, TLS and DNS, one case each, with the expected outcome.

Each case runs against both fetchers and through the gateway of the browser (`test_adversary.py`). Time limits are
fractions of a second, so that a server that stalls costs little. docs/reliability.md has the table for people.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import brotli
import zstandard

from tests.contracts.fetcher_server import chunked, response

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

HTML = "Content-Type: text/html"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LIMITS = {
    "connect_timeout_s": 1.0, "headers_timeout_s": 0.4, "idle_timeout_s": 0.3, "body_timeout_s": 0.5,
    "total_timeout_s": 2.0, "max_wire_bytes": 2 << 20, "max_body_bytes": 4 << 20,
}  # fmt: skip
"""Settings of the downloader in all cases."""
FETCHED, REDIRECT = "fetched", "redirect"


class Case(NamedTuple):
    """One adversary. `outcome`: fetched, redirect, or the reason of the failure."""

    name: str
    answer: bytes | Talk
    outcome: str
    aiohttp: str = ""
    """Where the parser of aiohttp decides otherwise."""
    browser: str = ""
    """Where the browser's lane decides otherwise."""


def bomb(size: int = 64 << 20) -> bytes:
    """Zeros, which compress a thousandfold."""
    return bytes(size)


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 9)


def sends(*parts: bytes, every_s: float = 0.02) -> Talk:
    """The first part, then the others in turn without end, slowly."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(parts[0])
        while True:
            for part in parts[1:] or (b"",):
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(every_s)

    return talk


def floods(start: bytes, part: bytes) -> Talk:
    """The start, then the part without end, as fast as the network allows."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(part)
            await writer.drain()

    return talk


def resets(start: bytes = b"") -> Talk:
    """Some bytes, then a TCP reset."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await asyncio.sleep(0.05)  # the bytes leave before the reset
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    return talk


def closes(start: bytes = b"") -> Talk:
    """Some bytes, then an orderly close."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)

    return talk


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """No byte."""
    await reader.read()


def coded(body: bytes, coding: str) -> bytes:
    """A response with a content coding."""
    return response(body, HTML, f"Content-Encoding: {coding}")


PAGE = b"<p>a page</p>" * 20
CASES: tuple[Case, ...] = (
    # Slow.
    Case("no answer", silent, "timeout"),
    Case("head byte by byte", sends(OK[:9], b"x"), "timeout", "protocol"),
    Case("header lines without end, slowly", sends(OK, b"a: b\r\n"), "timeout"),
    Case("body at one byte a second", sends(OK + b"Content-Length: 100000\r\n\r\n", b"x"), "timeout"),
    Case("body that stops", closes(OK + b"Content-Length: 100\r\n\r\nx"), "disconnected"),
    Case("chunk size without end", sends(CHUNKED, b"0"), "timeout"),
    Case("chunk extension without end", sends(CHUNKED + b"1;", b"x"), "timeout"),
    Case("trailers without end", sends(CHUNKED + b"1\r\nx\r\n0\r\n", b"a: b\r\n"), "timeout"),
    # Large.
    Case("chunks without end", floods(CHUNKED, chunked(b"x" * 9000, end=b"")), "too_large"),
    Case("body without end", floods(OK + b"\r\n", b"x" * 65_536), "too_large"),
    Case("10 GB announced", sends(OK + b"Content-Length: 10000000000\r\n\r\n", b"x"), "too_large"),
    Case("header of 1 MB", response(PAGE, HTML, "X: " + "x" * (1 << 20)), "protocol"),
    Case("10,000 headers", response(PAGE, HTML, *(f"X-Header-{n}: value" for n in range(10_000))), "protocol"),
    Case("status line of 1 MB", b"HTTP/1.1 200 " + b"x" * (1 << 20) + b"\r\n\r\n", "protocol"),
    # Length.
    Case("Content-Length too long", closes(OK + b"Content-Length: 5000\r\n\r\n" + PAGE), "disconnected"),
    Case("Content-Length too short", OK + b"Content-Length: 5\r\n\r\n" + PAGE, FETCHED, "protocol"),
    Case("two Content-Lengths", response(PAGE, HTML, "Content-Length: 5"), "protocol"),
    Case("the same Content-Length twice", response(PAGE, HTML, f"Content-Length: {len(PAGE)}"), FETCHED, "protocol"),
    Case("negative Content-Length", OK + b"Content-Length: -5\r\n\r\n" + PAGE, "protocol"),
    Case(
        "Content-Length beside chunked",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(PAGE),
        FETCHED,
        "protocol",
    ),
    Case("chunk size beyond 64 bits", closes(CHUNKED + b"fffffffffffffffff\r\nx"), "protocol"),
    Case("chunk size that is none", closes(CHUNKED + b"zz\r\nx\r\n0\r\n\r\n"), "protocol"),
    Case("chunked twice", OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + chunked(PAGE), FETCHED),
    # Resets.
    Case("reset before the head", resets(), "disconnected"),
    Case("reset in the head", resets(OK), "disconnected"),
    Case("reset in the body", resets(OK + b"Content-Length: 5000\r\n\r\nx"), "disconnected"),
    Case("reset in a chunk", resets(CHUNKED + b"ff\r\nabc"), "disconnected"),
    Case("closed before the head", closes(), "disconnected"),
    Case("reset between two chunks", resets(CHUNKED + chunked(PAGE, end=b"")), "disconnected"),
    Case("keep-alive closed at once", closes(response(PAGE, HTML, "Connection: keep-alive")), FETCHED),
    Case("keep-alive reset at once", resets(response(PAGE, HTML, "Connection: keep-alive")), FETCHED),
    # Status.
    Case("103 before the response", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response(PAGE, HTML), FETCHED),
    Case(
        "103 with a body",
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello" + response(PAGE, HTML),
        "protocol",
    ),
    Case("100 without end", floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "protocol", "timeout"),
    Case("101 unasked", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x00\x01", "protocol", "http_101"),
    Case("204 with a body", response(PAGE, HTML, status="204 No Content"), FETCHED, "protocol"),
    Case("304 unasked", response(b"", status="304 Not Modified"), "http_304", browser=FETCHED),
    Case("status 999", response(PAGE, HTML, status="999 What"), "http_999", browser=FETCHED),
    Case("HTTP/0.9", closes(b"<html>" + PAGE), "protocol"),
    Case("HTTP/2 preface", closes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "protocol"),
    Case("NUL and CR in headers", response(PAGE, HTML, "A: x\0y", "B: x\ry"), FETCHED, "protocol"),
    # Redirects: one per fetch, the scheduler bounds the chain.
    Case("redirect to itself", response(b"", "Location: /bad", status="302 Found"), REDIRECT),
    Case("redirect to file:", response(b"", "Location: file:///etc/passwd", status="302 Found"), "bad_redirect"),
    Case("redirect to data:", response(b"", "Location: data:text/html,x", status="301 Moved"), "bad_redirect"),
    Case("redirect to gopher:", response(b"", "Location: gopher://10.0.0.1/", status="307 Go"), "bad_redirect"),
    Case("redirect to a private address", response(b"", "Location: http://10.0.0.1/", status="308 Go"), REDIRECT),
    Case("redirect without target", response(b"", status="302 Found"), "bad_redirect"),
    # Content codings.
    Case("gzip bomb", coded(_gzip(bomb()), "gzip"), "too_large"),
    Case("br bomb", coded(brotli.compress(bomb(), quality=5), "br"), "too_large"),
    Case("zstd bomb", coded(zstandard.compress(bomb()), "zstd"), "too_large"),
    Case("deflate bomb", coded(zlib.compress(bomb(), 9), "deflate"), "too_large"),
    Case("gzip bomb in gzip", coded(_gzip(_gzip(bomb())), "gzip, gzip"), "too_large"),
    Case("gzip in gzip", coded(_gzip(_gzip(PAGE)), "gzip, gzip"), FETCHED),
    Case("three codings", coded(_gzip(_gzip(_gzip(PAGE))), "gzip, gzip, gzip"), "encoding"),
    Case("gzip truncated", coded(_gzip(PAGE)[:-9], "gzip"), "encoding"),
    Case("br truncated", coded(brotli.compress(PAGE)[:-3], "br"), "encoding"),
    Case("zstd truncated", coded(zstandard.compress(PAGE)[:-3], "zstd"), "encoding"),
    Case("gzip that is none", coded(PAGE, "gzip"), "encoding"),
    Case("unknown coding", coded(PAGE, "rot13"), "encoding"),
    Case("100,000 empty gzip members", coded(_gzip(b"") * 100_000, "gzip"), "encoding"),
)
REDIRECTS: Mapping[str, str] = {case.name: case.outcome for case in CASES if case.outcome in (REDIRECT, "bad_redirect")}


# ---- DNS


def _reply(query: bytes, flags: int, records: bytes = b"", count: int = 0) -> bytes:
    end = query.index(b"\0", 12) + 5
    return query[:2] + struct.pack("!HHHHH", flags, 1, count, 0, 0) + query[12:end] + records


def truncated(query: bytes) -> bytes:
    """TC is set, and no server answers over TCP."""
    return _reply(query, 0x8380)


def other_name(query: bytes) -> bytes:
    """An answer for a name that was not asked for."""
    other = query[:12] + b"\x05other\x04test\0" + query[query.index(b"\0", 12) + 1 :]
    return _reply(other, 0x8180, b"\xc0\x0c" + struct.pack("!HHIH4B", 1, 1, 60, 4, 127, 0, 0, 1), 1)


def cname_loop(query: bytes) -> bytes:
    """A name that is an alias of itself."""
    return _reply(query, 0x8180, b"\xc0\x0c" + struct.pack("!HHIH", 5, 1, 60, 2) + b"\xc0\x0c", 1)


def noise(query: bytes) -> bytes:
    """The right transaction number, then bytes without meaning."""
    return query[:2] + bytes(range(200))


class Rebinding:
    """The site at the first query of each type, a private address at all later ones."""

    def __init__(self, first: str, later: str) -> None:
        self._answers = {1: [first, later], 28: []}

    def __call__(self, query: bytes) -> bytes:
        kind = struct.unpack_from("!H", query, query.index(b"\0", 12) + 1)[0]
        answers = self._answers.get(kind)
        if not answers:
            return _reply(query, 0x8180)
        address = answers.pop(0) if len(answers) > 1 else answers[0]
        record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + socket.inet_aton(address)
        return _reply(query, 0x8180, record, 1)


MANY = tuple(f"10.9.{n // 200}.{n % 200 + 1}" for n in range(50))
DNS: dict[str, tuple[Any, str]] = {
    "NXDOMAIN": (3, "dns"),
    "SERVFAIL": (2, "dns"),
    "silence": (None, "dns"),
    "truncated, no TCP": (truncated, "dns"),
    "an answer for another name": (other_name, "dns"),
    "an alias of itself": (cname_loop, "dns"),
    "noise": (noise, "dns"),
    "a private address": (("10.0.0.1",), "address"),
    "the metadata address": (("169.254.169.254", "fd00:ec2::254"), "address"),
    "50 private addresses": (MANY, "address"),
}
"""Case → (answer of the name server, reason of the failure)."""
