"""The contract of a fetcher, run over every implementation against a real server that says what the case needs."""

from __future__ import annotations

import asyncio
import gzip
import socket
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import brotli
import nephila
import pytest
import zstandard
from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.native import NativeFetcher
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.runtime.clock import SystemClock

from tests.contracts.fetcher_server import Server, chunked, get, request_at, request_to, response
from tests.fetcher_fixtures import MakeFetcher, settings

HTML = "Content-Type: text/html; charset=UTF-8"
PAGE = b"<title>x</title>" * 500


def aiohttp_cannot(request: pytest.FixtureRequest, why: str) -> None:
    """Mark a case that aiohttp's parser decides otherwise."""
    if "AiohttpFetcher" in request.node.name:
        request.applymarker(pytest.mark.xfail(strict=True, reason=why))


async def fetch(
    make_fetcher: MakeFetcher, *answers: Any, close: bool = False, config: dict[str, Any] | None = None, **options: Any
) -> HttpResponse:
    """One fetch from a server that gives these answers."""
    async with Server(*answers, close=close) as server:
        return await get(make_fetcher(**(config or {})), request_to(server, **options))


# Framing


async def test_length_known(make_fetcher: MakeFetcher) -> None:
    """A body with Content-Length comes whole, with its type, charset, counts and address."""
    answer = await fetch(make_fetcher, response(PAGE, HTML))
    assert (answer.status, answer.reason, answer.body) == (200, "", PAGE)
    assert (answer.content_type, answer.charset) == ("text/html", "utf-8")
    assert (answer.wire_bytes, answer.address) == (len(PAGE), "127.0.0.1")
    assert isinstance(answer.body, bytes)


@pytest.mark.parametrize("size", [0, 1, 70_000, 262_143, 262_144, 262_145, 1_000_000, 5_000_000])
async def test_sizes(make_fetcher: MakeFetcher, size: int) -> None:
    """Bodies around and beyond the size of a read buffer come whole."""
    body = bytes(range(256)) * (size // 256 + 1)
    answer = await fetch(make_fetcher, response(body[:size], HTML))
    assert answer.reason == ""
    assert answer.body == body[:size]


async def test_piece_by_piece(make_fetcher: MakeFetcher) -> None:
    """Head and body may come byte by byte."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in response(b"hello", HTML):
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)

    assert (await fetch(make_fetcher, talk)).body == b"hello"


async def test_a_length_beside_transfer_encoding_closes_the_connection(make_fetcher: MakeFetcher) -> None:
    """RFC 9112 6.3: the body is read by its chunks, or the response is refused as aiohttp does; the next request has
    another connection."""
    answer = response(b"", HTML, "Transfer-Encoding: chunked", "Content-Length: 3", length=False)
    fetcher = make_fetcher()
    async with Server(answer + b"5\r\nhello\r\n0\r\n\r\n") as server:
        for _ in range(2):
            found = await get(fetcher, request_to(server))
            assert found.reason == "protocol" or (found.status, found.body) == (200, b"hello")
        assert server.connections == 2


async def test_chunked(make_fetcher: MakeFetcher) -> None:
    """Chunks are joined; extensions and trailers are read over."""
    body = b"4;x=y\r\nwiki\r\n" + chunked(b"pedia", b" " * 20_000, end=b"0\r\nX-Trailer: 1\r\n\r\n")
    answer = await fetch(make_fetcher, response(b"", HTML, "Transfer-Encoding: chunked", length=False) + body)
    assert (answer.reason, answer.body) == ("", b"wikipedia" + b" " * 20_000)


async def test_chunked_byte_by_byte(make_fetcher: MakeFetcher) -> None:
    """The chunked coding may be cut anywhere."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = response(b"", HTML, "Transfer-Encoding: chunked", length=False) + chunked(b"ab", b"c" * 17)
        for byte in data:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)

    assert (await fetch(make_fetcher, talk)).body == b"ab" + b"c" * 17


async def test_missing_last_chunk(make_fetcher: MakeFetcher) -> None:
    """Chunks that end without the last one are a lost connection, not a page."""
    data = response(b"", HTML, "Transfer-Encoding: chunked", length=False) + chunked(b"half", end=b"")
    answer = await fetch(make_fetcher, data, close=True)
    assert (answer.reason, answer.status, answer.body) == ("disconnected", 200, b"")


async def test_broken_chunk_size(make_fetcher: MakeFetcher) -> None:
    """A chunk size that is no number is a broken protocol."""
    data = response(b"", HTML, "Transfer-Encoding: chunked", length=False) + b"zz\r\nhello\r\n0\r\n\r\n"
    assert (await fetch(make_fetcher, data)).reason == "protocol"


async def test_until_close(make_fetcher: MakeFetcher) -> None:
    """Without a length the body ends with the connection."""
    answer = await fetch(make_fetcher, response(PAGE, HTML, length=False), close=True)
    assert (answer.reason, answer.body) == ("", PAGE)


