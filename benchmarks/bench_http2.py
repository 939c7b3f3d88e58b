"""HTTP/2 beside HTTP/1.1: CPU of the client per page over one kept TLS connection on loopback.

usage: python -m benchmarks.bench_http2 [--pages 3000] [--rounds 3]

HTTP/1.1 is the lean fetcher; HTTP/2 is a client of the h2 library with the least work around it: HPACK, flow control
and the body, no limits, no decoding, no time limits. So the figure of HTTP/2 is a lower bound. Pages of 20 KB follow
each other, as on a host with one request at a time. The server (child process, h2 library or bytes) is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import statistics
import subprocess
import sys
import time

import h2.config
import h2.connection
import h2.events
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.lean import LeanFetcher
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import Target
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.process_setup import run_loop

from benchmarks.bench_tls_memory import CERTIFICATE

PAGE = b"<p>0123456789abcdef</p>" * 900
FIELDS = [
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", str(len(PAGE))),
    ("server", "bench"),
    ("date", "Sun, 22 Nov 2026 12:00:00 GMT"),
    ("cache-control", "max-age=60"),
    ("etag", '"0123456789"'),
]
ANSWER = "HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in FIELDS) + "\r\n"
WINDOW = 1 << 20


class Server(asyncio.Protocol):
    """Answers both protocols by ALPN."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._seen = b""
        self._h2: h2.connection.H2Connection | None = None
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
            self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
            self._h2.initiate_connection()
            self._transport.write(self._h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._h2 is None:
            self._seen += data
            while b"\r\n\r\n" in self._seen:
                _, _, self._seen = self._seen.partition(b"\r\n\r\n")
                self._transport.write(ANSWER.encode() + PAGE)
            return
        for event in self._h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self._h2.send_headers(event.stream_id, [(":status", "200"), *FIELDS])
                for at in range(0, len(PAGE), 16_384):
                    self._h2.send_data(event.stream_id, PAGE[at : at + 16_384], at + 16_384 >= len(PAGE))
        self._transport.write(self._h2.data_to_send())


async def serve() -> None:
    """Print the port and serve until the process is ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.set_alpn_protocols(["h2", "http/1.1"])
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Http2Client(asyncio.Protocol):
    """Requests one page after the other on one connection."""

    def __init__(self, pages: int) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = pages
        self._http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._parts: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._http.initiate_connection()
        self._http.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW})
        self._http.increment_flow_control_window(1 << 30)
        self._next()

    def _next(self) -> None:
        stream = self._http.get_next_available_stream_id()
        fields = [
            (":method", "GET"), (":scheme", "https"), (":authority", "site.test"), (":path", f"/page/{self._left}"),
            ("user-agent", "Nephila/0.1.0 (+https://nephila.dev/bot)"),
            ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("accept-encoding", "gzip, deflate, br, zstd"),
        ]  # fmt: skip
        self._http.send_headers(stream, fields, end_stream=True)
        self._parts = []

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        for event in self._http.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                self._parts.append(event.data)
            elif isinstance(event, h2.events.StreamEnded):
                assert len(b"".join(self._parts)) == len(PAGE)
                self._left -= 1
                if self._left:
                    self._next()
                else:
                    self.done.set_result(None)
        self._transport.write(self._http.data_to_send())


async def run_http2(port: int, pages: int) -> float:
    """CPU seconds of `pages` pages over HTTP/2."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    start = time.process_time()
    transport, client = await asyncio.get_running_loop().create_connection(
        lambda: Http2Client(pages), "127.0.0.1", port, ssl=context
    )
    await client.done
    transport.abort()
    return time.process_time() - start


async def run_http1(port: int, pages: int) -> float:
    """The same by the lean fetcher."""
    fetcher = LeanFetcher(DownloaderConfig(allow_private=True, tls_verify=False), SystemClock())
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = pages
    start = time.process_time()

    def fetch() -> None:
        target = Target(f"https://site.test/page/{left}")
        fetcher.fetch(HttpRequest(target, direct_route(target, ("127.0.0.1",), port)), on_done)

    def on_done(response: HttpResponse) -> None:
        nonlocal left
        assert len(response.body) == len(PAGE), response.detail
        left -= 1
        if left:
            fetch()
        else:
            done.set_result(None)

    fetch()
    await done
    spent = time.process_time() - start
    await fetcher.close()
    return spent


RUNS = {"HTTP/1.1, lean fetcher": run_http1, "HTTP/2, h2 library": run_http2}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        run_loop(serve())
        return
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.bench_http2", "--serve"], stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        found: dict[str, list[float]] = {name: [] for name in RUNS}
        for _ in range(options.rounds):
            for name, run in RUNS.items():
                found[name].append(1000 * run_loop(run(port, options.pages)) / options.pages)
        for name, times in found.items():
            print(f"{name:<24}{statistics.median(times):.3f} ms of CPU per page")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
