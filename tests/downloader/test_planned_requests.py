"""A request that is published before the instant of its dial is not dialled before it, whatever happens meanwhile."""

from __future__ import annotations

import msgspec
import pytest
from nephila.downloader.coordination import Coordination
from nephila.downloader.in_flight import Stage
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import Politeness
from nephila.kernel.topics import JOBS

from tests.downloader.downloader_room import Room, answer
from tests.jobs import crawl_job

GAP_S = 2.0


async def fetched_once(**settings: object) -> Room:
    """A downloader that has made one fetch of a.test, which ended now."""
    room = Room(Coordination(plans=True), **settings)
    await room.downloader.start()
    room.request("http://a.test/0")
    await room.settle()
    room.reply(0, answer())
    await room.settle()
    return room


def plan(room: Room, **fields: object) -> None:
    """The next request of the host: 2 s after the fetch before, or 3 s after the receipt."""
    after = room.outcomes[0].ended_at
    room.request("http://a.test/1", **{"after": after, "gap_s": GAP_S, "wait_s": 3.0, **fields})


async def pass_time(room: Room, seconds: float) -> None:
    room.clock.advance(seconds)
    await room.settle()


async def test_the_gap_counts_from_the_end_of_the_fetch_before() -> None:
    room = await fetched_once()
    await pass_time(room, 0.7)
    plan(room)
    await pass_time(room, GAP_S - 0.7 - 0.01)
    assert len(room.fetcher.fetches) == 1
    await pass_time(room, 0.02)
    assert room.fetcher.urls[1:] == ["http://a.test/1"]


async def test_a_late_request_is_dialled_at_once() -> None:
    room = await fetched_once()
    await pass_time(room, GAP_S)
    plan(room)
    await room.settle()
    assert len(room.fetcher.fetches) == 2


@pytest.mark.parametrize("after", [0.0, 1.0])
async def test_a_downloader_that_did_not_make_the_fetch_before_waits_from_the_receipt(after: float) -> None:
    room = await fetched_once()
    await pass_time(room, GAP_S)
    plan(room, after=after)
    await pass_time(room, 2.99)
    assert len(room.fetcher.fetches) == 1
    await pass_time(room, 0.02)
    assert len(room.fetcher.fetches) == 2


async def test_where_addresses_are_paced_such_a_request_is_given_back() -> None:
    """The scheduler has planned the starts on the address by the end of that fetch."""
    room = await fetched_once()
    plan(room, after=1.0, address="8.8.8.8")
    await room.settle()
    assert (len(room.fetcher.fetches), room.outcomes[1].result) == (1, m.FetchResult.UNSPECIFIED)
    assert room.outcomes[1].started_at == 0.0


@pytest.mark.parametrize("change", [{"paused": True}, {"deleted": True}])
async def test_a_request_whose_job_is_stopped_meanwhile_is_given_back(change: dict[str, bool]) -> None:
    room = await fetched_once()
    plan(room, job="j")
    job = crawl_job("j", politeness=Politeness(delay="2s"))
    room.bus.publish(JOBS, 0, msgspec.structs.replace(job, **change))
    await pass_time(room, GAP_S)
    assert (len(room.fetcher.fetches), room.outcomes[1].started_at) == (1, 0.0)
    room.bus.publish(JOBS, 0, job)
    plan(room, job="j")
    await room.settle()
    assert len(room.fetcher.fetches) == 2, "the job goes on"


async def test_a_planned_request_of_a_partition_that_leaves_is_given_back() -> None:
    room = await fetched_once()
    plan(room)
    await room.settle()
    assert [fetch.stage for fetch in room.downloader._fetches] == [Stage.HOST_GAP]
    await room.downloader.drain(0)
    await pass_time(room, GAP_S)
    assert (len(room.fetcher.fetches), len(room.outcomes)) == (1, 2)


async def test_the_wait_holds_no_slot_of_the_downloader() -> None:
    room = await fetched_once(concurrency=1)
    plan(room)
    room.request("http://b.test/")
    room.names.table["b.test"] = ("9.9.9.9",)
    await room.settle()
    assert room.fetcher.urls[1:] == ["http://b.test/"]
