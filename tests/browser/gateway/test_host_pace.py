"""The rate of sub-requests on a host: a burst, then evenly spread, hosts apart."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_browser.gateway.host_pace import BURST_S, MAX_WAIT_S, BrowserHostPace
from nephila_browser.gateway.upstream import UpstreamRefused


async def settle() -> None:
    """Let tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_requests_are_spread_after_a_burst() -> None:
    clock = ManualClock()
    pace = BrowserHostPace(8, clock)
    sent: list[float] = []
    start = clock.monotonic()

    async def send() -> None:
        await pace.turn("a.test")
        sent.append(clock.monotonic() - start)

    tasks = [asyncio.ensure_future(send()) for _ in range(40)]
    await settle()
    burst = len(sent)
    assert burst == 8 * BURST_S + 1
    await pace.turn("b.test")  # another host does not wait
    for _ in range(20):
        clock.advance(0.125)
        await settle()
    assert len(sent) == 40
    assert sent[burst:] == [number / 8 for number in range(1, 16)]
    assert all(task.done() for task in tasks)


async def test_a_request_that_would_wait_for_too_long_is_refused() -> None:
    clock = ManualClock()
    pace = BrowserHostPace(1, clock)
    for _ in range(int(BURST_S + MAX_WAIT_S) + 1):
        pace.count("a.test")
    with pytest.raises(UpstreamRefused, match="1 requests per second"):
        await pace.turn("a.test")
    clock.advance(MAX_WAIT_S + BURST_S + 1)
    await pace.turn("a.test")


async def test_no_rate_is_no_limit() -> None:
    pace = BrowserHostPace(0, ManualClock())
    for _ in range(1000):
        await pace.turn("a.test")