async def test_http_1_0(make_fetcher: MakeFetcher) -> None:
    """HTTP/1.0 is understood, and its connections are not kept unless it says so."""
    data = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"
    async with Server(data, close=True) as server:
        fetcher = make_fetcher()
        assert (await get(fetcher, request_to(server))).body == b"hi"
        assert (await get(fetcher, request_to(server))).body == b"hi"
        assert server.connections == 2


async def test_length_too_long(make_fetcher: MakeFetcher) -> None:
    """A body shorter than its Content-Length is a lost connection."""
    data = response(b"short", HTML, "Content-Length: 50", length=False)
    answer = await fetch(make_fetcher, data, close=True)
    assert (answer.reason, answer.body) == ("disconnected", b"")


async def test_length_too_short(make_fetcher: MakeFetcher, request: pytest.FixtureRequest) -> None:
    """What comes beyond Content-Length is not read, and the next fetch does not suffer from it."""
    aiohttp_cannot(request, "llhttp takes what follows for a broken second answer")
    data = response(b"hello and garbage", HTML, "Content-Length: 5", length=False)
    async with Server(data, response(b"clean", HTML)) as server:
        fetcher = make_fetcher()
        assert (await get(fetcher, request_to(server))).body == b"hello"
        assert (await get(fetcher, request_to(server))).body == b"clean"


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset Content"])
async def test_no_body(make_fetcher: MakeFetcher, status: str) -> None:
    """204 and 205 have no body, whatever the headers say."""
    answer = await fetch(make_fetcher, response(b"", HTML, status=status))
    assert (answer.reason, answer.body) == ("", b"")


async def test_304(make_fetcher: MakeFetcher) -> None:
    """A 304 answers validators, which are sent as given; its Content-Length announces no body."""
    data = response(b"", 'ETag: "a"', "Content-Length: 500", status="304 Not Modified", length=False)
    async with Server(data) as server:
        request = request_to(server)
        request.add_header("If-None-Match", '"a"')
        request.add_header("If-Modified-Since", "Sat, 21 Nov 2026 09:04:09 GMT")
        answer = await get(make_fetcher(), request)
        assert (answer.status, answer.reason, answer.body) == (304, "", b"")
        assert 'If-None-Match: "a"\r\n' in server.requests[0]
        assert "If-Modified-Since: Sat, 21 Nov 2026 09:04:09 GMT\r\n" in server.requests[0]


async def test_early_hints(make_fetcher: MakeFetcher) -> None:
    """1xx answers come before the one that counts."""
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    answer = await fetch(make_fetcher, early + response(b"real", HTML))
    assert (answer.status, answer.body, "link" in answer.headers) == (200, b"real", False)


async def test_length_beside_chunked(make_fetcher: MakeFetcher, request: pytest.FixtureRequest) -> None:
    """Chunked wins over a length (RFC 9112 6.3), and such a connection is not used again."""
    aiohttp_cannot(request, "llhttp refuses the message")
    data = response(b"", HTML, "Transfer-Encoding: chunked", "Content-Length: 3", length=False) + chunked(b"hello")
    async with Server(data, close=False) as server:
        fetcher = make_fetcher()
        assert (await get(fetcher, request_to(server))).body == b"hello"
        assert (await get(fetcher, request_to(server))).body == b"hello"
        assert server.connections == 2


async def test_two_lengths(make_fetcher: MakeFetcher) -> None:
    """Lengths that contradict each other are a broken protocol."""
    data = response(b"hello", HTML, "Content-Length: 4", "Content-Length: 5", length=False)
    assert (await fetch(make_fetcher, data)).reason == "protocol"


# Heads


async def test_folded_header(make_fetcher: MakeFetcher) -> None:
    """A folded line belongs to the header before it (RFC 9112 5.2)."""
    data = b"HTTP/1.1 200 OK\r\nX-Long: one\r\n  two\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx"
    answer = await fetch(make_fetcher, data)
    assert answer.headers["x-long"].split() == ["one", "two"]
    assert answer.body == b"x"


