"""What a fetch leaves behind is freed when it ends, without a run of the garbage collector.

The collector of a crawl runs rarely; a cycle that holds a TLS connection keeps its buffers (some 250 KB) until then.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop
from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher
from nephila.downloader.http.contract import Fetcher
from nephila.downloader.http.native import NativeFetcher
from nephila.kernel.runtime.clock import SystemClock

from tests.contracts.fetcher_server import Server, get, request_to, response
from tests.fetcher_fixtures import settings

HTML = "Content-Type: text/html"
LONG = response(b"x" * 1000, HTML, "Content-Length: 2000", length=False)


async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Takes a request and says nothing."""
    await reader.read()


async def answered(fetcher: Fetcher, scheme: str) -> None:
    """Fetches that bring a page, from a server that closes at once, after one request, or says so."""
    for answers, close in (
        ((response(b"x" * 1000, HTML),), True),
        ((response(b"x" * 1000, HTML), response(b"x", HTML, "Connection: close")), False),
    ):
        async with Server(*answers, close=close, tls=scheme == "https") as server:
            for _ in range(5):
                assert (await get(fetcher, request_to(server, scheme=scheme))).reason in ("", "stale")


async def failed(fetcher: Fetcher, scheme: str) -> None:
    """Fetches that fail in every way a connection can."""
    for answer, close, reason in (
        (LONG, True, "disconnected"),
        (response(b"", "Content-Type: image/png"), False, "content_type"),
        (b"nonsense\r\n\r\n", False, "protocol"),
    ):
        async with Server(answer, close=close, tls=scheme == "https") as server:
            assert (await get(fetcher, request_to(server, scheme=scheme))).reason == reason
    async with Server(never) as server:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            server.port = closed.getsockname()[1]
            assert (await get(fetcher, request_to(server, scheme=scheme))).reason == "connect"


async def expired(fetcher: Fetcher, scheme: str) -> None:
    """Fetches whose time is over."""
    async with Server(never, tls=scheme == "https") as server:
        assert (await get(fetcher, request_to(server, scheme=scheme))).reason == "timeout"
    async with Server(never) as plain:  # no TLS where it is expected
        assert (await get(fetcher, request_to(plain, scheme="https"))).reason in ("tls", "timeout")


def cyclic(run: Callable[[Coroutine[Any, Any, None]], None], main: Callable[[], Awaitable[None]]) -> list[str]:
    """Types of this project whose instances only the collector could free after `main`."""

    async def watched() -> None:
        await main()
        gc.collect()
        gc.garbage.clear()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        await main()
        gc.collect()

    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # what earlier tests of this process left in cycles is theirs, and would be reported here
    try:
        run(watched())
        return sorted({type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("nephila.")})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


Part = Callable[[Fetcher, str], Awaitable[None]]


def left_by(make: Any, run: Any, scheme: str, *parts: Part) -> list[str]:
    """What a fetcher leaves in cycles after these parts; it may be cyclic itself, there is one for a whole program."""
    fetchers: list[Fetcher] = []

    async def main() -> None:
        for part in parts:
            limit_s = 0.1 if part is expired else 60.0
            fetcher = make(settings(headers_timeout_s=limit_s, connect_timeout_s=limit_s), SystemClock())
            fetchers.append(fetcher)
            await part(fetcher, scheme)
            await fetcher.close()

    return cyclic(run, main)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_native_leaves_no_cycle(scheme: str, run: Any) -> None:
    """However a fetch ends, no connection, order or answer waits for the collector."""
    assert left_by(NativeFetcher, run, scheme, answered, failed, expired) == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_aiohttp_leaves_no_cycle_behind_a_page(scheme: str) -> None:
    """aiohttp stores errors beside the frames they went through; a page that comes leaves nothing."""
    assert left_by(AiohttpFetcher, uvloop.run, scheme, answered) == []
