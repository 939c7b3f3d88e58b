"""A member that the group does not know any more: frozen, or another has its name. Told by the heartbeats before."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.bus.kafka.consumer.consumer_group import ConsumerGroup
from nephila.kernel.runtime.clock import ManualClock

CONFIG = KafkaConfig(name="d", session_s=6.0, heartbeat_s=0.5)


class Rig:
    """A group that has joined and holds a partition; time is what the test says, and nothing is connected."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.fatal = []
        self.group = ConsumerGroup("downloader", CONFIG, self.clock, None, self.fatal.append)
        self.group._joined = True
        self.group.consumer = SimpleNamespace(_coordinator=SimpleNamespace(generation=-1))
        self.group.membership.held = {3: 1}
        self.group._session.on_join(self.clock.monotonic())

    def beats(self, seconds: float) -> None:
        """Heartbeats that are answered, each half second."""
        for _ in range(round(seconds / CONFIG.heartbeat_s)):
            self.clock.advance(CONFIG.heartbeat_s)
            self.group._session.on_answer(self.clock.monotonic())

    async def thrown_out(self) -> None:
        """The next one is answered with: not a member."""
        self.clock.advance(CONFIG.heartbeat_s)
        await self.group.on_partitions_revoked([])


@pytest.fixture
def rig():
    """See the class."""
    return Rig()


async def test_thrown_out_while_it_was_heard_another_has_its_name(rig):
    """There is no other cause: it ends with a line."""
    rig.beats(20)
    await rig.thrown_out()
    assert "another member of group downloader has the name 'd'" in str(rig.fatal[0])
    assert rig.group.membership.held == {}


async def test_a_broker_that_was_started_meanwhile_answers_those_it_has_thrown_out(rig):
    """Frozen while its broker died: heartbeats are answered until the broker has read its groups, then it is unknown.
    It joins anew, and has neither ended nor emitted (found by make chaos)."""
    rig.beats(20)
    rig.clock.advance(25)
    assert not rig.group.may_emit
    rig.beats(1)
    assert not rig.group.may_emit
    await rig.thrown_out()
    assert rig.fatal == []
    assert rig.group.membership.held == {}


def test_after_a_silence_a_member_that_stays_known_goes_on(rig):
    """A broker that was away threw nobody out; a short silence needs no proof."""
    rig.beats(20)
    rig.clock.advance(25)
    rig.beats(2.5)
    assert rig.group.may_emit
    rig.clock.advance(4)
    rig.group._session.on_answer(rig.clock.monotonic())
    assert rig.group.may_emit
