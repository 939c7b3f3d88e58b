"""A peer that sends without end costs its own fetch: it ends with a cause, and pages of other servers come."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.route import ProxyHop, direct_route, proxied
from nephila.downloader.http.target import TargetUrl

from tests.contracts.fetcher_server import CERTIFICATE, Server, get, request_to, response
from tests.fetcher_fixtures import MakeFetcher

HTML = "Content-Type: text/html"
CHUNKED = f"HTTP/1.1 200 OK\r\n{HTML}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def endless(start: bytes, block: bytes) -> Any:
    """A peer that sends a start, and then a block again and again, as fast as it can."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(block)
            await writer.drain()

    return talk


PEERS = {
    "interim heads": (endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000), "protocol"),
    "header lines": (endless(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 1000), "protocol"),
    "blank lines": (endless(b"", b"\r\n" * 1000), "protocol"),
    "tiny chunks": (endless(CHUNKED, b"1\r\nx\r\n" * 1000), "protocol"),
    "chunk extensions": (endless(CHUNKED, b"1;" + b"x" * 4000 + b"\r\nx\r\n"), "too_large"),
    "trailers": (endless(CHUNKED + b"0\r\n", b"a: b\r\n" * 1000), "protocol"),
}

LATER = ("timeout", "too_large", "disconnected")


@pytest.mark.parametrize("name", PEERS)
async def test_an_endless_server(make_fetcher: MakeFetcher, name: str) -> None:
    """Each loop over its bytes has a bound; the portable fetcher needs its time limits for some of them."""
    talk, reason = PEERS[name]
    fetcher = make_fetcher(max_wire_bytes=4 << 20, headers_timeout_s=2.0, body_timeout_s=2.0)
    async with Server(talk) as bad, Server(response(b"fine", HTML)) as good:
        answers = await asyncio.gather(get(fetcher, request_to(bad)), get(fetcher, request_to(good)))
    assert answers[0].reason == reason or (isinstance(fetcher, AiohttpFetcher) and answers[0].reason in LATER)
    assert answers[0].detail
    assert answers[1].body == b"fine"


async def test_tls_tickets_instead_of_a_page(make_fetcher: MakeFetcher) -> None:
    """Five megabytes of tickets: the connection is closed long before they have been read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.num_tickets = 20_000

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    fetcher = make_fetcher()
    async with Server(silent, tls=context) as bad, Server(response(b"fine", HTML)) as good:
        answers = await asyncio.gather(get(fetcher, request_to(bad, scheme="https")), get(fetcher, request_to(good)))
    assert answers[0].reason == "disconnected"
    assert "TLS" in answers[0].detail
    assert answers[1].body == b"fine"


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_an_endless_proxy(make_fetcher: MakeFetcher, scheme: str) -> None:
    """The reply to CONNECT or SOCKS does not end."""
    block = b"x: y\r\n" * 1000 if scheme == "http" else b"\x05\x00" * 1000
    talk = endless(b"HTTP/1.1 200 OK\r\n" if scheme == "http" else b"", block)
    fetcher = make_fetcher()
    bad = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with bad:
        port = bad.sockets[0].getsockname()[1]
        hop, target = ProxyHop("proxy.test", scheme, "", "", "site.test", 443), TargetUrl("https://site.test/")
        route = proxied(direct_route(target, ("127.0.0.1",), 443), ("127.0.0.1",), port, hop)
        answer = await get(fetcher, HttpRequest(target, route))
    assert answer.reason == "proxy"
    assert answer.detail


async def test_a_late_second_response_is_not_the_next_page(make_fetcher: MakeFetcher) -> None:
    """It comes while its connection rests; the next request has another connection, and so have all later ones."""
    second = asyncio.Event()
    connections: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        if len(connections) == 2:
            connections[0].write(response(b"forged", HTML))
            await connections[0].drain()
        writer.write(response(b"page %d" % len(connections), HTML))
        await writer.drain()
        await second.wait()

    fetcher = make_fetcher(rest_s=60.0)
    async with Server(talk) as server:
        bodies = [(await get(fetcher, request_to(server))).body for _ in range(4)]
        second.set()
    assert bodies == [b"page 1", b"page 2", b"page 3", b"page 4"]


async def test_a_408_on_a_kept_connection_is_no_page(make_fetcher: MakeFetcher) -> None:
    """A server ends an idle connection so, while the next request is on its way: that request is repeated."""
    timeout = response(b"", "Connection: close", status="408 Request Timeout")
    fetcher = make_fetcher()
    async with Server(response(b"fine", HTML), timeout) as server:
        answers = [await get(fetcher, request_to(server)) for _ in range(3)]
    assert [(answer.status, answer.reason) for answer in answers] == [(200, ""), (0, "stale"), (408, "")]


def test_connections_rest_by_default() -> None:
    """Beyond the time that a second response of a slow server takes."""
    assert HttpConfig().rest_s >= 0.2
