"""Rates of resources: bytes and requests below a prefix, given back with the rest of the wait."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.downloader.middleware import throttle
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.throttle import Throttle, parse_rate
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError

from tests.downloader.downloader_room import Room, answer


class Fetches:
    """A downloader that fetches one URL after the other."""

    def __init__(self, *rates: str, **settings: Any) -> None:
        self.room = Room(throttle=rates, **settings)
        self.number = 0

    async def fetch(self, url: str, size: int = 0, kind: FetchKind = FetchKind.UNSPECIFIED) -> float:
        """Seconds to wait; 0: it was fetched, with a body of this size."""
        self.number += 1
        self.room.request(url, url_key=self.number.to_bytes(16), kind=kind)
        await self.room.settle()
        if self.room.fetcher.fetches:
            reply = answer(200, b"x", content_type="text/html")
            reply.wire_bytes = size
            self.room.fetcher.fetches.pop(0).on_done(reply)
            await self.room.settle()
            assert self.room.outcomes[-1].result == FetchResult.FETCHED
            return 0.0
        outcome = self.room.outcomes[-1]
        assert (outcome.result, outcome.reason, outcome.started_at) == (FetchResult.UNSPECIFIED, "throttle", 0.0)
        return outcome.retry_after_s


async def test_bytes_of_a_prefix() -> None:
    """After 3 MB at 1 MB/s the next request below the prefix waits for 3 s; other paths and hosts do not."""
    fetches = Fetches("a.test/files/ 1MB/s")
    await fetches.room.downloader.start()
    assert await fetches.fetch("http://a.test/files/1", 3_000_000) == 0
    assert await fetches.fetch("http://a.test/files/2") == pytest.approx(3.0)
    assert await fetches.fetch("http://a.test/page", 9_000_000) == 0
    assert await fetches.fetch("http://b.test/files/1", 9_000_000) == 0
    fetches.room.clock.advance(2)
    assert await fetches.fetch("https://a.test/files/2") == pytest.approx(1.0)
    fetches.room.clock.advance(1)
    assert await fetches.fetch("http://a.test/files/2") == 0
    await fetches.room.downloader.close()


async def test_requests_of_each_host() -> None:
    """30 requests a minute to each host by itself; an entry of a host is in the place of the one for all."""
    fetches = Fetches("* 30/min", "b.test/ 1/h", "b.test/api/ 2/s")
    await fetches.room.downloader.start()
    assert await fetches.fetch("http://a.test/1") == 0
    assert await fetches.fetch("http://a.test/2") == pytest.approx(2.0)
    assert await fetches.fetch("http://c.test/1") == 0
    assert await fetches.fetch("http://b.test/1") == 0
    assert await fetches.fetch("http://b.test/api/1") == 0
    fetches.room.clock.advance(2)
    assert await fetches.fetch("http://a.test/2") == 0
    assert await fetches.fetch("http://b.test/2") == pytest.approx(3598.0)
    assert await fetches.fetch("http://b.test/api/2") == 0
    await fetches.room.downloader.close()


async def test_both_rates_of_one_prefix() -> None:
    """Their times add up."""
    fetches = Fetches("a.test 10/s", "a.test 1KB/s")
    await fetches.room.downloader.start()
    assert await fetches.fetch("http://a.test/1", 1000) == 0
    assert await fetches.fetch("http://a.test/2") == pytest.approx(1.1)
    await fetches.room.downloader.close()


async def test_a_robots_txt_is_never_delayed() -> None:
    """It is counted, and pages wait for it."""
    fetches = Fetches("* 1/min")
    await fetches.room.downloader.start()
    for _ in range(2):
        assert await fetches.fetch("http://a.test/robots.txt", kind=FetchKind.ROBOTS) == 0
    assert await fetches.fetch("http://a.test/1") == pytest.approx(120.0)
    await fetches.room.downloader.close()


def test_memory_is_bounded_by_hosts_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts whose wait is over leave the table."""
    monkeypatch.setattr(throttle, "SWEEP", 100)
    clock = ManualClock()
    limit = Throttle(MiddlewareConfig(throttle=("* 1KB/s",)), clock)
    for number in range(1000):
        url = f"http://h{number}.test/"
        limit.on_outcome(FetchRequest(url=url), throttle.TargetUrl(url), FetchOutcome(wire_bytes=1000))
        clock.advance(0.1)
    assert len(limit._free_at) <= 110


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("https://A.test/x/ 500KB/s", ("a.test/x/", 500_000.0, 0.0)),
        ("a.test:8080 1.5/s", ("a.test:8080/", 0.0, 1.5)),
        ("* 90/min", ("", 0.0, 1.5)),
    ],
)
def test_entries(line: str, expected: tuple[str, float, float]) -> None:
    """Host and path; the scheme does not matter."""
    assert parse_rate(line) == expected


@pytest.mark.parametrize(
    "line", ["", "a.test", "a.test 5", "a.test 0/s", "a.test -1/s", "a.test 5KB/min", "a b 5/s", "[ 5/s"]
)
def test_entries_that_make_no_sense(line: str) -> None:
    """They are refused at the start."""
    with pytest.raises(UsageError, match="throttle"):
        parse_rate(line)
