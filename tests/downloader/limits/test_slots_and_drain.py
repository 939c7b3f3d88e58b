"""How many at once, and how the downloader stops."""

from __future__ import annotations

import asyncio
import random

from nephila.downloader.limits.slots import Slots
from nephila.kernel.messages import FetchKind, FetchResult
from nephila.kernel.topics import OUTCOMES

from tests.downloader.downloader_room import Room, answer


async def test_one_per_host() -> None:
    """A host's second request waits for the end of its first; other hosts do not."""
    room = Room()
    await room.downloader.start()
    for url in ("http://a.test/1", "http://a.test/2", "http://b.test/1"):
        room.request(url)
    await room.settle()
    assert sorted(room.fetcher.urls) == ["http://a.test/1", "http://b.test/1"]
    room.reply(room.fetcher.urls.index("http://a.test/1"), answer(200))
    assert room.fetcher.urls[-1] == "http://a.test/2"


async def test_no_limits() -> None:
    """0 is no limit."""
    room = Room(per_address=0, per_host=0)
    await room.downloader.start()
    for _ in range(9):
        room.request()
    await room.settle()
    assert len(room.fetcher.fetches) == 9


async def test_so_many_in_all() -> None:
    """No more fetches at once than `concurrency`, with any window of requests."""
    room = Room(per_host=0, per_address=0, concurrency=3)
    await room.downloader.start()
    for _ in range(9):
        room.request()
    await room.settle()
    assert (len(room.fetcher.fetches), room.downloader.in_flight) == (3, 9)
    room.reply(0, answer(200))
    assert (len(room.fetcher.fetches), room.downloader.in_flight) == (4, 8)


async def test_window() -> None:
    """The window bounds what is taken and not acked, also while pages wait to become durable."""
    room = Room(per_host=0, per_address=0, window=2)
    await room.downloader.start()
    room.hold = True
    for _ in range(4):
        room.request()
    await room.settle()
    room.reply(0, answer(200))
    room.reply(1, answer(200))
    assert (len(room.fetcher.fetches), room.downloader.in_flight) == (2, 0)
    for delivery in room.held[:2]:
        delivery.ack()
    assert len(room.fetcher.fetches) == 3


async def test_drain_starts_nobody() -> None:
    """While all requests are given back, a slot that becomes free starts no other fetch."""
    room = Room(per_address=1, concurrency=1)
    await room.downloader.start()
    for number in range(20):
        room.request(f"http://h{number % 7}.test/{number}")
    await room.settle()
    assert len(room.fetcher.fetches) == 1
    await room.downloader.drain(0.0)
    await room.settle()
    assert len(room.fetcher.fetches) == 1
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED] * 20
    assert (room.downloader.in_flight, room.bus.unacked) == (0, 0)


