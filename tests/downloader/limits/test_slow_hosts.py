"""Slots are shared by how hosts answer: any number of slow hosts leaves slots to the others."""

from __future__ import annotations

import random

import pytest
from nephila.downloader.http.deadlines import BODY, TimedFetch
from nephila.downloader.limits.fair_slots import FAST, HOSTS, NEW, SLOW, FairSlots, HostSpeeds, Speed
from nephila.kernel.messages import FetchKind, FetchResult

from tests.downloader.downloader_room import Room, answer

# ---- the slots


def test_fast_hosts_come_first() -> None:
    """A freed slot goes to a fast host, then to a new one, then to a slow one."""
    slots: FairSlots[str] = FairSlots(1, 0.5)
    assert slots.acquire("holder", NEW)
    for name, speed in (("slow", SLOW), ("new", NEW), ("fast", FAST)):
        assert not slots.acquire(name, speed)
    order = []
    holder = "holder"
    for _ in range(3):
        (holder,) = slots.release(holder)
        order.append(holder)
    assert order == ["fast", "new", "slow"]
    assert slots.release(holder) == []


def test_slow_hosts_hold_their_share_while_others_wait() -> None:
    """Ten slots, a share of 0.3: of ten slow holders seven are given back when seven others wait."""
    slots: FairSlots[int] = FairSlots(10, 0.3)
    for number in range(10):
        assert slots.acquire(number, NEW)
        assert slots.mark_slow(number) == []
    assert slots.excess() == []
    for number in range(20, 27):
        assert not slots.acquire(number, NEW)
    assert slots.excess() == [9, 8, 7, 6, 5, 4, 3]


def test_slow_hosts_within_their_share_keep_their_slots() -> None:
    """Also while others wait."""
    slots: FairSlots[int] = FairSlots(10, 0.4)
    for number in range(10):
        assert slots.acquire(number, NEW)
    assert not slots.acquire(20, NEW)
    for number in range(4):
        slots.mark_slow(number)
        assert slots.excess() == []
    slots.mark_slow(4)
    assert slots.excess() == [4]


def test_slow_hosts_alone_hold_all_slots() -> None:
    """Nobody else needs them."""
    slots: FairSlots[int] = FairSlots(10, 0.3)
    assert all(slots.acquire(number, SLOW) for number in range(10))
    assert slots.excess() == []


def test_new_hosts_leave_slots_to_fast_ones() -> None:
    """A hundred new hosts beside a full share of slow ones: a fast host starts at once."""
    slots: FairSlots[int] = FairSlots(16, 0.5)
    assert slots.acquire(1000, FAST)
    assert sum(slots.acquire(number, SLOW) for number in range(100)) == 8
    assert sum(slots.acquire(number, NEW) for number in range(200, 300)) == 7
    slots.release(1000)
    assert slots.acquire(1001, FAST)


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_calls(seed: int) -> None:
    """The limit holds, no slot is free while a request may have it, and every request has its turn."""
    rng = random.Random(seed)
    slots: FairSlots[int] = FairSlots(8, 0.3)
    limit = 8
    holding: set[int] = set()
    waiting: set[int] = set()
    for number in range(3_000):
        action = rng.random()
        started: list[int] = []
        if action < 0.45:
            (holding if slots.acquire(number, rng.choice(list(Speed))) else waiting).add(number)
        elif action < 0.75 and holding:
            one = rng.choice(sorted(holding))
            holding.discard(one)
            started = slots.release(one)
        elif action < 0.85 and holding:
            started = slots.mark_slow(rng.choice(sorted(holding)))
        elif action < 0.9 and waiting:
            one = rng.choice(sorted(waiting))
            waiting.discard(one)
            assert slots.cancel(one)
            assert not slots.cancel(one)
        elif action < 0.95:
            limit = rng.randrange(1, 12)
            started = slots.set_limit(limit)
        assert set(started) <= waiting
        waiting -= set(started)
        holding |= set(started)
        assert set(slots.excess()) <= holding
        assert (slots.held, slots.waiting) == (len(holding), len(waiting))
        slots.check()
    while holding:
        one = holding.pop()
        started = slots.release(one)
        holding |= set(started)
        waiting -= set(started)
    assert not waiting


