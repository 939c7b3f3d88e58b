"""The gateway against scripted servers, used by an ordinary HTTP client as its proxy."""

from __future__ import annotations

import asyncio
import gzip
import random

import pytest
from gateway_client import DOCUMENT, FRAME, Client, client_of
from nephila_browser.gateway import gateway as gateway_module

from tests.contracts.fetcher_server import Server, chunked, response

HTML = "Content-Type: text/html"
PAGE = response(b"<p>page", HTML)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("fetcher", ["native", "aiohttp"])
async def test_a_document(scheme: str, fetcher: str) -> None:
    """A document passes with its headers, decoded; the client checks the certificate of the gateway for the name."""
    coded = gzip.compress(b"<p>page" * 100)
    answer = response(
        chunked(coded), HTML, "Content-Encoding: gzip", "Transfer-Encoding: chunked", "Set-Cookie: a=1",
        "Set-Cookie: b=2", 'Alt-Svc: h3=":443"', length=False,
    )  # fmt: skip
    async with Server(answer, tls=scheme == "https") as server, client_of(server, fetcher=fetcher) as client:
        client.register(f"{scheme}://site.test/a?b=c", user_agent="Test/1", headers={"Cookie": "secret=1"})
        reply = await client.get(f"{scheme}://site.test/a?b=c", DOCUMENT)
        assert (reply.status, reply.body) == (200, b"<p>page" * 100)
        assert reply.headers["content-length"] == "700"
        assert not {"content-encoding", "transfer-encoding", "alt-svc"} & set(reply.headers)
        result = client.result()
        assert result.document is not None
        assert (result.document.status, result.document.address, result.requests) == (200, "127.0.0.1", 1)
        assert result.document.headers["set-cookie"] == "a=1\nb=2"
        head = server.requests[0].lower()
        assert "user-agent: test/1\r\n" in head
        assert "cookie: secret=1\r\n" in head
        assert "proxy-authorization" not in head
        assert head.startswith("get /a?b=c http/1.1\r\nhost: site.test\r\n")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_nothing_without_credentials(scheme: str) -> None:
    """Without credentials, with wrong ones, and after the end of the fetch no server is reached."""
    async with Server(PAGE, tls=scheme == "https") as server, client_of(server) as client:
        assert (await client.get(f"{scheme}://site.test/")).status == 407
        client.register()
        client.credentials = client.credentials._replace(password=client.credentials.username)
        assert (await client.get(f"{scheme}://site.test/")).status == 407
        client.result()
        assert (await client.get(f"{scheme}://site.test/")).status == 407
        assert server.connections == 0


LOOPBACK = "127.0.7.1"
"""A client of another process whose server is gone may still dial its port, which is this test's now, on 127.0.0.1."""
PRIVATE = [
    "http://127.0.7.1:{port}/", "http://localhost:{port}/", "https://127.0.7.1:{port}/", "http://[::1]:{port}/",
    "http://[::ffff:127.0.7.1]:{port}/", "http://0x7f000701:{port}/", "http://2130708225:{port}/", "http://0/",
    "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://mapped.test/", "http://93.184.216.34:22/",
]  # fmt: skip


@pytest.mark.parametrize("url", PRIVATE)
async def test_private_addresses_are_refused(url: str) -> None:
    """A private address in any notation, a name that leads to one, and a blocked port: no connection."""
    async with Server(PAGE, host=LOOPBACK) as server:
        names = (f"mapped.test={LOOPBACK}:{server.port}", f"localhost={LOOPBACK}")
        async with client_of(None, host_map=names) as client:
            client.register()
            reply = await client.get(url.format(port=server.port), FRAME)
            assert reply.status == 403
            result = client.result()
            assert result.blocked == {"address": 1}
            assert server.connections == 0


async def test_a_redirect_of_the_document_is_not_followed() -> None:
    """The scheduler decides about its target: the browser receives 204."""
    moved = response(b"moved", "Location: /there", status="302 Found")
    async with Server(moved) as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://site.test/", DOCUMENT)).status == 204
        reply = await client.get("http://site.test/data")
        assert (reply.status, reply.headers["location"]) == (302, "/there")
        document = client.result().document
        assert document is not None
        assert (document.status, document.headers["location"]) == (302, "/there")


async def test_other_documents_than_html_stay_outside() -> None:
    """The result has the body of a PDF, the browser nothing."""
    async with Server(response(b"%PDF", "Content-Type: application/pdf")) as server, client_of(server) as client:
        client.register()
        reply = await client.get("http://site.test/", DOCUMENT)
        assert (reply.status, reply.body) == (204, b"")
        document = client.result().document
        assert document is not None
        assert document.body == b"%PDF"


