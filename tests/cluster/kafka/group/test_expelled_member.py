"""A member that the group does not know any more: it was frozen, or another member has its name.

The answers of the broker pass through the hook of the client, and each request has the time of its sending: a member
without CPU reads an answer long after the broker wrote it.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from aiokafka.errors import IllegalGenerationError, KafkaError, RebalanceInProgressError, UnknownMemberIdError
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.kafka.client import consumer as client
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer import consumer_group
from nephila_cluster.kafka.consumer.consumer_group import ConsumerGroup

CONFIG = KafkaConfig(name="d", session_s=6.0, heartbeat_s=0.5)
HEARTBEAT = HeartbeatRequest("downloader", 1, "m")
SYNC = SyncGroupRequest("downloader", 1, "m", "d", [])
JOIN = JoinGroupRequest("downloader", 6000, 10_000, "m", "d", "consumer", [])
COMMIT = OffsetCommitRequest("downloader", 1, "m", -1, [])
OK = 0


class Rig:
    """A member of a group that holds a partition; a broker answers what the test says, after as long as it says."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.fatal = []
        self.group = ConsumerGroup("downloader", CONFIG, self.clock, None, self.fatal.append)
        self.answer = SimpleNamespace(error_code=OK)
        self.delay_s = 0.0
        """From the sending of a request until this process reads the answer."""
        self.group.consumer = SimpleNamespace(
            _coordinator=SimpleNamespace(generation=-1, _group_subscription={"requests"}),
            _client=SimpleNamespace(send=self._send),
            _subscription=SimpleNamespace(subscription=None),
            pause=lambda *_: None,
            resume=lambda *_: None,
        )
        client.watch_session(self.group.consumer, self.clock, self.group._session)

    async def _send(self, node_id, request, **_):
        self.clock.advance(self.delay_s)
        return self.answer

    async def asks(self, request, code=OK, delay_s=0.0):
        """A request and the code of its answer."""
        self.answer, self.delay_s = SimpleNamespace(error_code=code), delay_s
        await self.group.consumer._client.send(0, request)

    async def joins(self, delay_s: float = 0.0) -> None:
        """It gets its assignment, and reads it so late."""
        await self.asks(SYNC, delay_s=delay_s)
        self.group._session.on_join()
        self.group._joined = True
        self.group.membership.held = {3: 1}

    async def beats(self, seconds: float, code: int = OK) -> None:
        """Heartbeats that are answered, each half second."""
        for _ in range(round(seconds / CONFIG.heartbeat_s)):
            self.clock.advance(CONFIG.heartbeat_s)
            await self.asks(HEARTBEAT, code)

    async def thrown_out(self) -> None:
        """The next one is answered with: not a member."""
        await self.beats(CONFIG.heartbeat_s, UnknownMemberIdError.errno)
        await self.group.on_partitions_revoked([])


@pytest.fixture
async def rig():
    """A member that has just joined."""
    rig = Rig()
    await rig.joins()
    return rig


async def test_thrown_out_while_it_was_heard_another_has_its_name(rig):
    """There is no other cause: it ends with a line."""
    await rig.beats(20)
    await rig.thrown_out()
    assert "another member of group downloader has the name 'd'" in str(rig.fatal[0])
    assert rig.group.membership.held == {}


async def test_a_broker_that_was_started_meanwhile_answers_those_it_has_thrown_out(rig):
    """Frozen while its broker died: heartbeats are answered until the broker has read its groups, then it is unknown.
    It joins anew, and has neither ended nor emitted (found by make chaos)."""
    await rig.beats(20)
    rig.clock.advance(25)
    assert not rig.group.may_emit
    await rig.beats(1)
    assert not rig.group.may_emit
    await rig.thrown_out()
    assert rig.fatal == []
    assert rig.group.membership.held == {}


async def test_after_a_silence_a_member_that_stays_known_goes_on(rig):
    """A broker that was away threw nobody out; a short silence needs no proof."""
    await rig.beats(20)
    rig.clock.advance(25)
    await rig.beats(2.5)
    assert rig.group.may_emit
    rig.clock.advance(4)
    await rig.asks(HEARTBEAT)
    assert rig.group.may_emit


@pytest.mark.parametrize("late_s", [6.5, 60.0])
async def test_a_member_without_cpu_that_reads_its_join_after_the_session_has_no_twin(rig, late_s):
    """The broker began the session when it answered the join, and has ended it since. The member must not emit, and
    joins again."""
    await rig.joins(late_s)
    assert not rig.group.may_emit
    await rig.thrown_out()
    assert rig.fatal == []
    assert rig.group.evictions == 1


async def test_a_member_that_reads_its_join_late_and_is_still_known_goes_on(rig):
    """The next heartbeats prove that its partitions are its own."""
    await rig.joins(5.0)
    assert not rig.group.may_emit
    await rig.beats(0.5)
    assert rig.group.may_emit


async def test_a_heartbeat_that_is_read_late_counts_from_its_sending(rig):
    """The broker may have ended the session between its answer and the reading."""
    await rig.beats(20)
    await rig.asks(HEARTBEAT, delay_s=7.0)
    assert not rig.group.may_emit
    await rig.thrown_out()
    assert rig.fatal == []


@pytest.mark.parametrize("request_of_old_generation", [HEARTBEAT, COMMIT])
async def test_a_member_that_missed_a_generation_has_no_twin(rig, request_of_old_generation):
    """A rebalance did not wait for it: the broker knows its id, which another member of its name would have replaced.
    Heartbeats are answered all the time."""
    await rig.beats(20, RebalanceInProgressError.errno)
    if request_of_old_generation is COMMIT:
        code = IllegalGenerationError.errno
        rig.answer = SimpleNamespace(topics=[("requests", [(0, OK), (3, code)])])
        rig.delay_s = 0.0
        await rig.group.consumer._client.send(0, COMMIT)
    else:
        await rig.asks(HEARTBEAT, IllegalGenerationError.errno)
    await rig.group.on_partitions_revoked([])
    assert rig.fatal == []
    assert rig.group.evictions == 1
    await rig.joins()
    await rig.thrown_out()
    assert len(rig.fatal) == 1


@pytest.mark.parametrize("joined", [True, False])
async def test_a_member_that_is_fenced_while_it_joins_has_a_twin(rig, joined, monkeypatch):
    """The client has no class for the error and would repeat the join for ever. A consumer that has not joined yet is
    fenced by the process before it, which is going: it tries again."""
    monkeypatch.setattr(consumer_group, "BACKOFF_S", 0.0)
    rig.group._joined = joined
    await rig.asks(JOIN, 82)
    polls = iter(range(3))

    async def getmany(**_):
        if next(polls, None) is None:
            raise EndOfTestError
        raise KafkaError("UnknownError()")

    rig.group.consumer.getmany = getmany
    with pytest.raises(EndOfTestError):
        await rig.group._poll()
    assert bool(rig.fatal) == joined
    assert "KafkaError" in rig.group.trouble


class EndOfTestError(Exception):
    """Ends a routine that has no end."""
