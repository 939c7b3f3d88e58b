"""The stages of the pipeline: each one waits, continues or ends where the table says."""

from __future__ import annotations

from nephila.downloader.coordination import Coordination
from nephila.downloader.in_flight import Stage
from nephila.downloader.pipeline import STAGES

from tests.downloader.downloader_room import Room, answer


def stages(room: Room) -> list[Stage]:
    """Where the requests in flight stand, in order of arrival."""
    return [fetch.stage for fetch in room.downloader._fetches]


def test_the_table_names_every_stage_before_the_response_once_and_in_order() -> None:
    """RESPONSE and ENDED are states without work of their own."""
    assert [stage for stage, _ in STAGES] == [stage for stage in Stage if stage < Stage.RESPONSE]


async def test_each_wait_has_its_stage() -> None:
    """Host slot, global slot, address slot and the response, with one request each."""
    room = Room(concurrency=2, per_address=1)
    await room.downloader.start()
    room.request("http://a.test/1")
    room.request("http://a.test/2")
    room.names.table["b.test"] = ("9.9.9.9",)
    room.request("http://b.test/")
    room.names.table["c.test"] = ("7.7.7.7",)
    room.request("http://c.test/")
    await room.settle()
    assert stages(room) == [Stage.RESPONSE, Stage.HOST_SLOT, Stage.RESPONSE, Stage.GLOBAL_SLOT]
    room.reply(1, answer())
    await room.settle()
    assert stages(room) == [Stage.RESPONSE, Stage.HOST_SLOT, Stage.RESPONSE]


async def test_a_name_that_is_not_cached_waits_in_resolve() -> None:
    """And passes without a task once it is cached."""
    room = Room()
    await room.downloader.start()
    room.request()
    assert stages(room) == [Stage.RESOLVE]
    await room.settle()
    assert stages(room) == [Stage.RESPONSE]
    room.reply(0, answer())
    room.request()
    assert stages(room) == [Stage.RESPONSE]


async def test_a_gap_waits_in_the_address_slot_and_a_lost_lease_in_lease() -> None:
    """In that order: the membership is the last condition before the dial."""
    valid = False
    room = Room(Coordination(membership_valid=lambda: valid), address_gap_s=1.0)
    await room.downloader.start()
    room.request("http://a.test/")
    room.request("http://b.test/")
    await room.settle()
    assert stages(room) == [Stage.MEMBERSHIP, Stage.ADDRESS_SLOT]
    valid = True
    room.clock.advance(0.2)
    assert stages(room) == [Stage.RESPONSE, Stage.ADDRESS_SLOT]
    room.clock.advance(1.0)
    assert stages(room) == [Stage.RESPONSE, Stage.RESPONSE]


async def test_the_decision_of_the_scheduler_is_awaited_in_the_address_check() -> None:
    """A request that ended in the meantime takes no slot when the answer comes."""
    answers = []
    room = Room(Coordination(late_address_check=lambda request, address, reply: answers.append(reply)), concurrency=1)
    await room.downloader.start()
    room.request()
    await room.settle()
    assert stages(room) == [Stage.ADDRESS_CHECK]
    (fetch,) = room.downloader._fetches
    room.downloader.partitions.on_lost(frozenset({5}))
    answers[0](True)
    assert (fetch.stage, room.fetcher.fetches) == (Stage.ENDED, [])
