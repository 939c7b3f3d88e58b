"""Memory of the downloader over HTTPS from servers that close each connection; it has to stay flat.

usage: python -m benchmarks.bench_tls_memory [--pages 35000] [--hosts 100] [--fetcher lean|aiohttp]
       python -m benchmarks.bench_tls_memory --plot RESULT PNG

A TLS server of its own (a child process on the other core, certificate of the tests) sends a page of 20 KB and closes.
Prints resident memory every 5,000 pages, CPU-ms per fetch, and the rise of memory after the first 5,000. `--plot` draws
a file of `results/`: the lines of one run or more, each after a line `## NAME`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import ssl
import subprocess
import sys
import time
from pathlib import Path

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchRequest, FetchResult
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.process_setup import run_loop
from nephila.kernel.topics import OUTCOMES, PAGES, REQUESTS

from benchmarks import measure

CERTIFICATE = Path(__file__).resolve().parents[1] / "tests/contracts/fetcher_server.pem"
PAGE = b"<p>0123456789abcdef</p>" * 900
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(PAGE) + PAGE
)
AT_ONCE = 100
STEP = 5_000
_ROW = re.compile(r"^ *([\d,]+) pages +([\d.]+) MB", re.MULTILINE)


class ClosingServer(asyncio.Protocol):
    """Answers the first request of a connection and closes it."""

    def __init__(self) -> None:
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._seen += data
        if b"\r\n\r\n" in self._seen:
            self._transport.write(ANSWER)  # type: ignore[attr-defined]
            self._transport.close()


async def serve() -> None:
    """Print the port and serve until the process is ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(ClosingServer, "127.0.0.1", 0, ssl=context, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def fetch_all(port: int, pages: int, hosts: int, fetcher: str) -> list[tuple[int, float]]:
    """Fetch that many pages; returns (pages fetched, resident MB) for every `STEP` and prints them."""
    clock = SystemClock()
    bus = LocalBus(clock)
    config = DownloaderConfig(
        fetcher=fetcher,
        allow_private=True,
        tls_verify=False,
        per_address=0,
        address_gap_s=0,
        concurrency=AT_ONCE,
        host_map=(f"*.test=127.0.0.1:{port}",),
    )
    downloader = build(config, bus, clock)
    done = asyncio.Event()
    found: list[tuple[int, float]] = []
    sent = ended = failed = 0

    def send() -> None:
        nonlocal sent
        host = f"h{sent % hosts}.test"
        bus.publish(REQUESTS, 0, FetchRequest(url=f"https://{host}/p/{sent}", host=host, start_by=clock.now() + 60))
        sent += 1

    def on_outcome(delivery: Delivery) -> None:
        nonlocal ended, failed
        ended += 1
        failed += delivery.message.result != FetchResult.FETCHED
        delivery.ack()
        if ended % STEP == 0 or ended == pages:
            found.append((ended, measure.rss_mb(os.getpid())))
            print(f"  {ended:7,} pages  {found[-1][1]:7.1f} MB  {failed} failed", flush=True)
        if sent < pages:
            send()
        elif ended == pages:
            done.set()

    bus.subscribe(PAGES, "parser", lambda delivery: delivery.ack(), credits=1_000)
    bus.subscribe(OUTCOMES, "scheduler", on_outcome, credits=1_000)
    await downloader.start()
    for _ in range(min(AT_ONCE, pages)):
        send()
    await done.wait()
    await downloader.close()
    return found


def plot(result: Path, image: Path) -> None:
    """Draw memory by pages, a curve per run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.2))
    for run in result.read_text().split("## ")[1:]:
        rows = [(int(row[1].replace(",", "")), float(row[2])) for row in _ROW.finditer(run)]
        axes.plot(*zip(*rows, strict=True), marker="o", label=run.partition("\n")[0].partition(" (")[0])
    axes.set(xlabel="HTTPS pages, each on a connection of its own", ylabel="resident MB", ylim=0)
    axes.legend()
    figure.tight_layout()
    figure.savefig(image, dpi=80)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=35_000)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--fetcher", default="lean")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--plot", type=Path, nargs=2, metavar=("RESULT", "PNG"))
    options = parser.parse_args()
    if options.plot:
        plot(*options.plot)
        return
    if options.serve:
        run_loop(serve())
        return
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.bench_tls_memory", "--serve"], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        cpu = time.process_time()
        found = run_loop(fetch_all(port, options.pages, options.hosts, options.fetcher))
        cpu = time.process_time() - cpu
    finally:
        server.kill()
        server.wait()
    first, highest = found[0][1], max(memory for _, memory in found)
    print(f"{options.fetcher}: {cpu / options.pages * 1e3:.3f} CPU-ms a fetch; from {first:.1f} to {highest:.1f} MB")


if __name__ == "__main__":
    main()
