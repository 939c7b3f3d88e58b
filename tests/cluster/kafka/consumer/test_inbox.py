"""Inbox without a broker: order, gaps, limits, and what a partition that leaves takes along."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import FetchRequest, Frame, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, REQUESTS, SEEDS
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer.commit_metadata import HELD, CommitMetadata
from nephila_cluster.kafka.consumer.inbox import Inbox
from nephila_cluster.kafka.consumer.kafka_subscription import KafkaSubscription
from nephila_cluster.kafka.consumer.offsets import PartitionPosition
from nephila_cluster.kafka.consumer.partition_state import PartitionState, Phase
from nephila_cluster.kafka.wire import frame_of, headers_of, seal, unseal


async def no_metadata(tp: TopicPartition, metadata: object) -> bool:
    """No partition is isolated here."""
    raise AssertionError(f"metadata of {tp} is stored")


class Rig:
    """A topic with one reader that keeps what it gets, and its partitions."""

    def __init__(self, topic=SEEDS, credits: int = 2, owned=None, **settings: object) -> None:
        self.bus, self.got, self.topic = LocalBus(ManualClock()), [], topic
        self.inbox = Inbox(KafkaConfig(**settings), ManualClock(), None, no_metadata, owned=owned)
        self.reader = KafkaSubscription(self.bus, topic, "g", self.got.append, credits, None, self.inbox.ended)
        self.inbox.topics[topic.name] = self.reader
        self.next: dict[int, int] = {}

    def open(self, partition: int, start: int = 0) -> TopicPartition:
        """A partition that is ours from an offset on."""
        tp = TopicPartition(self.topic.name, partition)
        state = self.inbox.partition_states[tp] = PartitionState()
        state.position, state.phase = PartitionPosition(start), Phase.OPEN
        return tp

    def take(self, tp: TopicPartition, *offsets: int):
        """Records at these offsets, two messages each."""
        make = FetchRequest if self.topic is REQUESTS else Seed
        return self.take_frames(
            tp,
            {
                offset: [frame_of(make, make(url=f"{tp.partition}-{offset}{half}")) for half in "ab"]
                for offset in offsets
            },
        )

    def take_frames(self, tp: TopicPartition, records: dict[int, list[Frame]], headers=None):
        """Records of these frames, by offset."""
        found = [
            SimpleNamespace(
                timestamp=1_000,
                topic=tp.topic,
                partition=tp.partition,
                offset=offset,
                value=seal(frames),
                headers=headers or headers_of(self.inbox.topics[tp.topic].topic.message),
            )
            for offset, frames in records.items()
        ]
        return self.inbox.take(tp, found)

    @property
    def urls(self) -> list[str]:
        """What the reader was given."""
        return [delivery.message.url for delivery in self.got if delivery.message is not None]


def test_records_are_taken_once_and_in_order():
    """What comes again after a rebalance was taken before."""
    rig = Rig(credits=99)
    tp = rig.open(0)
    assert rig.take(tp, 0, 1) is None
    assert rig.take(tp, 0, 1, 2) is None
    assert rig.urls == ["0-0a", "0-0b", "0-1a", "0-1b", "0-2a", "0-2b"]


def test_a_record_is_done_when_all_its_messages_are():
    """Half of it acked is nothing to commit."""
    rig = Rig()
    tp = rig.open(0)
    rig.take(tp, 0)
    rig.got[0].ack()
    assert rig.inbox.offsets() == {}
    rig.got[1].ack()
    assert rig.inbox.offsets() == {tp: 1}
    rig.inbox.committed({tp: 1})
    assert rig.inbox.offsets() == {}


def test_one_unreadable_message_is_one_dead_letter():
    """The others of its record are delivered once, in order; the record is done with its letter."""
    rig, letters = Rig(credits=99), []
    rig.bus.subscribe(DEAD, "undertaker", letters.append, credits=9)
    tp = rig.open(0)
    a, b, c = (frame_of(Seed, Seed("j", url)) for url in "abc")
    broken = Frame(b"\xff\xfe no message")
    assert rig.take_frames(tp, {0: [a, broken, b], 1: [c]}) is None
    assert rig.urls == ["a", "b", "c"]
    for delivery in rig.got:
        delivery.ack()
    assert rig.inbox.offsets() == {}
    (letter,) = letters
    assert unseal(Seed, letter.message.message, headers_of(Seed)) == [broken]
    letter.ack()
    assert rig.inbox.offsets() == {tp: 2}
    assert rig.bus.unacked == 0


def test_records_of_an_earlier_number_are_read():
    """Its records may hold several messages, too."""
    rig = Rig(credits=99)
    frames = [frame_of(Seed, Seed("j", url)) for url in "ab"]
    assert rig.take_frames(rig.open(0), {0: frames}, [("v", b"1"), headers_of(Seed)[1]]) is None
    assert rig.urls == ["a", "b"]


def test_a_gap_is_a_loss_unless_leases_repair_it():
    """One line, and the partition stands still; requests go on; accepted, everything does."""
    rig = Rig(credits=99)
    tp = rig.open(3)
    refused = rig.take(tp, 0, 4)
    assert "seeds/3: the next offset to read is 1, but 3 records were deleted" in str(refused)
    assert not rig.inbox.open(tp)
    for other in (Rig(REQUESTS, 99), Rig(SEEDS, 99, accept_loss=True)):
        tp = other.open(3)
        assert other.take(tp, 0, 4) is None
        assert other.urls[-1] == "3-4b"


def test_a_position_beyond_the_log_is_refused_too():
    """The topic was deleted and made anew, or its broker lost data."""
    rig = Rig()
    tp = rig.open(0, 9)
    assert "the log ends at 2" in str(rig.inbox.check_gap(tp, 9, 0, 2))


def test_a_log_that_ends_before_what_was_read_of_it_is_refused():
    """The topic was made anew under our feet; what is published meanwhile is no gap to be skipped."""
    rig = Rig(credits=99)
    tp, other = rig.open(0), rig.open(1)
    rig.take(tp, 0, 1, 2)
    positions = rig.inbox.reading()
    assert rig.inbox.check_log_end(positions, {tp: 3, other: 0}) == []
    (refused,) = rig.inbox.check_log_end(positions, {tp: 1, other: 0})
    assert "seeds/0: the next offset to read is 3, but the log ends at 1" in str(refused)
    assert not rig.inbox.open(tp)


def test_what_leaves_takes_its_bytes_and_its_waiting_messages_along():
    """The limits of the others are not used up by what is gone, before or after its last message has ended."""
    rig = Rig()
    gone, stays = rig.open(0), rig.open(1)
    rig.take(gone, 0, 1, 2)
    rig.take(stays, 0)
    assert len(rig.got) == 2
    assert rig.bus.unacked == 8
    rig.inbox.leave(frozenset({0}))
    assert rig.bus.unacked == 4
    rig.inbox.drop(frozenset({0}))
    kept = rig.reader.held_bytes
    assert kept == rig.inbox.partition_states[stays].held_bytes > 0
    for delivery in rig.got.copy():
        delivery.ack()
    assert rig.reader.held_bytes == kept
    assert rig.urls[-2:] == ["1-0a", "1-0b"]
    for delivery in rig.got:
        delivery.ack()
    assert (rig.reader.held_bytes, rig.bus.unacked) == (0, 0)
    assert rig.inbox.offsets() == {stays: 1}


def test_waiting_requests_of_a_leaving_partition_are_delivered_to_be_given_back():
    """Half of a record was fetched here: the rest must not come again elsewhere and bring that half along."""
    rig = Rig(REQUESTS, credits=1)
    tp, other = rig.open(0), rig.open(1)
    rig.take(tp, 0)
    rig.take(other, 0)
    assert rig.inbox.offsets() == {}
    rig.inbox.leave(frozenset({0}), has_listener=True)
    rig.inbox.force_deliver(frozenset({0}))
    assert rig.urls == ["0-0a", "0-0b"]
    assert rig.inbox.offsets() == {tp: 1}
    for delivery in rig.got.copy():
        delivery.ack()
    assert rig.urls == ["1-0a"]


async def test_a_leaving_partition_is_quiet_when_its_last_message_has_ended():
    """Messages of the others do not count."""
    rig = Rig(credits=99)
    leaving, other = rig.open(0), rig.open(1)
    rig.take(leaving, 0)
    rig.take(other, 0)
    rig.got[0].ack()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(rig.inbox.idle(frozenset({0})), 0.01)
    rig.got[1].ack()
    await rig.inbox.idle(frozenset({0}))


def test_other_partitions_are_read_while_one_is_isolated():
    """They pause only while a message is accused; a member that lives takes the accusation back."""
    rig = Rig()
    tp, other = rig.open(1, 7), rig.open(2)
    state = rig.inbox.partition_states[tp]
    state.metadata = CommitMetadata(True, 2)
    rig.inbox.isolation.isolate(tp, state.metadata, 7, 9)
    assert (rig.inbox.open(tp), rig.inbox.open(other)) == (True, True)
    state.metadata = CommitMetadata(True, 3, 7, 0, solo_crashes=1)
    rig.inbox.isolation.isolate(tp, state.metadata, 7, 9)
    assert (rig.inbox.open(tp), rig.inbox.open(other)) == (True, False)
    assert rig.inbox.pardon({1: 1}) == {tp: 7}
    assert (rig.inbox.open(tp), rig.inbox.open(other)) == (True, True)
    assert state.metadata == CommitMetadata(True, 2, 7, 0)
    assert rig.inbox.pardon({1: 2, 2: 1}) == {tp: 7, other: 0}
    assert not rig.inbox.isolation.active
    assert state.metadata == HELD
    assert rig.inbox.pardon({}) == {}


def test_it_is_full_at_the_limit_and_open_again_at_half():
    """A pause throws away what was read ahead, so it must not flutter."""
    rig = Rig(credits=1, buffer_messages=10)
    tp = rig.open(0)
    rig.take(tp, *range(5))
    assert rig.inbox.open(tp)
    rig.take(tp, 5)
    assert not rig.inbox.open(tp)
    while len(rig.reader.waiting) > 6:
        rig.got[-1].ack()
    assert not rig.inbox.open(tp)
    while len(rig.reader.waiting) > 5:
        rig.got[-1].ack()
    assert rig.inbox.open(tp)