async def test_bare_newlines(make_fetcher: MakeFetcher) -> None:
    """Heads with bare LF are read."""
    answer = await fetch(make_fetcher, b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 2\n\nhi")
    assert (answer.reason, answer.body) == ("", b"hi")


async def test_repeated_headers(make_fetcher: MakeFetcher) -> None:
    """Headers of one name are joined; X-Robots-Tag by lines, since an agent's name holds for its own line."""
    answer = await fetch(make_fetcher, response(b"x", HTML, "X-Robots-Tag: noindex", "X-Robots-Tag: nofollow"))
    assert answer.headers["x-robots-tag"] == "noindex\nnofollow"


async def test_a_single_value_that_comes_twice(make_fetcher: MakeFetcher) -> None:
    """Equal repetitions of a header with one value are one; different ones stay apart, whatever commas they have."""
    twice = ["ETag: a", "Retry-After: 5", "Vary: a"]
    lines = [*twice, "Location: /x,y", *twice, "Location: /z"]
    answer = await fetch(make_fetcher, response(b"", HTML, *lines, status="301 Moved"))
    names = ("etag", "location", "retry-after", "vary")
    assert [answer.headers[name] for name in names] == ["a", "/x,y\n/z", "5", "a, a"]


@pytest.mark.parametrize("lines", [("Transfer-Encoding: chunked",) * 2, ("Transfer-Encoding: chunked, Chunked",)])
async def test_chunked_twice(make_fetcher: MakeFetcher, lines: tuple[str, ...]) -> None:
    """A repeated coding "chunked" is one, as browsers read it."""
    data = response(b"", HTML, *lines, length=False) + chunked(b"one ", b"two")
    answer = await fetch(make_fetcher, data)
    assert (answer.reason, answer.body) == ("", b"one two")


async def test_content_type_twice(make_fetcher: MakeFetcher) -> None:
    """The last valid type counts, with the charset of an earlier equal one (Fetch standard)."""
    lines = ("Content-Type: text/html; charset=gbk", "Content-Type: text/html", "Content-Type: nonsense")
    answer = await fetch(make_fetcher, response(b"x", *lines), config={"accept": ("text/html",)})
    assert (answer.reason, answer.content_type, answer.charset) == ("", "text/html", "gbk")


@pytest.mark.parametrize("lines", [(), ("Location: ",)])
@pytest.mark.parametrize("status", ["300 Multiple Choices", "302 Found", "303 See Other", "305 Use Proxy"])
async def test_a_redirect_that_leads_nowhere_is_a_page(
    make_fetcher: MakeFetcher, status: str, lines: tuple[str, ...]
) -> None:
    """Its body is decoded and returned as that of 2xx, and its type has to be wanted."""
    data = response(gzip.compress(PAGE), HTML, "Content-Encoding: gzip", *lines, status=status)
    answer = await fetch(make_fetcher, data)
    assert (answer.reason, answer.is_page, answer.body) == ("", True, PAGE)
    picture = response(b"x", "Content-Type: image/png", *lines, status=status)
    assert (await fetch(make_fetcher, picture, config={"accept": ("text/html",)})).reason == "content_type"


async def test_octets_in_headers(make_fetcher: MakeFetcher) -> None:
    """Octets above ASCII in a header survive as Latin-1."""
    raw = "Location: /caf\u00c3\u00a9"
    answer = await fetch(make_fetcher, response(b"", raw, status="301 Moved"))
    assert answer.headers["location"].encode("latin-1") == "/café".encode()


async def test_headers_without_end(make_fetcher: MakeFetcher) -> None:
    """A head over 64 KiB is refused."""
    answer = await fetch(make_fetcher, b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", close=True)
    assert answer.reason == "protocol"


@pytest.mark.parametrize(
    "data", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"\x16\x03\x01\x00\x00\r\n\r\n", b"HTTP/3 abc\r\n\r\n"]
)
async def test_not_http(make_fetcher: MakeFetcher, data: bytes) -> None:
    """What is not HTTP is a broken protocol."""
    assert (await fetch(make_fetcher, data)).reason == "protocol"


async def test_request_head(make_fetcher: MakeFetcher) -> None:
    """One request line, Host with its port, the agent with a contact, and every coding that can be taken off."""
    async with Server(response(b"x", HTML)) as server:
        await get(make_fetcher(), request_to(server, "/a%20b?q=1"))
        lines = server.requests[0].split("\r\n")
        assert lines[0] == "GET /a%20b?q=1 HTTP/1.1"
        assert f"Host: site.test:{server.port}" in lines
        assert f"User-Agent: Nephila/{nephila.__version__} (+https://nephila.dev/bot)" in lines
        assert "Accept-Encoding: gzip, deflate, br, zstd" in lines
        assert len([line for line in lines if line.lower().startswith("host:")]) == 1
        assert "Authorization" not in server.requests[0]


async def test_own_headers(make_fetcher: MakeFetcher) -> None:
    """Configured headers are sent, and replace defaults of their name."""
    async with Server(response(b"x", HTML)) as server:
        await get(make_fetcher(headers=("Accept-Language: la", "accept: text/html")), request_to(server))
        assert "Accept-Language: la\r\n" in server.requests[0]
        assert server.requests[0].lower().count("\r\naccept:") == 1


async def test_credentials(make_fetcher: MakeFetcher) -> None:
    """Userinfo of a URL is sent as Basic credentials and nowhere else."""
    async with Server(response(b"x", HTML)) as server:
        await get(make_fetcher(), request_to(server, user="me:p%40ss@"))
        assert "Authorization: Basic bWU6cEBzcw==\r\n" in server.requests[0]
        assert "me:" not in server.requests[0]


async def test_forwarded(make_fetcher: MakeFetcher) -> None:
    """The request of another client has only its own method and headers; bodies of errors are returned."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\n"
    async with Server(response(b"no", HTML, status="404 Not Found"), head, response(b"yes", HTML)) as server:
        fetcher = make_fetcher()
        wrong = request_to(server, forwarded=True, method="OPTIONS")
        wrong.add_header("User-Agent", "other")
        assert (await get(fetcher, wrong)).body == b"no"
        assert server.requests[0].startswith("OPTIONS / HTTP/1.1\r\n")
        names = sorted(line.partition(":")[0] for line in server.requests[0].split("\r\n")[1:-2])
        assert names == ["Host", "User-Agent"]
        found = await get(fetcher, request_to(server, forwarded=True, method="HEAD"))
        assert (found.status, found.reason, found.body) == (200, "", b"")
        assert (await get(fetcher, request_to(server, forwarded=True))).body == b"yes"
        assert server.connections == 1


# Connections


async def test_sent_is_said(make_fetcher: MakeFetcher) -> None:
    """Once per order, when the request has been written, on a new connection and on a kept one; not when nobody could
    be dialled."""
    said: list[str] = []
    async with Server(response(PAGE, HTML), response(PAGE, HTML)) as server:
        fetcher = make_fetcher()
        for number in range(2):
            await get(fetcher, request_to(server, on_sent=lambda number=number: said.append(f"sent {number}")))
            said.append(f"done {number}")
    assert said == ["sent 0", "done 0", "sent 1", "done 1"]
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        target = TargetUrl(f"http://site.test:{nobody.getsockname()[1]}/")
        await get(fetcher, request_at(target, ("127.0.0.1",), target.port, on_sent=lambda: said.append("never")))
    assert "never" not in said


async def test_keep_alive(make_fetcher: MakeFetcher) -> None:
    """A connection serves fetch after fetch."""
    async with Server(response(b"x", HTML)) as server:
        fetcher = make_fetcher()
        for _ in range(5):
            assert (await get(fetcher, request_to(server))).body == b"x"
        assert (server.connections, len(server.requests)) == (1, 5)


async def test_connection_close(make_fetcher: MakeFetcher) -> None:
    """A server that says close is not asked again on that connection."""
    async with Server(response(b"x", HTML, "Connection: close"), close=True) as server:
        fetcher = make_fetcher()
        for _ in range(2):
            assert (await get(fetcher, request_to(server))).body == b"x"
        assert server.connections == 2


async def test_stale_connection(make_fetcher: MakeFetcher) -> None:
    """A kept connection that dies before the first byte is told as such and not sent again: the server may have read
    it, and the host's delay lies between two requests. On a new connection the same is a plain disconnect."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with Server(response(b"x", HTML), hang_up, hang_up, response(b"again", HTML)) as server:
        fetcher = make_fetcher()
        await get(fetcher, request_to(server))
        assert (await get(fetcher, request_to(server))).reason == "stale"
        assert len(server.requests) == 2
        assert (await get(fetcher, request_to(server))).reason == "disconnected"
        assert (await get(fetcher, request_to(server))).body == b"again"


async def test_server_that_speaks_out_of_turn(make_fetcher: MakeFetcher) -> None:
    """What comes on an idle connection is no answer to the next request."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"first", HTML))
        await writer.drain()
        await asked_again.wait()
        writer.write(response(b"forged", HTML))

    asked_again = asyncio.Event()
    async with Server(talk, response(b"second", HTML)) as server:
        fetcher = make_fetcher()
        assert (await get(fetcher, request_to(server))).body == b"first"
        asked_again.set()
        await server.lost.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert (await get(fetcher, request_to(server))).body == b"second"


async def test_silent_address_first(make_fetcher: MakeFetcher) -> None:
    """An address that takes no connection within the limit is followed by the next."""
    async with Server(response(b"x", HTML)) as server:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.2", server.port))
            deaf.listen(0)
            fillers = []
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.2", server.port))
                fillers.append(filler)
            target = TargetUrl(f"http://x.test:{server.port}/")
            what = request_at(target, ("127.0.0.2", "127.0.0.1"), server.port)
            answer = await get(make_fetcher(connect_timeout_s=0.5), what)
            for filler in fillers:
                filler.close()
        assert (answer.body, answer.address) == (b"x", "127.0.0.1")


async def test_reset_before_answer(make_fetcher: MakeFetcher) -> None:
    """A new connection that dies before the first byte is reported, not tried for ever."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with Server(hang_up) as server:
        answer = await get(make_fetcher(), request_to(server))
        assert (answer.reason, answer.status) == ("disconnected", 0)


async def test_errors_keep_the_connection(make_fetcher: MakeFetcher) -> None:
    """The short body of a 404 is drained, so its connection goes on."""
    async with Server(response(b"gone", HTML, status="404 Not Found"), response(b"x", HTML)) as server:
        fetcher = make_fetcher()
        answer = await get(fetcher, request_to(server))
        assert (answer.status, answer.reason, answer.body) == (404, "", b"")
        assert (await get(fetcher, request_to(server))).body == b"x"
        assert server.connections == 1


async def test_error_with_a_broken_body(make_fetcher: MakeFetcher) -> None:
    """The status of an error counts even where its body breaks off."""
    data = response(b"gone", HTML, "Content-Length: 99", status="500 Oops", length=False)
    answer = await fetch(make_fetcher, data, close=True)
    assert (answer.status, answer.reason) == (500, "")


async def test_error_with_a_huge_body(make_fetcher: MakeFetcher) -> None:
    """Nobody reads the megabytes of a 404."""
    answer = await fetch(make_fetcher, response(b"x" * 3_000_000, HTML, status="404 Not Found"))
    assert (answer.status, answer.reason) == (404, "")


async def test_hosts_do_not_share(make_fetcher: MakeFetcher) -> None:
    """Two hosts on one address are asked by their own names."""
    async with Server(response(b"x", HTML)) as server:
        fetcher = make_fetcher()
        await get(fetcher, request_to(server, host="one.test"))
        await get(fetcher, request_to(server, host="two.test"))
        assert [
            f"Host: {host}:{server.port}\r\n" in head
            for host, head in zip(("one.test", "two.test"), server.requests, strict=True)
        ] == [True, True]


async def test_refused(make_fetcher: MakeFetcher) -> None:
    """Nobody listens: connect."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answer = await get(make_fetcher(), request_at(TargetUrl(f"http://x.test:{port}/"), ("127.0.0.1",), port))
    assert (answer.reason, answer.status) == ("connect", 0)
    assert answer.detail


async def test_next_address(make_fetcher: MakeFetcher) -> None:
    """An address that refuses is followed by the next."""
    async with Server(response(b"x", HTML)) as server:
        target = TargetUrl(f"http://x.test:{server.port}/")
        answer = await get(make_fetcher(), request_at(target, ("127.0.0.9", "127.0.0.8", "127.0.0.1"), server.port))
        assert (answer.body, answer.address) == (b"x", "127.0.0.1")


async def test_three_addresses_at_most(make_fetcher: MakeFetcher) -> None:
    """A fourth address is not dialled."""
    async with Server(response(b"x", HTML)) as server:
        target = TargetUrl(f"http://x.test:{server.port}/")
        addresses = ("127.0.0.9", "127.0.0.8", "127.0.0.7", "127.0.0.1")
        assert (await get(make_fetcher(), request_at(target, addresses, server.port))).reason == "connect"


async def test_https(make_fetcher: MakeFetcher) -> None:
    """https, kept alive, large bodies included."""
    body = b"y" * 600_000
    async with Server(response(b"x", HTML), response(body, HTML), tls=True) as server:
        fetcher = make_fetcher()
        assert (await get(fetcher, request_to(server, host="tls.test", scheme="https"))).body == b"x"
        assert (await get(fetcher, request_to(server, host="tls.test", scheme="https"))).body == body
        assert server.connections == 1


async def test_a_certificate_speaks_for_its_name_only(make_fetcher: MakeFetcher) -> None:
    """Two https names on one address never share a connection: it was checked for one of them."""
    async with Server(response(b"x", HTML), tls=True) as server:
        fetcher = make_fetcher()
        for host in ("one.test", "two.test", "one.test"):
            assert (await get(fetcher, request_to(server, host=host, scheme="https"))).body == b"x"
        assert server.connections == 2


async def test_bad_certificate(make_fetcher: MakeFetcher) -> None:
    """A certificate nobody vouches for: tls."""
    async with Server(response(b"x", HTML), tls=True) as server:
        answer = await get(make_fetcher(tls_verify=True), request_to(server, host="tls.test", scheme="https"))
        assert answer.reason == "tls"
        assert "certificate" in answer.detail


async def test_no_tls_there(make_fetcher: MakeFetcher) -> None:
    """https to a server that does not speak it: tls."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass
        finally:
            closed.set()

    closed = asyncio.Event()
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    answer = await get(make_fetcher(), request_at(TargetUrl(f"https://x.test:{port}/"), ("127.0.0.1",), port))
    assert answer.reason == "tls"
    await closed.wait()
    server.close()
    await server.wait_closed()


async def test_abort(make_fetcher: MakeFetcher) -> None:
    """An aborted fetch closes its connection and says nothing."""

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Server(silent) as server:
        answers: list[HttpResponse] = []
        handle = make_fetcher().fetch(request_to(server), answers.append)
        await server.asked.wait()
        handle.abort()
        handle.abort()
        await server.lost.wait()
        assert answers == []


async def test_never_done_before_fetch_returns(make_fetcher: MakeFetcher) -> None:
    """`on_done` may order the next fetch, ten times in a row."""
    async with Server(response(b"x", HTML)) as server:
        fetcher, done, answers = make_fetcher(), asyncio.Event(), []

        def on_done(answer: HttpResponse) -> None:
            answers.append(answer.body)
            if len(answers) < 10:
                before = len(answers)
                fetcher.fetch(request_to(server), on_done)
                assert len(answers) == before
            else:
                done.set()

        fetcher.fetch(request_to(server), on_done)
        await done.wait()
        assert (answers, server.connections) == ([b"x"] * 10, 1)


# Content types


@pytest.mark.parametrize(
    "wanted",
    [
        "text/html",
        "TEXT/Plain;charset=x",
        "application/xhtml+xml",
        "application/rss+xml",
        "text/xml",
        "application/ld+json",
        "application/pdf",
        "",
    ],
)
async def test_wanted_types(make_fetcher: MakeFetcher, wanted: str) -> None:
    """Documents are downloaded, and what says nothing of itself."""
    answer = await fetch(make_fetcher, response(b"x", *([f"Content-Type: {wanted}"] if wanted else [])))
    assert (answer.reason, answer.body) == ("", b"x")


@pytest.mark.parametrize(
    "unwanted",
    [
        "image/png",
        "image/svg+xml",
        "audio/mpeg",
        "video/mp4",
        "application/zip",
        "application/octet-stream",
        "text/css",
        "text/javascript",
        "application/javascript",
    ],
)
async def test_unwanted_types(make_fetcher: MakeFetcher, unwanted: str) -> None:
    """Other things are stopped after the headers, and the connection is closed."""

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"", f"Content-Type: {unwanted}", length=False))
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with Server(endless) as server:
        answer = await get(make_fetcher(), request_to(server))
        assert (answer.reason, answer.status, answer.body) == ("content_type", 200, b"")
        await server.lost.wait()


