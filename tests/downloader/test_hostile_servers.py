"""The whole service against servers that mean harm: every fetch ends, with a reason, and the next one works."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
from fetcher_server import Server, response
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build
from nephila.kernel.bus.base import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.clock import SystemClock
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.topics import OUTCOMES, REQUESTS

HTML = "Content-Type: text/html"


async def outcomes(
    server: Server, *paths: str, fetcher: str, kind: FetchKind = FetchKind.UNSPECIFIED, **settings: Any
) -> list[FetchOutcome]:
    """Fetch these paths from the server, one after the other."""
    clock = SystemClock()
    bus = LocalBus(clock)
    config = DownloaderConfig(
        allow_private=True, fetcher=fetcher, host_map=(f"*.test=127.0.0.1:{server.port}",), **settings
    )
    downloader = build(config, bus, clock)
    got: asyncio.Queue[FetchOutcome] = asyncio.Queue()

    def on_outcome(delivery: Delivery) -> None:
        got.put_nowait(delivery.message)
        delivery.ack()

    bus.subscribe(OUTCOMES, "test", on_outcome, credits=10)
    await downloader.start()
    found = []
    for path in paths:
        bus.publish(REQUESTS, 0, FetchRequest(url=f"http://bad.test{path}", host="bad.test", kind=kind))
        found.append(await got.get())
    await downloader.close()
    assert bus.unacked == 0
    return found


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


BOMB = response(gzip.compress(b"\0" * (40 << 20)), HTML, "Content-Encoding: gzip")
CASES: list[tuple[Any, str, dict[str, float]]] = [
    (never, "timeout", {"headers_timeout_s": 0.1}),
    (drip, "timeout", {"body_timeout_s": 0.15}),
    (endless, "too_large", {"max_wire_bytes": 2 << 20}),
    (BOMB, "too_large", {}),
    (b"garbage\r\n\r\n", "protocol", {}),
]


@pytest.mark.parametrize("fetcher", ["lean", "aiohttp"])
@pytest.mark.parametrize(("talk", "reason", "settings"), CASES, ids=["never", "drip", "endless", "bomb", "garbage"])
async def test_hostile(talk: Any, reason: str, settings: dict[str, float], fetcher: str) -> None:
    """The hostile page fails with its reason; the page after it comes."""
    async with Server(talk, response(b"fine", HTML)) as server:
        bad, good = await outcomes(server, "/bad", "/good", fetcher=fetcher, **settings)
        assert (bad.result, bad.reason) == (FetchResult.FAILED, reason)
        assert bad.detail
        assert "\n" not in bad.detail
        assert good.result == FetchResult.FETCHED


@pytest.mark.parametrize("fetcher", ["lean", "aiohttp"])
async def test_redirect_loop_of_robots(fetcher: str) -> None:
    """A robots.txt that redirects for ever costs six requests."""
    async with Server(response(b"", "Location: /robots.txt", status="302 Found")) as server:
        (outcome,) = await outcomes(server, "/robots.txt", fetcher=fetcher, kind=FetchKind.ROBOTS)
        assert (outcome.result, len(server.requests)) == (FetchResult.REDIRECT, 6)


@pytest.mark.parametrize("fetcher", ["lean", "aiohttp"])
async def test_endless_robots(fetcher: str) -> None:
    """Of an endless robots.txt the first 500 KiB count."""
    async with Server(endless) as server:
        (outcome,) = await outcomes(server, "/robots.txt", fetcher=fetcher, kind=FetchKind.ROBOTS)
        assert (outcome.result, outcome.status, len(outcome.body)) == (FetchResult.FETCHED, 200, 512_000)
        await server.lost.wait()
