"""Partitions are assigned, revoked and lost: which requests start, are given back, or are dropped."""

from __future__ import annotations

import asyncio

from nephila.downloader.coordination import Coordination
from nephila.downloader.in_flight import Stage
from nephila.downloader.limits.fair_slots import FAST
from nephila.kernel.messages import FetchResult
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import PAGES

from tests.downloader.downloader_room import Room, answer

MINE = frozenset({5})
OTHERS = frozenset({6})


async def test_a_partition_that_leaves_gives_back_what_is_not_dialled() -> None:
    """At once; what is dialled may end, and the hand-over is done when it has. Other partitions notice nothing."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/1")
    room.request("http://a.test/2")
    room.request("http://b.test/1", partition=6)
    await room.settle()
    leaving = asyncio.ensure_future(room.downloader.partitions.on_revoking(MINE))
    await room.settle()
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]
    assert room.outcomes[0].started_at == 0
    assert not leaving.done()
    room.reply(room.fetcher.urls.index("http://a.test/1"), answer(200, b"x"))
    await leaving
    assert [outcome.result for outcome in room.outcomes[1:]] == [FetchResult.FETCHED]
    assert room.downloader.in_flight == 1
    assert not any(fetch.aborted for fetch in room.fetcher.fetches)


async def test_what_does_not_end_in_time_is_aborted_and_given_back() -> None:
    """The server has seen it, so the host rests; a late answer changes nothing."""
    room = Room(move_s=2.0)
    await room.downloader.start()
    room.request()
    await room.settle()
    leaving = asyncio.ensure_future(room.downloader.partitions.on_revoking(MINE))
    await room.settle()
    room.clock.advance(1.9)
    await room.settle()
    assert not leaving.done()
    room.clock.advance(0.1)
    await leaving
    assert room.fetcher.fetches[0].aborted
    (outcome,) = room.outcomes
    assert (outcome.result, outcome.started_at > 0) == (FetchResult.UNSPECIFIED, True)
    room.reply(0, answer(200))
    assert (len(room.outcomes), room.bus.unacked) == (1, 0)


async def test_a_hand_over_that_is_cut_off_gives_back_all_the_same() -> None:
    """The bus waits no longer: the outcomes are out."""
    room = Room(move_s=60.0)
    await room.downloader.start()
    room.request()
    await room.settle()
    leaving = asyncio.ensure_future(room.downloader.partitions.on_revoking(MINE))
    await room.settle()
    leaving.cancel()
    await asyncio.wait([leaving])
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]


async def test_requests_of_a_partition_that_left_go_back() -> None:
    """What was still on its way here, until the partition is ours again."""
    room = Room()
    await room.downloader.start()
    await room.downloader.partitions.on_revoking(MINE)
    room.request()
    room.clock.advance(0.2)
    await room.settle()
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.UNSPECIFIED]
    await room.downloader.partitions.on_assigned(MINE)
    room.request()
    await room.settle()
    assert len(room.fetcher.fetches) == 1


async def test_a_lost_partition_is_dropped_without_a_word() -> None:
    """It is another's: fetches are aborted, nothing is published, slots are free for the others."""
    room = Room(per_host=1)
    await room.downloader.start()
    room.request("http://a.test/1")
    room.request("http://a.test/2")
    room.request("http://a.test/3", partition=6)
    await room.settle()
    assert len(room.fetcher.fetches) == 1
    room.downloader.partitions.on_lost(MINE)
    await room.settle()
    assert room.fetcher.fetches[0].aborted
    assert room.fetcher.urls[1:] == ["http://a.test/3"]
    assert room.outcomes == room.pages == []
    room.reply(0, answer(200, b"x"))
    room.reply(1, answer(200, b"x"))
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.FETCHED]
    assert room.bus.unacked == 0


async def test_requests_of_an_earlier_owner_are_ignored() -> None:
    """After one of a later epoch; by partition; those that were taken before go on."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/", epoch=7)
    room.request("http://b.test/", epoch=9)
    room.request("http://c.test/", epoch=8)
    room.request("http://d.test/", epoch=3, partition=6)
    room.request("http://e.test/", epoch=9)
    await room.settle()
    assert sorted(room.fetcher.urls) == [f"http://{name}.test/" for name in "abde"]
    assert (room.downloader.partitions.stale, room.outcomes) == (1, [])
    assert room.downloader.in_flight == 4


async def test_nobody_dials_while_the_broker_may_have_given_the_partitions_away() -> None:
    """A member that was frozen: its requests wait until it is known whose they are, and are too late then, or lost."""
    valid = False
    room = Room(Coordination(membership_valid=lambda: valid))
    await room.downloader.start()
    now = room.clock.now()
    room.request("http://a.test/", start_by=now + 5)
    room.request("http://b.test/", start_by=now + 60)
    room.request("http://c.test/", start_by=now + 60, partition=6)
    await room.settle()
    room.clock.advance(6)
    await room.settle()
    assert room.fetcher.fetches == []
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.EXPIRED]
    room.downloader.partitions.on_lost(MINE)
    valid = True
    room.clock.advance(1)
    await room.settle()
    assert room.fetcher.urls == ["http://c.test/"]


async def test_a_page_that_cannot_travel_ends_its_request(monkeypatch) -> None:
    """Too large for the broker, and no blob store: failed(too_large), and the host is free."""
    room = Room()
    await room.downloader.start()
    publish = room.bus.publish

    def narrow(topic, partition, message):
        if topic is PAGES:
            raise PermanentError("a message of 600000 bytes for topic pages needs a blob store, and none is set")
        return publish(topic, partition, message)

    room.request()
    await room.settle()
    monkeypatch.setattr(room.bus, "publish", narrow)
    room.reply(0, answer(200, b"x"))
    (outcome,) = room.outcomes
    assert (outcome.result, outcome.reason) == (FetchResult.FAILED, "too_large")
    assert "needs a blob store" in outcome.detail
    assert room.bus.unacked == 0


async def test_a_slot_that_a_revoked_request_frees_starts_no_other_revoked_request() -> None:
    """Also where the younger request, of a fast host, has the slot for which the older one waits."""
    room = Room(concurrency=1, per_address=2, address_gap_s=1.0)
    await room.downloader.start()
    room.names.table["other.test"] = ("9.9.9.9",)
    room.request("http://first.test/", partition=6)
    await room.settle()
    room.request("http://other.test/")
    room.downloader._pipeline.global_stage.speeds.learn("fast.test", FAST)
    room.request("http://fast.test/")
    await room.settle()
    room.reply(0, answer(200))
    older, younger = room.downloader._fetches
    assert (older.stage, younger.stage) == (Stage.GLOBAL_SLOT, Stage.ADDRESS_SLOT)
    revoking = asyncio.ensure_future(room.downloader.partitions.on_revoking(MINE))
    await room.settle()
    assert room.fetcher.urls == ["http://first.test/"]
    await revoking
    assert [outcome.result for outcome in room.outcomes[1:]] == [FetchResult.UNSPECIFIED] * 2
    assert (room.downloader.in_flight, room.bus.unacked) == (0, 0)