async def test_any_type(make_fetcher: MakeFetcher) -> None:
    """A seed is fetched whatever it is."""
    assert (await fetch(make_fetcher, response(b"x", "Content-Type: image/png"), any_type=True)).body == b"x"


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_an_order_with_its_own_limit(make_fetcher: MakeFetcher, coding: str) -> None:
    """`max_bytes` stands in for the limits of the configuration, wider or narrower, on the wire and decoded."""
    body = b"".join(b"%d\n" % n for n in range(300))
    headers = ("Content-Encoding: gzip",) if coding else ()
    wire = gzip.compress(body) if coding else body
    for limit, reason in ((len(body), ""), (len(body) - 1, "too_large")):
        narrow = {"max_wire_bytes": 100, "max_body_bytes": 100}
        answer = await fetch(make_fetcher, response(wire, HTML, *headers), config=narrow, max_bytes=limit)
        assert (answer.reason, answer.body) == (reason, b"" if reason else body)


# Content codings


def raw_deflate(data: bytes) -> bytes:
    """Deflate without the zlib header."""
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


CODED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE),
    "deflate": zlib.compress(PAGE),
    "Deflate": raw_deflate(PAGE),
    "br": brotli.compress(PAGE),
    "zstd": zstandard.compress(PAGE),
    "gzip, gzip": gzip.compress(gzip.compress(PAGE)),
    "gzip, br": brotli.compress(gzip.compress(PAGE)),
    "identity": PAGE,
    "utf-8": PAGE,
}


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_codings(make_fetcher: MakeFetcher, coding: str, framing: str) -> None:
    """Every coding comes off, under every framing; wire bytes are counted as they came."""
    wire = CODED[coding]
    header = f"Content-Encoding: {coding}"
    if framing == "length":
        data = response(wire, HTML, header)
    elif framing == "chunked":
        pieces = [wire[at : at + 7] for at in range(0, len(wire), 7)]
        data = response(b"", HTML, header, "Transfer-Encoding: chunked", length=False) + chunked(*pieces)
    else:
        data = response(wire, HTML, header, length=False)
    answer = await fetch(make_fetcher, data, close=framing == "close")
    assert (answer.reason, answer.detail) == ("", "")
    assert answer.body == PAGE
    assert answer.wire_bytes == len(wire)