async def test_robots_apply_to_documents_only() -> None:
    """A disallowed frame is refused, a script on the same path is not; robots.txt is fetched once."""
    robots = response(b"User-agent: *\nDisallow: /private", "Content-Type: text/plain")
    async with Server(robots, PAGE) as server, client_of(server) as client:
        client.register("http://site.test/private/start")
        assert (await client.get("http://other.test/private/frame", FRAME)).status == 403
        assert (await client.get("http://other.test/private/data")).status == 200
        assert (await client.get("http://other.test/open", FRAME)).status == 200
        assert [head.split()[1] for head in server.requests] == ["/robots.txt", "/private/data", "/open"]
        assert client.result().blocked == {"robots": 1}


async def test_the_scheduler_has_decided_about_the_document() -> None:
    """The document of the request needs no robots.txt; a second navigation to it does."""
    async with Server(PAGE) as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://site.test/#a", DOCUMENT)).status == 200
        assert len(server.requests) == 1
        assert (await client.get("http://site.test/", DOCUMENT)).status == 200
        assert [head.split()[1] for head in server.requests] == ["/", "/robots.txt", "/"]


async def test_robots_that_cannot_be_fetched_disallow() -> None:
    """A server error for robots.txt disallows documents; without obedience none is fetched."""
    async with Server(response(b"", status="503 Busy")) as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://other.test/", FRAME)).status == 403
        client.result()
        client.register(obey_robots=False)
        assert (await client.get("http://other.test/", FRAME)).status == 503
        assert [head.split()[1] for head in server.requests] == ["/robots.txt", "/"]


async def test_requests_of_a_page_are_counted() -> None:
    """Requests beyond the limit reach no server."""
    async with Server(PAGE) as server, client_of(server) as client:
        client.register(max_requests=3)
        statuses = [(await client.get(f"http://site.test/{number}")).status for number in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert len(server.requests) == 3
        result = client.result()
        assert (result.requests, result.blocked) == (3, {"requests": 2})


async def test_bytes_of_a_page_are_counted() -> None:
    """A response that exceeds the rest of the page's bytes fails, and after the limit nothing is sent."""
    async with Server(response(b"x" * 6_000)) as server, client_of(server) as client:
        client.register(max_bytes=10_000)
        statuses = [(await client.get("http://site.test/")).status for _ in range(2)]
        assert statuses == [200, 502]
        assert client.result().blocked == {"too_large": 1}
    async with Server(response(b"x" * 10_000)) as server, client_of(server) as client:
        client.register(max_bytes=10_000)
        statuses = [(await client.get("http://site.test/")).status for _ in range(2)]
        assert statuses == [200, 429]
        assert len(server.requests) == 1


async def test_a_document_may_have_a_limit_of_its_own() -> None:
    """The limit of the job (`maxPageBytes`) is for the page, not for its scripts."""
    async with Server(response(b"x" * 6_000, HTML)) as server, client_of(server) as client:
        client.register(max_document_bytes=5_000)
        assert (await client.get("http://site.test/", DOCUMENT)).status == 502
        assert (await client.get("http://site.test/script")).status == 200
        assert client.result().reason == "too_large"


async def test_a_page_does_not_send_more_to_a_host_than_its_rate() -> None:
    """The document has its turn already. A request that would wait for too long reaches no server."""
    async with Server(PAGE) as server, client_of(server, browser__host_rate=0.01) as client:
        client.register("http://site.test/")
        for name, headers in (("", DOCUMENT), ("1", {})):
            assert (await client.get(f"http://site.test/{name}", headers)).status == (200 if name == "" else 429)
        assert (await client.get("http://other.test/1")).status == 200
        assert client.result().blocked == {"pace": 1}
        assert len(server.requests) == 2


async def test_a_407_of_a_server_is_no_challenge_of_the_gateway() -> None:
    """Chromium would repeat the request with the credentials of the gateway."""
    answer = response(b"x", HTML, status="407 Proxy Authentication Required")
    async with Server(answer) as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://site.test/", DOCUMENT)).status == 502
        result = client.result()
        assert result.document is not None
        assert result.document.status == 407


async def test_time_of_a_page_is_limited() -> None:
    """At the end of its time the connections of a page are closed, whatever they wait for."""

    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Server(never) as server, client_of(server) as client:
        client.register(total_s=0.1)
        assert (await client.get("http://site.test/", DOCUMENT)).status in (0, 429)  # the client may repeat it
        if server.connections:  # on a busy machine the time is over before the dial
            await server.lost.wait()
        result = client.result()
        assert (result.document, result.reason) == (None, "timeout")


async def test_media_are_refused_when_asked() -> None:
    """By the request, or where it does not show its use, by the media type of the response."""
    image = response(b"GIF89a", "Content-Type: image/gif")
    async with Server(image) as server, client_of(server) as client:
        client.register(refuse_media=True)
        assert (await client.get("http://site.test/", {"Sec-Fetch-Dest": "image"})).status == 403
        assert (await client.get("http://site.test/", {"Accept": "image/avif,*/*"})).status == 403
        assert server.requests == []
        assert (await client.get("http://site.test/")).status == 403
        assert client.result().blocked == {"media": 3}
        client.register()
        assert (await client.get("http://site.test/i", {"Sec-Fetch-Dest": "image"})).body == b"GIF89a"


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({"Service-Worker": "script"}, "service_worker"), ({"Sec-Purpose": "prefetch"}, "prefetch")],
)
async def test_requests_beside_the_page(headers: dict[str, str], reason: str) -> None:
    """Scripts of service workers and prefetches are not fetched."""
    async with Server(PAGE) as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://site.test/", headers)).status == 403
        assert server.requests == []
        assert client.result().blocked == {reason: 1}


