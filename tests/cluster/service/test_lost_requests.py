"""Requests of a member that ended without a word: which of them are reported, and how far the log is read for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.kernel.topics import OUTCOMES, REQUESTS
from nephila_cluster.service import lost_requests as module
from nephila_cluster.service.lost_requests import LostRequests


class Log:
    """Lanes of requests, a record for each; a lane has one partition, or all that are equal to it by `count`."""

    def __init__(self) -> None:
        self.first = 0
        self.count = 1 << 16
        self.partition_of = lambda request, lane: lane
        self.records: dict[int, list[FetchRequest]] = {}
        self.said: list[tuple[int, FetchOutcome]] = []
        self.read_records = 0
        self.error: Exception | None = None

    def publish(self, topic, partition, message) -> Receipt:
        """Only outcomes are."""
        assert topic is OUTCOMES
        self.said.append((partition, message))
        return Receipt()

    def lanes(self, topic, partitions):
        """Partition → its lane."""
        assert topic is REQUESTS
        return {p: p % self.count for p in partitions}

    async def bounds(self, topic, partitions):
        """What is there."""
        lanes = self.lanes(topic, partitions)
        return {p: (self.first, len(self.records[lane])) for p, lane in lanes.items()}

    async def read(self, topic, ranges) -> AsyncIterator:
        """A record at a time; a lane is read once for all its partitions."""
        lanes = self.lanes(topic, ranges)
        for lane in sorted(set(lanes.values())):
            starts, ends = zip(*(ranges[p] for p in lanes if lanes[p] == lane), strict=True)
            for offset in range(min(starts), max(ends)):
                if self.error is not None:
                    raise self.error
                self.read_records += 1
                request = self.records[lane][offset]
                p = self.partition_of(request, lane)
                if p in ranges and ranges[p][0] <= offset < ranges[p][1]:
                    yield p, [(offset, request)]


@pytest.fixture
def clock():
    """It stands still."""
    return ManualClock()


@pytest.fixture
def log():
    """Nothing was read yet."""
    return Log()


def request(clock, url: int, *, lease_s: float = 100.0, attempt: int = 1, kind=FetchKind.UNSPECIFIED) -> FetchRequest:
    """Whose lease has so much time left."""
    made = FetchRequest("j", b"%16d" % url, f"http://a.test/{url}", "a.test", kind=kind, fetch_no=3, attempt=attempt)
    made.lease_until = clock.now() + lease_s
    return made


def said(log: Log) -> list[tuple[int, str, int]]:
    """Partition, URL's number, attempt."""
    return sorted((p, outcome.url_key.decode().strip(), outcome.attempt) for p, outcome in log.said)


async def test_the_newest_request_of_a_url_is_reported_as_its_lease_would_have(log, clock):
    """With the instant at which no earlier owner could dial; robots.txt too."""
    robots = request(clock, 2, kind=FetchKind.ROBOTS)
    log.records = {5: [request(clock, 1), request(clock, 1, attempt=2), robots]}
    orphans = LostRequests(log, clock)
    await orphans.report({5: 3}, clock.now() - 3)
    assert said(log) == [(5, "1", 2), (5, "2", 1)]
    for _, outcome in log.said:
        assert (outcome.result, outcome.reason, outcome.fetch_no) == (FetchResult.FAILED, "lease_expired", 3)
        assert (outcome.started_at, outcome.ended_at) == (clock.now() - 3, clock.now() - 3)
    assert FetchKind.ROBOTS in [outcome.kind for _, outcome in log.said]
    assert orphans.reported == 2


async def test_what_came_after_is_not_reported(log, clock):
    """Nor the same URL before it: it is in the hands of the present member."""
    log.records = {0: [request(clock, 1), request(clock, 2), request(clock, 1)], 1: [request(clock, 7)]}
    await LostRequests(log, clock).report({0: 2, 1: 0}, clock.now())
    assert said(log) == [(0, "2", 1)]


async def test_reading_ends_at_the_first_lease_that_is_over(log, clock, monkeypatch):
    """However long the log is."""
    monkeypatch.setattr(module, "CHUNK", 4)
    old = [request(clock, number, lease_s=-1.0) for number in range(100)]
    live = [request(clock, 200 + number) for number in range(6)]
    log.records = {0: [*old, *live]}
    await LostRequests(log, clock).report({0: 106}, clock.now())
    assert [url for _, url, _ in said(log)] == [str(200 + number) for number in range(6)]
    assert log.read_records == 8


async def test_a_lane_is_read_for_all_its_partitions_as_far_as_its_leases_reach(log, clock, monkeypatch):
    """A partition with few requests has none in the last records; the leases of the others say where to end."""
    monkeypatch.setattr(module, "CHUNK", 4)
    log.count, log.partition_of = 2, lambda request, lane: lane if b"7" not in request.url_key else lane + 2
    old = [request(clock, number, lease_s=-1.0) for number in (7, *range(100, 196))]
    log.records = {1: [*old, request(clock, 77), *(request(clock, number) for number in range(200, 206))]}
    ends = {1: len(log.records[1]), 3: len(log.records[1])}
    await LostRequests(log, clock).report(ends, clock.now())
    assert said(log) == [*((1, str(number), 1) for number in range(200, 206)), (3, "77", 1)]
    assert log.read_records == 8


async def test_a_log_that_was_cut_is_read_as_far_as_it_goes(log, clock):
    """And an empty one not at all."""
    log.records = {0: [request(clock, number) for number in range(6)], 1: []}
    log.first = 4
    await LostRequests(log, clock).report({0: 6, 1: 0}, clock.now())
    assert [url for _, url, _ in said(log)] == ["4", "5"]


@pytest.mark.parametrize("error", [TemporaryError("the broker is away"), UserError("cannot be read")])
async def test_what_cannot_be_read_is_left_to_the_leases(log, clock, caplog, error):
    """One line, and nothing that ends the service."""
    log.records = {0: [request(clock, 1)]}
    log.error = error
    await LostRequests(log, clock).report({0: 1}, clock.now())
    assert log.said == []
    assert f"are left to their leases: {error}" in caplog.text