async def test_gzip_members(make_fetcher: MakeFetcher) -> None:
    """gzip of several members is one body; padding behind it is nothing."""
    wire = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 20
    assert (await fetch(make_fetcher, response(wire, HTML, "Content-Encoding: gzip"))).body == b"one two"


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_stream_without_its_checksum_is_whole(make_fetcher: MakeFetcher, coding: str, framing: str) -> None:
    """A deflate stream that has ended is the body, whatever part of its trailer is missing or wrong, as in browsers."""
    wire, size = CODED[coding], 8 if coding == "gzip" else 4
    for torn in [wire[: len(wire) - cut] for cut in range(1, size + 1)] + [wire[:-size] + b"\1" * size]:
        head = f"Content-Encoding: {coding}"
        data = response(torn, HTML, head)
        if framing == "chunked":
            pieces = chunked(*(torn[at : at + 1] for at in range(len(torn))))
            data = response(b"", HTML, head, "Transfer-Encoding: chunked", length=False) + pieces
        answer = await fetch(make_fetcher, data)
        assert (answer.reason, answer.body) == ("", PAGE)


async def test_gzip_headers_with_optional_fields(make_fetcher: MakeFetcher) -> None:
    """Extra field, name, comment and checksum of a header are skipped, however they are cut."""
    plain = gzip.compress(PAGE, mtime=0)
    fields = b"\x03\0abc" + b"name\0" + b"comment\0" + b"\1\2"
    wire = plain[:3] + b"\x1e" + plain[4:10] + fields + plain[10:]
    pieces = chunked(*(wire[at : at + 1] for at in range(len(wire))))
    head = response(b"", HTML, "Content-Encoding: gzip", "Transfer-Encoding: chunked", length=False)
    assert (await fetch(make_fetcher, head + pieces)).body == PAGE
    endless = plain[:3] + b"\x08" + plain[4:10] + b"n" * 9_000 + plain[10:]
    assert (await fetch(make_fetcher, response(endless, HTML, "Content-Encoding: gzip"))).reason == "encoding"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_broken_coding(make_fetcher: MakeFetcher, coding: str) -> None:
    """Garbage, and a stream that ends early, are failures of encoding."""
    assert (
        await fetch(make_fetcher, response(b"\x05garbage" * 9, HTML, f"Content-Encoding: {coding}"))
    ).reason == "encoding"
    torn = CODED[coding][:-9]
    assert (await fetch(make_fetcher, response(torn, HTML, f"Content-Encoding: {coding}"))).reason == "encoding"


