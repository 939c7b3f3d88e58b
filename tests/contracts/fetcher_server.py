"""A scripted HTTP server on loopback: it says exactly the bytes a test wants, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CERTIFICATE = Path(__file__).with_name("fetcher_server.pem")


def response(body: bytes = b"", *headers: str, status: str = "200 OK", length: bool = True) -> bytes:
    """A well-formed HTTP/1.1 response."""
    lines = [f"HTTP/1.1 {status}", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """Chunks as RFC 9112 7.1 writes them."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


class Server:
    """Each request gets the next of `answers` (the last one again and again); bytes, or a coroutine that talks itself.

    Bytes are followed by a close when `close` is set or the head says so.
    """

    def __init__(
        self,
        *answers: bytes | Talk,
        close: bool = False,
        tls: bool | ssl.SSLContext = False,
        host: str = "127.0.0.1",
    ) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.lost = asyncio.Event()
        self.port = 0
        self._host = host
        self._close = close
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Server:
        context = self._tls if isinstance(self._tls, ssl.SSLContext) else None
        if self._tls is True:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
        self._server = await asyncio.start_server(self._on_connection, self._host, 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:  # one that nobody reads from would never flush
            writer.transport.abort()
        for _ in range(3):
            await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):  # seen once in thousands: uvloop waits on although no socket is left
            await asyncio.wait_for(self._server.wait_closed(), 10)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.append(writer)
        task.add_done_callback(self._tasks.discard)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head.decode("latin-1"))
                self.asked.set()
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if not isinstance(answer, bytes):
                    await answer(reader, writer)
                    break
                writer.write(answer)
                await writer.drain()
                if self._close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.lost.set()
            try:
                await writer.wait_closed()
            except (ConnectionError, ssl.SSLError, asyncio.CancelledError):
                pass


def request_to(
    server: Server, path: str = "/", host: str = "site.test", scheme: str = "http", user: str = "", **options: object
) -> HttpRequest:
    """A request for a path of the scripted server, under any host name."""
    target = TargetUrl(f"{scheme}://{user}{host}:{server.port}{path}")
    return HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port), **options)  # type: ignore[arg-type]


def request_at(target: TargetUrl, addresses: tuple[str, ...], port: int, **options: object) -> HttpRequest:
    """A request that is dialled at these addresses."""
    return HttpRequest(target, direct_route(target, addresses, port), **options)  # type: ignore[arg-type]


async def get(fetcher: Fetcher, what: HttpRequest) -> HttpResponse:
    """Wait for one answer."""
    future: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
    fetcher.fetch(what, future.set_result)
    return await future