async def test_slot_is_free_before_the_outcome() -> None:
    """The request that an outcome brings finds the host free."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/1")
    await room.settle()

    def next_one(delivery: object) -> None:
        delivery.ack()  # type: ignore[attr-defined]
        if len(room.fetcher.fetches) < 3:
            room.request("http://a.test/next")
            assert room.fetcher.fetches[-1].request.target.path == "/next"

    room.bus.subscribe(OUTCOMES, "next", next_one, credits=10)
    room.reply(0, answer(200))
    room.reply(1, answer(200))
    assert len(room.fetcher.fetches) == 3


async def test_drain_gives_back_what_waits() -> None:
    """Requests not dialled are given back at once; dialled ones may end within the grace period."""
    room = Room(per_address=1)
    await room.downloader.start()
    for url in ("http://a.test/1", "http://a.test/2", "http://b.test/", "http://c.test/"):
        room.request(url)
    await room.settle()
    draining = asyncio.ensure_future(room.downloader.drain(5.0))
    await room.settle()
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED] * 3
    assert not draining.done()
    room.reply(0, answer(200, b"x"))
    await draining
    assert room.outcomes[-1].result == FetchResult.FETCHED
    assert (len(room.fetcher.fetches), room.bus.unacked) == (1, 0)


async def test_drain_aborts_after_the_grace() -> None:
    """A fetch that does not end in time is aborted and given back; a late response has no effect."""
    room = Room()
    await room.downloader.start()
    room.request()
    await room.settle()
    draining = asyncio.ensure_future(room.downloader.drain(5.0))
    await room.settle()
    room.clock.advance(5.0)
    await draining
    assert room.fetcher.fetches[0].aborted
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]
    room.reply(0, answer(200))
    assert len(room.outcomes) == 1


async def test_a_second_drain_shortens_the_first() -> None:
    """Draining with no grace ends a drain that still waits."""
    room = Room()
    await room.downloader.start()
    room.request()
    await room.settle()
    draining = asyncio.ensure_future(room.downloader.drain(60.0))
    await room.settle()
    await room.downloader.drain(0.0)
    await draining
    assert room.downloader.in_flight == 0


async def test_requests_that_come_while_draining() -> None:
    """They are given back after a short delay, so that no loop without a pause begins."""
    room = Room()
    await room.downloader.start()
    await room.downloader.drain(0.0)
    room.request()
    assert room.outcomes == []
    room.clock.advance(0.2)
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]


async def test_drain_while_a_name_is_asked_for() -> None:
    """A request whose name is looked up is given back, and its look-up is cancelled."""
    room = Room()
    await room.downloader.start()
    room.request()
    await room.downloader.drain(0.0)
    await room.settle()
    assert room.fetcher.fetches == []
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]


async def test_close() -> None:
    """Closing gives back what is left and closes the fetcher."""
    room = Room()
    await room.downloader.start()
    room.request()
    await room.settle()
    await room.downloader.close()
    assert room.fetcher.closed
    assert room.bus.unacked == 0


def test_slots_under_random_use() -> None:
    """The limit holds and no waiter is lost, in any order of acquire, release and cancel."""
    rng = random.Random(3)
    slots: Slots[int] = Slots(2)
    holding: list[tuple[str, int]] = []
    waiting: list[tuple[str, int]] = []
    for number in range(5_000):
        key = rng.choice("abc")
        action = rng.random()
        if action < 0.5:
            (holding if slots.acquire(key, number) else waiting).append((key, number))
        elif action < 0.8 and holding:
            key, _ = holding.pop(rng.randrange(len(holding)))
            following = slots.release(key)
            first = next((one for one in waiting if one[0] == key), None)
            assert (key, following) == first if following is not None else first is None
            if first is not None:
                waiting.remove(first)
                holding.append(first)
        elif waiting:
            one = waiting.pop(rng.randrange(len(waiting)))
            assert slots.cancel(*one)
            assert not slots.cancel(*one)
        slots.check()


def test_a_lowered_limit_counts_while_requests_wait() -> None:
    """Holders above it keep their slots; what they release is not used again, until the limit is met."""
    slots: Slots[int] = Slots(3)
    assert [slots.acquire("a", number) for number in range(6)] == [True] * 3 + [False] * 3
    assert slots.set_limit(1) == []
    assert [slots.release("a"), slots.release("a")] == [None, None]
    assert (slots.held("a"), slots.release("a")) == (1, 3)
    assert slots.set_limit(2) == [4]
    slots.check()


async def test_a_redirected_robots_txt_that_ends_before_its_dial_frees_its_slot() -> None:
    """Its new host has no address that may be dialled: the next request gets the slot."""
    room = Room(per_host=0, per_address=0, concurrency=1)
    await room.downloader.start()
    room.request("http://a.test/robots.txt", job="", kind=FetchKind.ROBOTS)
    room.request("http://b.test/1")
    await room.settle()
    assert room.fetcher.urls == ["http://a.test/robots.txt"]
    room.address = "10.0.0.1"
    room.names.table["moved.test"] = ("10.0.0.1",)
    room.reply(0, answer(301, location="http://moved.test/robots.txt"))
    await room.settle()
    assert room.fetcher.urls == ["http://a.test/robots.txt", "http://b.test/1"]


async def test_a_drained_program_starts_nothing_for_a_new_partition() -> None:
    """A partition that is assigned or revoked after the drain does not end it."""
    room = Room()
    await room.downloader.start()
    await room.downloader.drain(0.0)
    for change in (room.downloader.partitions.on_revoking, room.downloader.partitions.on_assigned):
        await change(frozenset(range(64)))
    room.request()
    room.clock.advance(60.0)
    await room.settle()
    assert room.fetcher.fetches == []
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]