async def test_unknown_coding(make_fetcher: MakeFetcher) -> None:
    """A coding nobody knows, or three of them, are failures of encoding."""
    for coding in ("compress", "gzip, gzip, gzip"):
        assert (await fetch(make_fetcher, response(PAGE, HTML, f"Content-Encoding: {coding}"))).reason == "encoding"


async def test_coded_nothing(make_fetcher: MakeFetcher) -> None:
    """An empty body needs no coding."""
    answer = await fetch(make_fetcher, response(b"", HTML, "Content-Encoding: gzip"))
    assert (answer.reason, answer.body) == ("", b"")


async def test_raw_capture(make_fetcher: MakeFetcher) -> None:
    """Request head, response head and the body as it came are kept when asked for."""
    wire = gzip.compress(PAGE)
    answer = await fetch(make_fetcher, response(wire, HTML, "Content-Encoding: gzip"), config={"raw_capture": True})
    assert answer.wire_body == wire
    assert answer.body == PAGE
    assert answer.request_head.startswith(b"GET / HTTP/1.1\r\n")
    assert answer.request_head.endswith(b"\r\n\r\n")
    assert answer.response_head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Encoding: gzip\r\n" in answer.response_head
    plain = await fetch(make_fetcher, response(PAGE, HTML), config={"raw_capture": True})
    assert (plain.wire_body, plain.body) == (None, PAGE)


