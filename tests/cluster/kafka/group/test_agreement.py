"""Members of a system compare the settings that have to be the same in all of them, on whichever machine they are."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import msgspec
import pytest
from aiokafka.errors import GroupAuthorizationFailedError, GroupCoordinatorNotAvailableError
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import REQUESTS, SEEDS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.group import agreement

from tests.contracts.buses import config_for
from tests.waits import until


def member(config, topic, group: str, **settings: str) -> KafkaBus:
    """A program of a group as far as the broker can tell."""
    bus = KafkaBus(config, SystemClock(), agreed=settings)
    bus.subscribe(topic, group, lambda delivery: delivery.ack(), credits=10)
    return bus


@pytest.fixture
async def config(broker):
    """A system without members."""
    config = config_for(broker, session_s=1.0, heartbeat_s=0.1)
    await admin.apply(config)
    return config


async def test_who_differs_from_those_at_work_is_refused(config, monkeypatch):
    """Another service with the same name is another member; the line says who differs, in what, and where it is."""
    monkeypatch.setattr(agreement, "SETTLE_S", 0.2)
    monkeypatch.setattr(agreement, "ASK_AGAIN_S", 0.05)
    first = member(config, SEEDS, "scheduler", user_agent="nephila", per_address="4")
    await first.start()
    alike = member(config, REQUESTS, "downloader", user_agent="nephila")
    other = member(msgspec.structs.replace(config, name="d-1"), REQUESTS, "downloader", user_agent="examplebot")
    try:
        await alike.start()
        with pytest.raises(UsageError) as error:
            await other.start()
        line = str(error.value)
        assert "user_agent is examplebot here and nephila in the " in line
        assert "(127.0.0.1)" in line
        assert "\n" not in line
    finally:
        await asyncio.gather(first.close(), alike.close(), other.close())


async def test_what_a_member_said_is_forgotten_when_it_has_left(config):
    """All stop, the setting is changed, all start: nobody is held to what was."""
    first = member(config, SEEDS, "scheduler", user_agent="nephila")
    await first.start()
    await first.close()
    second = member(config, REQUESTS, "downloader", user_agent="examplebot")
    await second.start()
    await second.close()


@pytest.mark.parametrize(
    ("code", "error", "moving"),
    [(0, None, False), (69, None, False), (30, None, False), (14, None, True),
     (0, GroupAuthorizationFailedError(), False), (0, GroupCoordinatorNotAvailableError(), True)],
)  # fmt: skip
async def test_what_a_broker_does_not_tell_is_passed_over(code, error, moving):
    """Groups that nobody has joined, or that the user of this program may not ask about; one that is read is waited
    for. A member of another kind in a group says nothing."""

    class Client:
        async def describe_consumer_groups(self, groups):
            if error is not None:
                raise error
            member = ("id", "client", "/10.0.0.3", b"\x00", b"")
            return [SimpleNamespace(groups=[(code, groups[0], "Stable", "consumer", "x", [member])])]

    assert await agreement._members(Client(), KafkaConfig()) == ([], moving)


async def test_of_two_that_start_at_once_the_later_ends(config, monkeypatch):
    """Neither saw the other before it joined; the comparison afterwards finds it."""
    monkeypatch.setattr(agreement, "ASK_AGAIN_S", 0.05)

    async def seen_nobody(config, me) -> None:
        """As if both had asked in the same instant."""

    monkeypatch.setattr(agreement, "refuse_differences", seen_nobody)
    ended = []
    first = member(config, SEEDS, "scheduler", user_agent="nephila")
    second = member(config, REQUESTS, "downloader", user_agent="examplebot")
    first.groups["scheduler"].membership.started = 1.0
    for bus in (first, second):
        bus.on_fatal = lambda error, bus=bus: ended.append((bus, str(error)))
        await bus.start()
    try:
        await until(lambda: bool(ended))
        ((bus, line),) = ended
        assert bus is second
        assert "user_agent is examplebot here and nephila in the running member scheduler/member-0" in line
    finally:
        await asyncio.gather(first.close(), second.close())


async def test_another_beat_is_said_and_refuses_nobody(config, caplog):
    """It makes messages late: a rolling restart may change it."""
    first = member(msgspec.structs.replace(config, beat_s=0.0), SEEDS, "scheduler", user_agent="nephila")
    second = member(
        msgspec.structs.replace(config, name="d-1", beat_s=0.5), REQUESTS, "downloader", user_agent="nephila"
    )
    await first.start()
    await second.start()
    try:
        await until(lambda: "beat_s is 0.5 here and 0 in the running member scheduler/member-0" in caplog.text)
        assert second.fatal is None
    finally:
        await asyncio.gather(first.close(), second.close())
