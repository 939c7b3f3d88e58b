"""Large bodies of the native fetcher are reserved before they are read further."""

from __future__ import annotations

import asyncio

import pytest
from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.native import NativeFetcher
from nephila.kernel.process.container import Usage
from nephila.kernel.process.memory_budget import BODY_FACTOR, MemoryBudget, Reservation, ReservationKind
from nephila.kernel.runtime.clock import SystemClock

from tests.contracts.fetcher_server import Server, chunked, get, request_to, response
from tests.fetcher_fixtures import settings

MIB = 1 << 20
HTML = "Content-Type: text/html"
BODY = b"0123456789abcdef" * (MIB // 16)
KNOWN = response(BODY, HTML)
CHUNKED = response(b"", HTML, "Transfer-Encoding: chunked", length=False) + chunked(BODY[: MIB // 2], BODY[MIB // 2 :])
BODIES = pytest.mark.parametrize("data", [KNOWN, CHUNKED], ids=["known length", "unknown length"])


class Line:
    """A fetcher in a container of 100 MiB, of which another body holds 89."""

    def __init__(self, **changes: float) -> None:
        clock = SystemClock()
        self.budget = MemoryBudget(clock, lambda: Usage(0, 100 * MIB, 0.0, 1.0))
        self.fetcher = NativeFetcher(settings(**changes), clock, self.budget)
        self.other: Reservation = self.budget.open(ReservationKind.BODY)
        assert self.other.ask(89 * MIB, lambda _: None)

    async def waits(self) -> None:
        """Return when a body waits for memory."""
        while not self.budget.waiting:  # noqa: ASYNC110 - the budget has no event
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Nothing stays reserved."""
        self.other.release()
        assert (self.budget.outstanding_bytes, self.budget.waiting) == (0, 0)
        await self.fetcher.close()
        self.budget.close()


@BODIES
async def test_a_body_continues_when_its_memory_is_free(data: bytes) -> None:
    """It is reserved until its receiver releases it."""
    line = Line()
    async with Server(data) as server:
        fetch = asyncio.ensure_future(get(line.fetcher, request_to(server)))
        await line.waits()
        line.other.release()
        answer = await fetch
    assert (answer.status, answer.reason, answer.body) == (200, "", BODY)
    assert answer.memory is not None
    assert 0.75 * BODY_FACTOR * MIB < answer.memory.granted_bytes <= BODY_FACTOR * MIB
    answer.memory.release()
    await line.close()


@BODIES
async def test_a_body_without_memory_ends_at_the_time_limit(data: bytes) -> None:
    """The reason is memory: the server is not slow."""
    line = Line(total_timeout_s=0.3, idle_timeout_s=0.1)
    async with Server(data) as server:
        answer = await get(line.fetcher, request_to(server))
    assert (answer.reason, answer.memory, answer.body) == ("memory", None, b"")
    await line.close()


async def test_an_aborted_fetch_stops_its_wait() -> None:
    """Its reservation is released, and nothing is reported."""
    line, answers = Line(), list[HttpResponse]()
    async with Server(CHUNKED) as server:
        handle = line.fetcher.fetch(request_to(server), answers.append)
        await line.waits()
        handle.abort()
        await server.lost.wait()
    assert answers == []
    await line.close()