async def test_methods() -> None:
    """A page may send data by POST; HEAD has no body; methods that change resources are not sent."""
    async with Server(response(b"x" * 10), response(b"")) as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://site.test/", method="POST", data=b"a=1")).status == 200
        assert "post / http/1.1" in server.requests[0].lower()
        assert (await client.get("http://site.test/", method="DELETE")).status == 405
        assert len(server.requests) == 1
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
    async with Server(head) as server, client_of(server) as client:
        client.register()
        for _ in range(2):
            assert (await client.get("http://site.test/", method="HEAD")).status == 200
        assert server.connections == 1


async def test_bodies_of_errors_reach_the_page() -> None:
    """Applications answer 404 with a page that renders."""
    async with Server(response(b"<p>not here", HTML, status="404 Not Found")) as server, client_of(server) as client:
        client.register()
        reply = await client.get("http://site.test/", DOCUMENT)
        assert (reply.status, reply.body) == (404, b"<p>not here")


async def test_refusals_of_scripts_by_the_site_are_counted() -> None:
    """401 and 403 of XHR on the site of the document, 401 first; not those of frames, styles and other sites."""
    page, forbidden = response(b"<p>page", HTML), response(b"no", status="403 Forbidden")
    unauthorized = response(b"no", status="401 Unauthorized")
    async with Server(page, unauthorized, forbidden) as server, client_of(server) as client:
        client.register()
        await client.get("http://site.test/", DOCUMENT)
        await client.get("http://other.test/me")
        await client.get("http://site.test/style", {"Sec-Fetch-Dest": "style"})
        assert client.result().unauthorized == 0
    async with Server(page, forbidden, unauthorized, forbidden) as server, client_of(server) as client:
        client.register()
        await client.get("http://site.test/", DOCUMENT)
        await client.get("http://site.test/data")
        await client.get("http://api.site.test/me")
        await client.get("http://site.test/data")
        assert client.result().unauthorized == 401


async def test_a_redirect_of_a_login_page_is_followed_by_the_browser() -> None:
    """And its cookie of the settings is sent after those of the browser."""
    moved = response(b"moved", "Location: /there", status="302 Found")
    async with Server(moved, PAGE) as server, client_of(server) as client:
        client.register(follow_document=True, obey_robots=False, headers={"Cookie": "set=1"})
        assert (await client.get("http://site.test/", DOCUMENT)).status == 302
        assert (await client.get("http://site.test/there", {**DOCUMENT, "Cookie": "own=1"})).status == 200
        assert "cookie: own=1; set=1" in server.requests[1].lower()


