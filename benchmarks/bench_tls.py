"""TLS session resumption: CPU of the fetcher and of the server per connection, full handshakes beside resumed ones.

usage: python -m benchmarks.bench_tls [--pages 3000] [--rounds 3]

A TLS server of its own (child process) closes each connection after one page of 20 KB, over TLS 1.3 with the RSA
certificate of the tests and over an ECDSA one. Each round runs both forms; the medians are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trustme
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.lean import LeanFetcher
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import Target
from nephila.downloader.http.tls import ResumingContext
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.process_setup import run_loop

PAGE = b"<p>0123456789abcdef</p>" * 900
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(PAGE) + PAGE
)
HOSTS = 50
AT_ONCE = 20


class ClosingServer(asyncio.Protocol):
    """Sends one page and closes; counts resumed handshakes."""

    handshakes = 0
    resumed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport
        self._seen = b""
        ClosingServer.handshakes += 1
        ClosingServer.resumed += transport.get_extra_info("ssl_object").session_reused

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._seen += data
        if b"\r\n\r\n" in self._seen:
            self._transport.write(ANSWER)  # type: ignore[attr-defined]
            self._transport.close()


async def serve(certificate: str) -> None:
    """Print the port; at the end of the input print the counts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(ClosingServer, "127.0.0.1", 0, ssl=context, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    counts = {"handshakes": ClosingServer.handshakes, "resumed": ClosingServer.resumed, "cpu_s": time.process_time()}
    print(json.dumps(counts), flush=True)
    os._exit(0)


async def fetch_all(port: int, pages: int, resume: bool) -> float:
    """CPU seconds of the fetches."""
    fetcher = LeanFetcher(DownloaderConfig(allow_private=True, tls_verify=False), SystemClock())
    if not resume:
        ResumingContext.keep_session = lambda *_: None  # type: ignore[method-assign,assignment]
    requests = [
        HttpRequest(target := Target(f"https://h{n % HOSTS}.test/"), direct_route(target, ("127.0.0.1",), port))
        for n in range(pages)
    ]
    done = asyncio.get_running_loop().create_future()
    left = len(requests)

    def on_done(response: HttpResponse) -> None:
        nonlocal left
        assert response.status == 200, response.detail
        left -= 1
        if requests:
            fetcher.fetch(requests.pop(), on_done)
        elif not left:
            done.set_result(None)

    start = time.process_time()
    for _ in range(AT_ONCE):
        fetcher.fetch(requests.pop(), on_done)
    await done
    spent = time.process_time() - start
    await fetcher.close()
    return spent


def one(certificate: str, pages: int, resume: bool) -> dict[str, float]:
    """One run with a server of its own; both in child processes."""
    words = [sys.executable, "-m", "benchmarks.bench_tls"]
    server = subprocess.Popen(
        [*words, "--serve", certificate], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    client = subprocess.run(
        [*words, "--fetch", port, "--pages", str(pages), *(["--resume"] if resume else [])],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    server.stdin.close()
    counts = json.loads(server.stdout.readline())
    server.wait()
    return {
        "client_ms": 1000 * float(client.stdout) / pages,
        "server_ms": 1000 * counts["cpu_s"] / pages,
        "resumed": counts["resumed"] / counts["handshakes"],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve")
    parser.add_argument("--fetch", type=int)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    if options.serve:
        run_loop(serve(options.serve))
        return
    if options.fetch:
        print(run_loop(fetch_all(options.fetch, options.pages, options.resume)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind in (trustme.KeyType.RSA, trustme.KeyType.ECDSA):
            path = str(Path(folder, f"{kind.name}.pem"))
            leaf = trustme.CA(key_type=kind).issue_cert("*.test", key_type=kind)
            leaf.private_key_and_cert_chain_pem.write_to_path(path)
            runs: dict[bool, list[dict[str, float]]] = {False: [], True: []}
            for _ in range(options.rounds):
                for resume in (False, True):
                    runs[resume].append(one(path, options.pages, resume))
            for resume, found in runs.items():
                client, server, share = (
                    statistics.median(run[key] for run in found) for key in ("client_ms", "server_ms", "resumed")
                )
                name = "resumed" if resume else "full"
                print(f"{kind.name:<6}{name:<9}client {client:.3f} ms  server {server:.3f} ms  resumed {share:.0%}")


if __name__ == "__main__":
    main()
