"""TLS of the fetchers: sessions are resumed per name, and servers with one modern group are reached."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher
from nephila.downloader.http.native import NativeFetcher
from nephila.kernel.runtime.clock import SystemClock

from tests.contracts.fetcher_server import CERTIFICATE, Server, get, request_to, response
from tests.fetcher_fixtures import settings

PAGE = response(b"x", "Content-Type: text/html", "Connection: close")


def server_context() -> ssl.SSLContext:
    """A server with the certificate of the tests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


class Recording(Server):
    """Remembers which handshakes were resumed."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(PAGE, close=True, tls=context)
        self.resumed: list[bool] = []

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.resumed.append(writer.get_extra_info("ssl_object").session_reused)
        await super()._on_connection(reader, writer)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_is_resumed_for_its_name_only(version: ssl.TLSVersion) -> None:
    """The second connection to a name makes no full handshake; another name on the same address does."""
    context = server_context()
    context.minimum_version = context.maximum_version = version
    fetcher = NativeFetcher(settings(), SystemClock())
    async with Recording(context) as server:
        for host in ("a.test", "a.test", "b.test", "a.test"):
            assert (await get(fetcher, request_to(server, host=host, scheme="https"))).status == 200
        assert server.resumed == [False, True, False, True]
    await fetcher.close()


async def test_a_server_that_forgets_its_tickets() -> None:
    """A session that the server does not accept costs a full handshake, not the fetch."""
    fetcher = NativeFetcher(settings(), SystemClock())
    async with Recording(server_context()) as server:
        port = server.port
        await get(fetcher, request_to(server, scheme="https"))
    second = Recording(server_context())
    async with second as server:
        request = request_to(server, scheme="https")
        assert (await get(fetcher, request)).status == 200
        assert (server.resumed, port != server.port) == ([False], True)
    await fetcher.close()


async def test_resumption_does_not_end() -> None:
    """Each resumed connection brings what the next one needs."""
    fetcher = NativeFetcher(settings(), SystemClock())
    async with Recording(server_context()) as server:
        for _ in range(4):
            await get(fetcher, request_to(server, host="a.test", scheme="https"))
        assert server.resumed == [False, True, True, True]
    await fetcher.close()


@pytest.mark.parametrize("make", [NativeFetcher, AiohttpFetcher])
@pytest.mark.parametrize("group", ["X25519", "prime256v1"])
async def test_groups(group: str, make: type[NativeFetcher] | type[AiohttpFetcher]) -> None:
    """A server that has one group only is reached."""
    context = server_context()
    context.set_ecdh_curve(group)
    fetcher = make(settings(), SystemClock())
    async with Server(PAGE, close=True, tls=context) as server:
        assert (await get(fetcher, request_to(server, scheme="https"))).status == 200
    await fetcher.close()