# Limits


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_too_large_on_the_wire(make_fetcher: MakeFetcher, framing: str) -> None:
    """A body beyond the limit is cut off, by its announcement where there is one."""
    body = b"x" * 200_000
    if framing == "length":
        data = response(body, HTML)
    elif framing == "chunked":
        data = response(b"", HTML, "Transfer-Encoding: chunked", length=False) + chunked(body)
    else:
        data = response(body, HTML, length=False)
    answer = await fetch(make_fetcher, data, config={"max_wire_bytes": 100_000}, close=True)
    assert (answer.reason, answer.body) == ("too_large", b"")
    assert answer.wire_bytes <= 100_000 + 262_144


async def test_too_large_decoded(make_fetcher: MakeFetcher) -> None:
    """Few bytes that become many are cut off."""
    data = response(gzip.compress(b"x" * 300_000), HTML, "Content-Encoding: gzip")
    answer = await fetch(make_fetcher, data, config={"max_body_bytes": 100_000})
    assert (answer.reason, answer.body) == ("too_large", b"")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_bomb(make_fetcher: MakeFetcher, coding: str) -> None:
    """A bomb costs neither its memory nor its time: the ratio or the size stops it."""
    megabytes = 64
    if coding == "br":
        wire = brotli.compress(b"\0" * (megabytes << 20), quality=5)
    elif coding == "zstd":
        wire = zstandard.compress(b"\0" * (megabytes << 20))
    elif coding == "deflate":
        wire = zlib.compress(b"\0" * (megabytes << 20))
    else:
        wire = gzip.compress(b"\0" * (megabytes << 20))
        if "," in coding:
            wire = gzip.compress(wire)
    async with Server(response(wire, HTML, f"Content-Encoding: {coding}")) as server:
        fetcher = make_fetcher()
        tracemalloc.start()
        try:
            answer = await get(fetcher, request_to(server))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (answer.reason, answer.body) == ("too_large", b"")
    assert peak < 24 << 20  # 250 times the 64 KiB that came at once, and a piece


async def test_endless_body(make_fetcher: MakeFetcher) -> None:
    """A body that never ends is cut off at the limit."""

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"", HTML, length=False))
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with Server(endless) as server:
        answer = await get(make_fetcher(max_wire_bytes=1 << 20), request_to(server))
        assert answer.reason == "too_large"
        await server.lost.wait()