def test_the_table_of_hosts_is_bounded() -> None:
    """The host learned first is forgotten first."""
    speeds = HostSpeeds()
    for number in range(HOSTS + 1):
        speeds.learn(f"h{number}", SLOW)
    assert "h0" not in speeds.by_host
    assert speeds.by_host[f"h{HOSTS}"] is SLOW
    speeds.learn(f"h{HOSTS}", FAST)
    assert speeds.by_host[f"h{HOSTS}"] is FAST


# ---- in the downloader


class Dripping(TimedFetch):
    """A fetch in flight whose server has sent so many bytes."""

    __slots__ = ("aborted", "received")

    received_bytes = property(lambda self: self.received)  # type: ignore[assignment]
    waits_for_memory = property(lambda self: False)  # type: ignore[assignment]

    def __init__(self, received: int) -> None:
        super().__init__(0.0)
        self.phase = BODY
        self.received = received
        self.aborted = False

    def abort(self) -> None:
        """See `Handle.abort`."""
        self.aborted = True


async def test_a_fast_host_beside_dripping_ones() -> None:
    """All slots are held by hosts that drip: those beyond the share are given back, and the others start."""
    room = Room(per_address=0, concurrency=10)
    await room.downloader.start()
    for number in range(10):
        room.request(f"http://slow{number}.test/", url_key=bytes([number]) * 16)
    await room.settle()
    handles = [Dripping(10) for _ in range(10)]
    for fetch, handle in zip(list(room.downloader._fetches), handles, strict=True):
        fetch.handle = handle
    room.request("http://fast.test/", url_key=b"f" * 16)
    await room.settle()
    assert "http://fast.test/" not in room.fetcher.urls
    room.clock.advance(3)
    await room.settle()
    assert "http://fast.test/" in room.fetcher.urls
    assert sum(handle.aborted for handle in handles) == 1
    (outcome,) = room.outcomes
    assert (outcome.result, outcome.reason) == (FetchResult.UNSPECIFIED, "slow")
    assert outcome.started_at > 0
    await room.downloader.close()


@pytest.mark.parametrize(
    ("kind", "status", "took_s", "speed"),
    [
        (FetchKind.UNSPECIFIED, 200, 0.1, FAST),
        (FetchKind.UNSPECIFIED, 404, 0.1, FAST),
        (FetchKind.UNSPECIFIED, 0, 0.1, NEW),
        (FetchKind.UNSPECIFIED, 200, 60.0, NEW),
        (FetchKind.ROBOTS, 200, 0.1, NEW),
    ],
)
async def test_a_page_that_comes_quickly_makes_its_host_fast(
    kind: FetchKind, status: int, took_s: float, speed: Speed
) -> None:
    """A robots.txt is small and often cached: it proves nothing about pages."""
    room = Room(per_address=0)
    await room.downloader.start()
    room.request("http://a.test/x", kind=kind)
    await room.settle()
    room.clock.advance(took_s)
    room.reply(0, answer(status, reason="" if status else "disconnected"))
    assert room.downloader._pipeline.global_stage.speeds.by_host.get("a.test", NEW) is speed


async def test_a_large_body_at_a_good_rate_is_not_slow() -> None:
    """It takes long because it is large."""
    room = Room(per_address=0, concurrency=1)
    await room.downloader.start()
    room.request("http://large.test/", url_key=b"l" * 16)
    await room.settle()
    handle = Dripping(10_000_000)
    next(iter(room.downloader._fetches)).handle = handle
    room.request("http://other.test/", url_key=b"o" * 16)
    await room.settle()
    room.clock.advance(30)
    assert not handle.aborted
    room.reply(0, answer(200, b"<p>x", content_type="text/html"))
    await room.settle()
    assert room.fetcher.urls == ["http://large.test/", "http://other.test/"]
    await room.downloader.close()
