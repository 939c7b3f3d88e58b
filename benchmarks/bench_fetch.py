"""CPU per fetch of the whole downloader over the in-process bus, by fetcher; not collected by pytest.

    PYTHONPATH=services python benchmarks/bench_fetch.py lean 'http://h{host}.bench.test:8088/p/{number}.html'

{number} runs from 0 to 5999 and {host} is number % 100. Prints CPU-ms per fetch of this process alone: the
server should run on another core. `fresh` as a third word uses each connection once (lean only).
"""

from __future__ import annotations

import asyncio
import sys
import time

import uvloop
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.service import build
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchRequest, FetchResult
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import OUTCOMES, PAGES, REQUESTS

FETCHES = 12_000
PAGES_OF_THE_WEB = 6_000
AT_ONCE = 100


async def measure(fetcher: str, pattern: str, fresh: bool) -> str:
    """Fetch everything and say what it cost."""
    clock = SystemClock()
    bus = LocalBus(clock)
    config = DownloaderConfig(
        fetcher=fetcher,
        allow_private=True,
        per_address=0,
        address_gap_s=0,
        concurrency=AT_ONCE,
        pool_size=0 if fresh else 500,
    )
    downloader = build(config, bus, clock)
    done = asyncio.Event()
    sent = ended = failed = size = 0

    def send() -> None:
        nonlocal sent
        number = sent % PAGES_OF_THE_WEB
        sent += 1
        url = pattern.format(number=number, host=number % 100)
        bus.publish(REQUESTS, 0, FetchRequest(url=url, host=url.split("/")[2], start_by=clock.now() + 60))

    def on_page(delivery: Delivery) -> None:
        nonlocal size
        size += len(delivery.message.body)
        delivery.ack()

    def on_outcome(delivery: Delivery) -> None:
        nonlocal ended, failed
        ended += 1
        failed += delivery.message.result != FetchResult.FETCHED
        delivery.ack()
        if sent < FETCHES:
            send()
        elif ended == FETCHES:
            done.set()

    bus.subscribe(PAGES, "parser", on_page, credits=1_000)
    bus.subscribe(OUTCOMES, "scheduler", on_outcome, credits=1_000)
    await downloader.start()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(AT_ONCE):
        send()
    await done.wait()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    await downloader.close()
    return (
        f"{fetcher}: {cpu / FETCHES * 1e3:.4f} CPU-ms, {FETCHES / wall:.0f}/s, {size // FETCHES} bytes, {failed} failed"
    )


if __name__ == "__main__":
    print(uvloop.run(measure(sys.argv[1], sys.argv[2], "fresh" in sys.argv[3:])))