async def test_announced_ten_gigabytes(make_fetcher: MakeFetcher) -> None:
    """An announcement of 10 GB ends the fetch before the first byte of it."""
    answer = await fetch(make_fetcher, response(b"x", HTML, "Content-Length: 10000000000", length=False))
    assert (answer.reason, answer.wire_bytes) == ("too_large", 0)


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_keep(make_fetcher: MakeFetcher, coding: str) -> None:
    """With `keep`, so many decoded bytes are taken and the rest is not read; that is no failure."""

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            response(b"", "Content-Type: image/png", *([f"Content-Encoding: {coding}"] if coding else []), length=False)
        )
        compressor = zlib.compressobj(wbits=31)
        while True:
            data = b"robots!\n" * 9_000
            if coding:
                data = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0)  # compressed, it does not fill the buffers that would make it wait

    async with Server(endless) as server:
        answer = await get(make_fetcher(), request_to(server, keep=512_000, any_type=True))
        assert (answer.reason, answer.status, len(answer.body)) == ("", 200, 512_000)
        assert answer.body.startswith(b"robots!\n")
        await server.lost.wait()


async def test_keep_of_a_short_one(make_fetcher: MakeFetcher) -> None:
    """What is shorter than `keep` comes whole and keeps its connection."""
    async with Server(response(b"User-agent: *", "Content-Type: text/plain")) as server:
        fetcher = make_fetcher()
        for _ in range(2):
            assert (await get(fetcher, request_to(server, keep=512_000, any_type=True))).body == b"User-agent: *"
        assert server.connections == 1


# Time


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await reader.read()


def stalls(*parts: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Says this much, then nothing."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(parts))
        await reader.read()

    return talk


def drips(start: bytes, drop: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Says a little, again and again, too slowly ever to end."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.01)

    return talk


TIMES = [
    ("headers", silent, {"headers_timeout_s": 0.1}),
    ("headers", stalls(b"HTTP/1.1 200 OK\r\nX: "), {"headers_timeout_s": 0.1}),
    ("headers", drips(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), {"headers_timeout_s": 0.15}),
    ("body: no byte", stalls(response(b"some", HTML, "Content-Length: 9", length=False)), {"idle_timeout_s": 0.1}),
    ("body: no byte", stalls(response(b"some", HTML, length=False)), {"idle_timeout_s": 0.1}),
    ("body: not complete", drips(response(b"", HTML, length=False), b"x"), {"body_timeout_s": 0.15}),
    ("body: not complete", drips(response(b"", "Content-Length: 9999", length=False), b"x"), {"body_timeout_s": 0.1}),
    ("total", drips(response(b"", HTML, length=False), b"x"), {"total_timeout_s": 0.4}),
]  # fmt: skip


@pytest.mark.parametrize(("phase", "talk", "limits"), TIMES)
async def test_time_limits(make_fetcher: MakeFetcher, phase: str, talk: Any, limits: dict[str, float]) -> None:
    """Each phase has its limit; the detail says which one passed, and the connection is closed."""
    async with Server(talk) as server:
        answer = await get(make_fetcher(**limits), request_to(server))
        assert answer.reason == "timeout"
        assert answer.detail.startswith(phase)
        assert answer.body == b""
        # On a machine that stands still all of the time may pass before the server hears of anything.
        if server.connections:
            await server.lost.wait()


async def test_connect_limit(make_fetcher: MakeFetcher) -> None:
    """A server that takes no connection within the limit: timeout, phase connect."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):  # the queue of the listener is full, further SYNs are not answered
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        answer = await get(
            make_fetcher(connect_timeout_s=0.1), request_at(TargetUrl(f"http://x.test:{port}/"), ("127.0.0.1",), port)
        )
        for filler in fillers:
            filler.close()
    assert answer.reason == "timeout"
    assert answer.detail.startswith("connect")


async def test_error_that_drips(make_fetcher: MakeFetcher) -> None:
    """A 404 whose body never ends is a 404 when its time is over."""
    talk = drips(response(b"", HTML, status="404 Not Found", length=False), b"x")
    async with Server(talk) as server:
        answer = await get(make_fetcher(body_timeout_s=0.1), request_to(server))
        assert (answer.status, answer.reason) == (404, "")


async def test_idle_connections_expire() -> None:
    """A connection nobody uses is closed after keepalive_s."""
    async with Server(response(b"x", HTML)) as server:
        fetcher = NativeFetcher(settings(keepalive_s=0.05), SystemClock())
        await get(fetcher, request_to(server))
        assert fetcher.idle_connections == 1
        await server.lost.wait()
        assert fetcher.idle_connections == 0
        await fetcher.close()


async def test_pool_is_bounded() -> None:
    """Beyond pool_size the oldest idle connection goes."""
    async with Server(response(b"x", HTML)) as server:
        fetcher = NativeFetcher(settings(pool_size=2), SystemClock())
        for number in range(5):
            await get(fetcher, request_to(server, host=f"h{number}.test"))
        assert fetcher.idle_connections == 2
        await fetcher.close()
