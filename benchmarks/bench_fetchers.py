"""CPU of this process per fetch: aiohttp and native in turn, 100 hosts, 100 at once, pages of 79 KB on loopback.

The server is a process of its own. All threads of this process count; DNS, steps and messages are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import random
import resource
import ssl
import subprocess
import sys
from pathlib import Path

import uvloop
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse
from nephila.downloader.http.fetchers import make_fetcher
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.runtime.clock import SystemClock

CERTIFICATE = Path(__file__).parents[1] / "tests" / "contracts" / "fetcher_server.pem"
HOSTS = 100
WARM_UP = 300


def page(coded: bool, close: bool) -> bytes:
    """One response."""
    chosen = random.Random(1)
    body = b" ".join(b"w%d" % chosen.randrange(99_999) for _ in range(13_500))[:79_000]
    lines = ["HTTP/1.1 200 OK", "Server: bench", "Content-Type: text/html; charset=utf-8", "Vary: Accept-Encoding"]
    if coded:
        body = gzip.compress(body, 6)
        lines.append("Content-Encoding: gzip")
    if close:
        lines.append("Connection: close")
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def serve(options: argparse.Namespace) -> None:
    """Answer every request with the page; the port is printed."""
    data = page(options.gzip, options.close)

    class Answer(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: asyncio.Transport = transport  # type: ignore[assignment]

        def data_received(self, received: bytes) -> None:
            if received.endswith(b"\r\n\r\n"):
                self.transport.write(data)
                if options.close:
                    self.transport.close()

    context = None
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    server = await asyncio.get_running_loop().create_server(Answer, "127.0.0.1", 0, ssl=context, backlog=500)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def cpu_s() -> float:
    """CPU seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def fetch_all(fetcher: Fetcher, requests: list[HttpRequest], count: int) -> int:
    """So many fetches, one at a time per request; returns the failed ones."""
    ended, started, left, failed = asyncio.Event(), 0, count, 0

    def go(place: int) -> None:
        nonlocal started
        started += 1
        fetcher.fetch(requests[place], lambda response: on_done(response, place))

    def on_done(response: HttpResponse, place: int) -> None:
        nonlocal left, failed
        left -= 1
        failed += bool(response.reason)
        if started < count:
            go(place)
        elif left == 0:
            ended.set()

    for place in range(len(requests)):
        go(place)
    await ended.wait()
    return failed


async def measure(kind: str, port: int, options: argparse.Namespace) -> None:
    """Print the CPU per page of one fetcher."""
    fetcher = make_fetcher(DownloaderConfig(allow_private=True, tls_verify=False, fetcher=kind), SystemClock())
    scheme = "https" if options.tls else "http"
    targets = [TargetUrl(f"{scheme}://h{number}.test:{port}/a/page") for number in range(HOSTS)]
    requests = [HttpRequest(target, direct_route(target, ("127.0.0.1",), port)) for target in targets]
    await fetch_all(fetcher, requests, WARM_UP)
    before = cpu_s()
    failed = await fetch_all(fetcher, requests, options.pages)
    spent = cpu_s() - before
    await fetcher.close()
    print(f"{kind:8} {1000 * spent / options.pages:.4f} CPU-ms/page, {failed} failed", flush=True)


def main() -> None:
    """Three rounds of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("gzip", "close", "tls", "serve"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--pages", type=int, default=3000)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(options))
        return
    command = [sys.executable, "-m", "benchmarks.bench_fetchers", "--serve", *sys.argv[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            for _ in range(3):
                for kind in ("aiohttp", "native"):
                    uvloop.run(measure(kind, port, options))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
