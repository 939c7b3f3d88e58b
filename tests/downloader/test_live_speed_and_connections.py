"""Speed and connections of a downloader that are changed while it runs."""

from __future__ import annotations

from nephila.kernel.messages import FetchResult

from tests.downloader.downloader_room import Room, answer


async def test_connections_are_changed_while_fetches_are_in_flight() -> None:
    """More start at once; with fewer none ends early; taken back, the configured number counts again."""
    room = Room(per_host=0, per_address=0, concurrency=2)
    await room.downloader.start()
    change = room.downloader.live_settings["connections"]
    for _ in range(9):
        room.request()
    await room.settle()
    assert len(room.fetcher.fetches) == 2
    change(4)
    assert len(room.fetcher.fetches) == 4
    change(1)
    for number in range(3):
        room.reply(number, answer(200))
        assert len(room.fetcher.fetches) == 4
    room.reply(3, answer(200))
    assert len(room.fetcher.fetches) == 5
    change(None)
    assert len(room.fetcher.fetches) == 6


async def test_the_speed_of_a_downloader_is_limited_while_it_runs() -> None:
    """So many starts per second, in order; without the limit they start at once again."""
    room = Room(per_host=0, per_address=0)
    await room.downloader.start()
    change = room.downloader.live_settings["speed"]
    change(2)
    for number in range(5):
        room.request(f"http://a.test/{number}")
    await room.settle()
    started = []
    for _ in range(5):
        started.append(len(room.fetcher.fetches))
        room.clock.advance(0.5)
        await room.settle()
    assert started == [1, 2, 3, 4, 5]
    assert room.fetcher.urls == [f"http://a.test/{number}" for number in range(5)]
    change(None)
    for _ in range(5):
        room.request()
    await room.settle()
    assert len(room.fetcher.fetches) == 10


async def test_requests_that_wait_for_the_speed_are_given_back_at_the_end() -> None:
    """None is dialled after it."""
    room = Room(per_host=0, per_address=0)
    await room.downloader.start()
    room.downloader.live_settings["speed"](0.1)
    for _ in range(3):
        room.request()
    await room.settle()
    room.reply(0, answer(200))
    await room.downloader.close()
    assert [outcome.result for outcome in room.outcomes] == [
        FetchResult.FETCHED, FetchResult.UNSPECIFIED, FetchResult.UNSPECIFIED,
    ]  # fmt: skip
    room.clock.advance(60.0)
    assert len(room.fetcher.fetches) == 1
