"""Suspects are tried one at a time: who comes through, who is condemned, who is handed back, who takes his time."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.poison import MAX_CRASHES
from nephila.kernel.messages import DeadLetter, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, SEEDS
from nephila_cluster.kafka.consumer.commit_metadata import CRASHES_TO_ISOLATE, HELD, CommitMetadata
from nephila_cluster.kafka.consumer.kafka_subscription import KafkaSubscription, Routed
from nephila_cluster.kafka.consumer.poison import MAX_SUSPECTS, PoisonIsolation, Suspect

TP = TopicPartition("seeds", 3)
NOTE = CommitMetadata(True, CRASHES_TO_ISOLATE)


class Room:
    """An isolation, a reader that keeps what it gets, and what was written before each trial."""

    def __init__(self, timeout_s: float = 5.0, blame_s: float = 5.0, control_s: float = 0.0) -> None:
        self.clock = ManualClock()
        self.bus = LocalBus(self.clock)
        self.got: list[Delivery] = []
        self.dead: list[DeadLetter] = []
        self.bus.subscribe(DEAD, "undertaker", lambda d: (self.dead.append(d.message), d.ack()), credits=9)
        self.ended: list[Seed] = []
        self.reader = KafkaSubscription(self.bus, SEEDS, "g", self.got.append, 99, self._on_dead, lambda: None)
        self.notes: list[CommitMetadata] = []
        """Of trials."""
        self.history: list[CommitMetadata] = []
        self.said: dict[TopicPartition, CommitMetadata] = {}
        """What stands beside each position now."""
        self.released: list[TopicPartition] = []
        self.ours = True
        self.isolation = PoisonIsolation(
            self.clock, self._commit_metadata, self._quiet, self.released.append, control_s, timeout_s, blame_s
        )

    def _on_dead(self, message: Seed, error: BaseException) -> tuple[Receipt, ...]:
        self.ended.append(message)
        return ()

    async def _commit_metadata(self, tp: TopicPartition, metadata: CommitMetadata) -> bool:
        self.said[tp] = metadata
        self.history.append(metadata)
        if metadata.in_hand:
            self.notes.append(metadata)
        return self.ours

    async def _quiet(self) -> None:
        while any(self.reader.in_handlers.values()):  # noqa: ASYNC110
            await asyncio.sleep(0)

    def suspect(self, offset: int, *urls: str, tp: TopicPartition = TP) -> Suspect:
        """A record that was taken."""
        self.bus.unacked += len(urls)
        suspect = Suspect(
            tp, self.reader, offset, [Routed(tp.partition, Seed(url=url)) for url in urls], Receipt(len(urls))
        )
        self.isolation.take(suspect)
        return suspect

    @property
    def urls(self) -> list[str]:
        """What is in hand."""
        return [delivery.message.url for delivery in self.got if not delivery.acked]

    async def turn(self) -> None:
        """Let the isolation do what it can."""
        for _ in range(12):
            self.clock.run_due()
            await asyncio.sleep(0)


async def test_one_at_a_time_and_written_down_before():
    """Of all accused partitions together; when the last has come through nobody is accused."""
    room = Room()
    other = TopicPartition("seeds", 4)
    room.isolation.isolate(TP, NOTE, 7, 9)
    room.isolation.isolate(other, NOTE, 0, 1)
    suspects = [room.suspect(7, "a", "b"), room.suspect(0, "c", tp=other), room.suspect(8, "d")]
    active = asyncio.ensure_future(room.isolation.run())
    for number, url in enumerate("abcd"):
        await room.turn()
        assert room.urls == [url]
        assert len(room.notes) == number + 1
        assert [metadata for metadata in room.said.values() if metadata.in_hand] == room.notes[-1:]
        room.got[-1].ack()
    await active
    assert set(room.said.values()) == {HELD}
    assert [(metadata.offset, metadata.index) for metadata in room.notes] == [(7, 0), (7, 1), (0, 0), (8, 0)]
    assert all(metadata.held and metadata.solo_crashes == 0 for metadata in room.notes)
    assert all(suspect.receipt.done for suspect in suspects)
    assert not room.isolation.active
    assert sorted(room.released) == [TP, other]
    assert room.bus.unacked == 0


async def test_a_guilty_one_is_not_delivered():
    """It ends as a dead letter and its service says what becomes of its URL; the next is tried as an innocent."""
    room = Room()
    room.isolation.isolate(TP, CommitMetadata(True, 4, 7, 1, solo_crashes=MAX_CRASHES), 7, 8)
    suspect = room.suspect(7, "a", "b", "c")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    room.got[0].ack()
    await room.turn()
    assert [(letter.url, letter.attempts) for letter in room.dead] == [("b", 4)]
    assert [message.url for message in room.ended] == ["b"]
    assert room.urls == ["c"]
    assert room.notes[-1].solo_crashes == 0
    room.got[-1].ack()
    await active
    assert suspect.receipt.done
    assert room.bus.unacked == 0


async def test_one_that_takes_its_time_is_no_killer():
    """Its partition goes on as usual, with what was kept of it."""
    room = Room(timeout_s=0.01)
    room.isolation.isolate(TP, NOTE, 7, 100)
    room.suspect(7, "a", "b")
    room.suspect(8, "c")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    room.clock.advance(0.01)
    await room.turn()
    await active
    assert room.urls == ["a", "b", "c"]
    assert len(room.notes) == 1
    assert room.released == [TP]


@pytest.mark.parametrize("how", ["left", "not ours"])
async def test_a_partition_that_leaves_takes_its_cases_along(how):
    """Nothing more of it is handed on, and what was not is not counted as in hand."""
    room = Room()
    room.isolation.isolate(TP, NOTE, 7, 100)
    room.suspect(7, "a", "b")
    room.suspect(8, "c")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    if how == "left":
        room.isolation.drop(frozenset({3}))
    room.ours = False
    room.got[0].ack()
    await active
    assert len(room.got) == 1
    assert room.bus.unacked == 0
    assert not room.isolation.active


async def test_only_so_many_are_tried():
    """What lies farther behind goes on as usual."""
    room = Room()
    room.isolation.isolate(TP, NOTE, 0, 10**6)
    for offset in range(MAX_SUSPECTS):
        room.suspect(offset, str(offset))
    active = asyncio.ensure_future(room.isolation.run())
    for _ in range(MAX_SUSPECTS):
        await room.turn()
        room.got[-1].ack()
    await active
    assert room.released == [TP]


async def test_one_that_is_in_hand_for_long_is_blamed_no_more():
    """A crash counts only soon after the delivery; it is still alone until it is processed or slow."""
    room = Room(blame_s=0.01)
    room.isolation.isolate(TP, NOTE, 7, 9)
    room.suspect(7, "a")
    room.suspect(8, "b")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    assert room.said[TP].in_hand
    room.clock.advance(0.01)
    await room.turn()
    assert room.said[TP].opened().solo_crashes == 0
    assert room.urls == ["a"]
    room.got[-1].ack()
    await room.turn()
    room.got[-1].ack()
    await active
    assert room.said[TP] == HELD


async def test_a_suspect_that_crashed_a_member_waits_for_a_member_with_nothing_in_hand():
    """The wait is written down before it; a crash in it clears the suspect."""
    room = Room()
    room.isolation.isolate(TP, NOTE.probing(7, 1).opened(), 7, 8)
    room.suspect(7, "a", "b")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    assert room.urls == ["a"]
    assert not any(metadata.control for metadata in room.history)
    room.got[-1].ack()
    await room.turn()
    waiting, trial = room.history[-2:]
    assert (waiting.control, waiting.in_hand, waiting.opened()) == (True, False, HELD)
    assert (trial.control, trial.in_hand, trial.opened().solo_crashes) == (False, True, MAX_CRASHES)
    room.got[-1].ack()
    await active


async def test_messages_of_others_stay_in_hand_while_no_message_is_accused():
    """Members ended without a message that was tried: the partition alone goes one by one."""
    room = Room()
    room.isolation.isolate(TP, NOTE, 7, 9)
    room.reader.offer(5, Routed(5, Seed(url="other")), Receipt())
    room.suspect(7, "a")
    room.suspect(8, "b")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    assert not room.isolation.exclusive
    assert room.urls == ["other", "a"]
    room.got[1].ack()
    await room.turn()
    assert room.urls == ["other", "b"]
    room.got[2].ack()
    await active
    assert room.released == [TP]


async def test_an_accused_message_is_alone_until_it_has_come_through():
    """Then the others go on, while the rest of its partition is tried."""
    room = Room()
    room.isolation.isolate(TP, CommitMetadata(True, 3, 7, 0, solo_crashes=1), 7, 9)
    room.reader.offer(5, Routed(5, Seed(url="other")), Receipt())
    room.suspect(7, "a")
    room.suspect(8, "b")
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    assert room.isolation.exclusive
    assert room.urls == ["other"]
    room.got[0].ack()
    await room.turn()
    assert room.urls == ["a"]
    room.got[1].ack()
    await room.turn()
    assert not room.isolation.exclusive
    assert room.isolation.isolated == {TP: 3}
    room.got[2].ack()
    await active
    assert room.dead == []


async def test_a_member_that_lives_takes_its_crash_back():
    """The message in hand is the last one that is alone; all others follow as usual."""
    room = Room()
    other = TopicPartition("seeds", 4)
    room.isolation.isolate(TP, NOTE, 7, 10)
    room.isolation.isolate(other, NOTE, 0, 9)
    for offset, url in enumerate("abc", 7):
        room.suspect(offset, url)
    active = asyncio.ensure_future(room.isolation.run())
    await room.turn()
    assert room.urls == ["a"]
    room.isolation.pardon(other)  # none of its messages is here yet
    assert (room.released, room.isolation.isolated) == ([other], {TP: CRASHES_TO_ISOLATE})
    room.isolation.pardon(TP)
    room.got[0].ack()
    await active
    assert room.urls == ["b", "c"]
    assert room.released == [other, TP]


async def test_one_crash_taken_back_of_several_leaves_the_isolation():
    """The count falls, and what a crash has said of the message as well."""
    room = Room()
    room.isolation.isolate(TP, CommitMetadata(True, 4, 7, 0, solo_crashes=1), 7, 9)
    room.isolation.pardon(TP)
    assert room.isolation.isolated == {TP: 3}
    assert not room.isolation.exclusive
