"""Large bodies are reserved before they are read: without memory the connection waits, and the server is not blamed."""

from __future__ import annotations

import pytest
from fetcher_server import response
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.lean import LeanFetcher
from nephila.downloader.http.lean_conn import Connection
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.outcome import outcome_of
from nephila.kernel.messages import FetchRequest, FetchResult
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.container import Usage
from nephila.kernel.runtime.memory_budget import BODY_FACTOR, POLL_S, MemoryBudget, ReservationKind

MIB = 1 << 20
KEY = ("127.0.0.1", 80, "a.test", "http")
TARGET = TargetUrl("http://a.test/")
BODY = b"0123456789abcdef" * (MIB // 16)
KNOWN = response(BODY)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%s\r\n" % (MIB // 16, BODY[at : at + MIB // 16]) for at in range(0, MIB, MIB // 16))
    + b"0\r\n\r\n"
)


class Wire:
    """A transport that is read only while it is not paused."""

    def __init__(self) -> None:
        self.paused = False

    def write(self, data: bytes) -> None:
        """See asyncio."""

    def abort(self) -> None:
        """See asyncio."""

    def is_closing(self) -> bool:
        """See asyncio."""
        return False

    def pause_reading(self) -> None:
        """See asyncio."""
        self.paused = True

    def resume_reading(self) -> None:
        """See asyncio."""
        self.paused = False


class Line:
    """A fetcher in a container of 100 MiB, whose connection ends at the test."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.budget = MemoryBudget(self.clock, lambda: Usage(0, 100 * MIB, 0.0, 1.0))
        self.fetcher = LeanFetcher(DownloaderConfig(), self.clock, self.budget)
        self.wire = Wire()
        self.connection = Connection(self.fetcher, KEY)
        self.connection.connection_made(self.wire)  # type: ignore[arg-type]
        self.fetcher._pool.put(KEY, self.connection, self.clock.monotonic())
        self.answers: list[HttpResponse] = []
        self.fetch = self.fetcher.fetch(
            HttpRequest(TARGET, direct_route(TARGET, ("127.0.0.1",), 80)), self.answers.append
        )

    def say(self, data: bytes) -> bytes:
        """The server sends this; what is not read before the connection waits."""
        while data and not self.wire.paused and not self.answers:
            view = self.connection.get_buffer(-1)
            size = min(len(view), len(data))
            view[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]
        return data


@pytest.mark.parametrize("data", [KNOWN, CHUNKED], ids=["known length", "unknown length"])
async def test_a_body_waits_for_memory(data: bytes) -> None:
    """It continues where it was when memory is free, and is reserved until its receiver releases it."""
    line = Line()
    other = line.budget.open(ReservationKind.BODY)
    assert other.ask(89 * MIB, lambda _: None)
    rest = line.say(data)
    assert len(rest) > MIB // 4
    assert line.fetch.waits_for_memory
    line.clock.advance(60)
    assert line.answers == []
    other.release()
    line.clock.advance(POLL_S)
    assert not line.fetch.waits_for_memory
    assert line.say(rest) == b""
    (answer,) = line.answers
    assert (answer.status, answer.reason, answer.body) == (200, "", BODY)
    assert answer.memory is not None
    assert answer.memory.granted_bytes == BODY_FACTOR * MIB
    answer.memory.release()
    assert line.budget.outstanding_bytes == 0
    await line.fetcher.close()


@pytest.mark.parametrize("data", [KNOWN, CHUNKED], ids=["known length", "unknown length"])
async def test_no_memory_until_the_time_limit(data: bytes) -> None:
    """The request is given back: no attempt is counted, and nothing stays reserved."""
    line = Line()
    other = line.budget.open(ReservationKind.BODY)
    assert other.ask(89 * MIB, lambda _: None)
    line.say(data)
    line.clock.advance(100)
    (answer,) = line.answers
    assert answer.reason == "memory"
    outcome = outcome_of(FetchRequest(), TARGET, answer, 1.0, 2.0)
    assert (outcome.result, outcome.reason) == (FetchResult.UNSPECIFIED, "memory")
    other.release()
    assert (line.budget.outstanding_bytes, line.budget.waiting) == (0, 0)
    await line.fetcher.close()


async def test_an_earlier_body_needs_the_memory() -> None:
    """The half of a body is given up for it."""
    line = Line()
    other = line.budget.open(ReservationKind.BODY)
    assert other.ask(80 * MIB, lambda _: None)
    end = CHUNKED.index(b"\r\n\r\n") + 4
    line.say(CHUNKED[:end] + 4 * CHUNKED[end:-5])
    assert line.fetch.waits_for_memory
    assert other.ask(200 * MIB, lambda _: None)
    line.clock.advance(1)
    (answer,) = line.answers
    assert answer.reason == "memory"
    other.release()
    assert line.budget.outstanding_bytes == 0
    await line.fetcher.close()


async def test_an_aborted_fetch_frees_its_memory() -> None:
    """Granted or waiting."""
    line = Line()
    line.say(CHUNKED[: MIB // 2])
    assert line.budget.outstanding_bytes > 0
    line.fetch.abort()
    assert line.budget.outstanding_bytes == 0
    await line.fetcher.close()


async def test_a_dripping_body_is_cut() -> None:
    """Below the minimum rate, after the time of silence that is allowed."""
    line = Line()
    line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    for _ in range(40):
        line.say(b"x")
        line.clock.advance(0.5)
    (answer,) = line.answers
    assert answer.reason == "timeout"
    assert answer.detail.startswith("body: under 100 bytes/s")
    await line.fetcher.close()
