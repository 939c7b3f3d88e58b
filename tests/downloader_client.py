"""A whole downloader on a bus of its own: URLs go in, outcomes come out."""

from __future__ import annotations

import asyncio
from typing import Any

from nephila.downloader.service import build
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import OUTCOMES, REQUESTS

from tests.downloader_settings import downloader_config


async def outcomes(*urls: str, kind: FetchKind = FetchKind.UNSPECIFIED, **settings: Any) -> list[FetchOutcome]:
    """Fetch these URLs of bad.test one after the other; the bus is empty afterwards."""
    clock = SystemClock()
    bus = LocalBus(clock)
    downloader = build(downloader_config(**{"allow_private": True, **settings}), bus, clock)
    got: asyncio.Queue[FetchOutcome] = asyncio.Queue()

    def on_outcome(delivery: Delivery) -> None:
        got.put_nowait(delivery.message)
        delivery.ack()

    bus.subscribe(OUTCOMES, "test", on_outcome, credits=10)
    await downloader.start()
    found = []
    for url in urls:
        bus.publish(REQUESTS, 0, FetchRequest(url=url, host="bad.test", kind=kind))
        found.append(await asyncio.wait_for(got.get(), 60))
    await downloader.close()
    assert bus.unacked == 0
    return found
