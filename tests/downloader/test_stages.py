"""The stages of the pipeline: each one waits, continues or ends where the table says."""

from __future__ import annotations

import asyncio

import pytest
from downloader_room import Room, answer
from nephila.downloader.coordination import Coordination
from nephila.downloader.in_flight import InFlight, Stage
from nephila.downloader.pipeline import STAGES
from nephila.kernel import messages as m
from nephila.kernel.topics import JOBS


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


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage < Stage.DIAL])
async def test_an_end_in_any_stage_frees_what_is_held(stage: Stage) -> None:
    """Whatever a lost request held or waited for, the next one gets it."""
    open_, replies = asyncio.Event(), []

    def check(request: m.FetchRequest, address: str, reply: object) -> None:
        replies.append(reply) if stage is Stage.ADDRESS_CHECK else reply(True)  # type: ignore[operator]

    room = Room(
        Coordination(
            late_address_check=check, membership_valid=lambda: stage is not Stage.MEMBERSHIP or open_.is_set()
        ),
        proxies=["http://p:1"] if stage is Stage.PROXY else [],
        concurrency=1,
        per_host=1,
        per_address=1,
        address_gap_s=1.0,
        proxy_slots=1,
    )
    for proxy in room.pool.proxies():
        room.pool.start_use(proxy)
    await room.downloader.start()
    login = m.Login("http://a.test/login", [m.LoginField("user", "me")]) if stage is Stage.MIDDLEWARE else None
    room.bus.publish(JOBS, 0, m.CrawlJob("j", politeness=m.Politeness(1.0), login=login))
    if stage in (Stage.HOST_SLOT, Stage.GLOBAL_SLOT, Stage.ADDRESS_SLOT):
        if stage is Stage.GLOBAL_SLOT:
            room.names.table["b.test"] = ("9.9.9.9",)
        room.request("http://a.test/" if stage is Stage.HOST_SLOT else "http://b.test/", partition=6)
        await room.settle()
        if stage is Stage.ADDRESS_SLOT:  # it ends, and its gap remains
            room.reply(0, answer())
    room.request("http://a.test/")
    if stage is not Stage.RESOLVE:
        await room.settle()
    lost: InFlight = next(fetch for fetch in room.downloader._fetches if fetch.delivery.partition == 5)
    assert lost.stage is stage
    room.downloader.partitions.on_lost(frozenset({5}))
    for fetch in room.fetcher.fetches:
        if not fetch.aborted and room.downloader.in_flight:
            fetch.on_done(answer())
    open_.set()
    for proxy in room.pool.proxies():
        room.pool.end_use(proxy)
    room.clock.advance(5)
    assert room.downloader.in_flight == 0
    room.bus.publish(JOBS, 0, m.CrawlJob("j", politeness=m.Politeness(1.0)))
    room.request("http://a.test/next", partition=6, address="8.8.8.8")
    await room.settle()
    assert stages(room) == [Stage.RESPONSE]
