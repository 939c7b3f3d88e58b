"""The whole service against servers that mean harm: every fetch ends, with a reason, and the next one works."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from typing import Any

import pytest
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchResult

from tests.contracts.fetcher_server import Server, response
from tests.downloader_client import outcomes

HTML = "Content-Type: text/html"


async def of_paths(server: Server, *paths: str, **settings: Any) -> list[FetchOutcome]:
    """Fetch these paths from the server, one after the other."""
    urls = [f"http://bad.test{path}" for path in paths]
    return await outcomes(*urls, host_map=(f"*.test=127.0.0.1:{server.port}",), **settings)


async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Takes a request and says nothing."""
    await reader.read()


async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A page that would take a year."""
    writer.write(response(b"", HTML, "Content-Length: 100000", length=False))
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ten gigabytes, and more."""
    writer.write(response(b"", HTML, length=False))
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


CHUNKED = f"HTTP/1.1 200 OK\r\n{HTML}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def trickle(start: bytes, again: bytes) -> Any:
    """A server that sends a little, again and again."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0.01)

    return talk


async def reset_in_a_chunk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A connection that is reset in the middle of a chunk."""
    writer.write(CHUNKED + b"ff\r\nabc")
    await writer.drain()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


BOMB = response(gzip.compress(b"\0" * (40 << 20)), HTML, "Content-Encoding: gzip")
CASES: list[tuple[Any, str, dict[str, float]]] = [
    (never, "timeout", {"headers_timeout_s": 0.1}),
    (drip, "timeout", {"body_timeout_s": 0.15}),
    (endless, "too_large", {"max_wire_bytes": 2 << 20}),
    (BOMB, "too_large", {}),
    (b"garbage\r\n\r\n", "protocol", {}),
    (trickle(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"), "timeout", {"headers_timeout_s": 0.1}),
    (trickle(CHUNKED, b"0"), "timeout", {"body_timeout_s": 0.15, "idle_timeout_s": 0.1}),
    (trickle(CHUNKED + b"0\r\n", b"a: b\r\n"), "timeout", {"body_timeout_s": 0.15, "idle_timeout_s": 0.1}),
    (reset_in_a_chunk, "disconnected", {}),
]
IDS = ["never", "drip", "endless", "bomb", "garbage", "head", "size", "trailers", "reset"]


@pytest.mark.parametrize("fetcher", ["native", "aiohttp"])
@pytest.mark.parametrize(("talk", "reason", "settings"), CASES, ids=IDS)
async def test_hostile(talk: Any, reason: str, settings: dict[str, float], fetcher: str) -> None:
    """The hostile page fails with its reason; the page after it comes."""
    async with Server(talk, response(b"fine", HTML)) as server:
        bad, good = await of_paths(server, "/bad", "/good", fetcher=fetcher, **settings)
        assert (bad.result, bad.reason) == (FetchResult.FAILED, reason)
        assert bad.detail
        assert "\n" not in bad.detail
        assert good.result == FetchResult.FETCHED


@pytest.mark.parametrize("fetcher", ["native", "aiohttp"])
async def test_redirect_loop_of_robots(fetcher: str) -> None:
    """A robots.txt that redirects for ever costs six requests."""
    async with Server(response(b"", "Location: /robots.txt", status="302 Found")) as server:
        (outcome,) = await of_paths(server, "/robots.txt", fetcher=fetcher, kind=FetchKind.ROBOTS)
        assert (outcome.result, len(server.requests)) == (FetchResult.REDIRECT, 6)


@pytest.mark.parametrize("fetcher", ["native", "aiohttp"])
async def test_endless_robots(fetcher: str) -> None:
    """Of an endless robots.txt the first 500 KiB count."""
    async with Server(endless) as server:
        (outcome,) = await of_paths(server, "/robots.txt", fetcher=fetcher, kind=FetchKind.ROBOTS)
        assert (outcome.result, outcome.status, len(outcome.body)) == (FetchResult.FETCHED, 200, 512_000)
        await server.lost.wait()