async def test_a_dead_server_is_an_answer() -> None:
    """Failures of servers are responses with a reason in the result."""
    async with Server(b"garbage\r\n\r\n") as server, client_of(server) as client:
        client.register()
        assert (await client.get("http://site.test/", DOCUMENT)).status == 502
        result = client.result()
        assert (result.reason, result.blocked) == ("protocol", {"protocol": 1})


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_websocket(scheme: str) -> None:
    """A WebSocket is relayed both ways through the gateway and ends with the fetch."""

    async def upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while data := await reader.read(100):
            writer.write(data.upper())

    async with Server(upgrade, tls=scheme == "https") as server, client_of(server) as client:
        client.register()
        reader, writer = await tunnel(client, "site.test:443" if scheme == "https" else "site.test:80")
        if scheme == "https":
            await writer.start_tls(client.tls, server_hostname="site.test")
        writer.write(
            b"GET /socket HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        writer.write(b"frames")
        assert await reader.readexactly(6) == b"FRAMES"
        assert "upgrade: websocket\r\n" in server.requests[0].lower()
        result = client.result()
        assert (result.requests, result.wire_bytes > 100) == (1, True)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        await server.lost.wait()
        writer.transport.abort()


async def test_a_websocket_to_a_private_address() -> None:
    """The guard applies to WebSockets."""
    async with Server(PAGE) as server, client_of() as client:
        client.register()
        reader, writer = await tunnel(client, f"127.0.0.1:{server.port}")
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
        assert server.connections == 0
        assert client.result().blocked == {"address": 1}
        writer.transport.abort()


async def test_hostile_bytes_close_one_connection() -> None:
    """Noise before, in and after CONNECT and TLS closes its connection; the next request is answered."""
    rng = random.Random(7)
    async with Server(PAGE) as server, client_of(server) as client:
        client.register()
        connect = f"CONNECT site.test:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: {client.basic}\r\n\r\n".encode()
        starts = (b"", connect, connect + b"\x16\x03\x01", b"GET http://site.test/ HTTP/1.1\r\n", b"\x16\x03\x01\x02")
        for number in range(60):
            reader, writer = await asyncio.open_connection(client.address.host, client.address.port)
            writer.write(starts[number % len(starts)] + rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n\n\n")
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 60)
            writer.transport.abort()
        for long in (b"GET http://site.test/ HTTP/1.1\r\n" + b"a: b\r\n" * 100_000, b"G" * 1_000_000):
            reader, writer = await asyncio.open_connection(client.address.host, client.address.port)
            writer.write(long)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await asyncio.wait_for(reader.readexactly(1 << 20), 60)
            writer.transport.abort()
        assert (await client.get("http://site.test/")).status == 200


async def test_connections_without_credentials_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, by time and by body; those of a registered fetch stay."""
    monkeypatch.setattr(gateway_module, "UNKNOWN_S", 0.2)
    async with Server(PAGE) as server, client_of(server) as client:
        client.register()
        _, known = await tunnel(client, "site.test:443")
        opened = [await asyncio.open_connection(client.address.host, client.address.port) for _ in range(100)]
        await asyncio.wait_for(opened[0][0].read(), 60)  # the oldest ones are closed at once
        assert len(client.gateway._connections) <= gateway_module.MAX_UNKNOWN + 1
        await asyncio.wait_for(opened[-1][0].read(), 60)  # the others after their time
        assert len(client.gateway._connections) == 1
        monkeypatch.setattr(gateway_module, "UNKNOWN_S", 60.0)
        reader, writer = await asyncio.open_connection(client.address.host, client.address.port)
        writer.write(b"POST http://site.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 1000)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        assert (await client.get("http://site.test/")).status == 200
        for _, one in [*opened, (reader, writer), (None, known)]:
            one.transport.abort()


async def tunnel(client: Client, authority: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection through which CONNECT was accepted."""
    reader, writer = await asyncio.open_connection(client.address.host, client.address.port)
    writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: {client.basic}\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def test_responses_are_kept_for_archives() -> None:
    """Those of GET but the document, with their heads; beyond the bytes of the page they are counted."""
    coded = gzip.compress(b"x" * 1000)
    answer = response(coded, HTML, "Content-Encoding: gzip")
    async with Server(answer) as server, client_of(server, raw_capture=True) as client:
        client.register(keep_exchanges=True, max_bytes=1900 + len(coded))
        for url, headers in (("http://site.test/", DOCUMENT), ("http://site.test/x", FRAME), ("http://b.test/", FRAME)):
            assert (await client.get(url, headers)).status == 200
        assert (await client.get("http://site.test/post", method="POST")).status == 200
        result = client.result()
        (kept,) = result.exchanges
        assert (kept.target.href, kept.response.status) == ("http://site.test/x", 200)
        assert (kept.response.body, kept.response.wire_body) == (b"x" * 1000, coded)
        assert kept.response.request_head.startswith(b"GET /x ")
        assert kept.started <= kept.ended
        assert result.not_kept == 1
        client.register()
        await client.get("http://site.test/", DOCUMENT)
        await client.get("http://site.test/x", FRAME)
        assert client.result().exchanges == []
