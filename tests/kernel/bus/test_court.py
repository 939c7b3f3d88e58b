"""Suspects are tried one at a time: who comes through, who is condemned, who is handed back, who takes his time."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.bus.kafka.commit_metadata import AT_WORK, CRASHES, GUILTY, Note
from nephila.kernel.bus.kafka.inbox import KafkaSubscription
from nephila.kernel.bus.kafka.poison import SUSPECTS, Case, Court
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import DeadLetter, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, SEEDS

TP = TopicPartition("seeds", 3)
NOTE = Note(True, CRASHES)


class Room:
    """A court, a reader that keeps what it gets, and what was written before each trial."""

    def __init__(self, trial_s: float = 5.0) -> None:
        self.bus = LocalBus(ManualClock())
        self.got: list[Delivery] = []
        self.dead: list[DeadLetter] = []
        self.bus.subscribe(DEAD, "undertaker", lambda d: (self.dead.append(d.message), d.ack()), credits=9)
        self.ended: list[Seed] = []
        reader = KafkaSubscription(self.bus, SEEDS, "g", self.got.append, 99, self._on_dead)
        self.reader = reader.prepare(lambda: None)
        self.notes: list[Note] = []
        """Of trials."""
        self.said: dict[TopicPartition, Note] = {}
        """What stands beside each position now."""
        self.released: list[TopicPartition] = []
        self.ours = True
        self.court = Court(self._write, self._quiet, self.released.append, trial_s)

    def _on_dead(self, message: Seed, error: BaseException) -> tuple[Receipt, ...]:
        self.ended.append(message)
        return ()

    async def _write(self, tp: TopicPartition, note: Note) -> bool:
        self.said[tp] = note
        if note.index >= 0:
            self.notes.append(note)
        return self.ours

    async def _quiet(self) -> None:
        while any(self.reader.in_hand.values()):  # noqa: ASYNC110
            await asyncio.sleep(0)

    def case(self, offset: int, *urls: str, tp: TopicPartition = TP) -> Case:
        """A record that was taken."""
        self.bus.unacked += len(urls)
        case = Case(tp, self.reader, offset, [Seed(url=url) for url in urls], Receipt(len(urls)))
        self.court.take(case)
        return case

    @property
    def urls(self) -> list[str]:
        """What is in hand."""
        return [delivery.message.url for delivery in self.got if not delivery.acked]

    async def turn(self) -> None:
        """Let the court do what it can."""
        for _ in range(9):
            await asyncio.sleep(0)


async def test_one_at_a_time_and_written_down_before():
    """Of all accused partitions together; when the last has come through nobody is accused."""
    room = Room()
    other = TopicPartition("seeds", 4)
    room.court.accuse(TP, NOTE, 7, 9)
    room.court.accuse(other, NOTE, 0, 1)
    cases = [room.case(7, "a", "b"), room.case(0, "c", tp=other), room.case(8, "d")]
    sitting = asyncio.ensure_future(room.court.sit())
    for number, url in enumerate("abcd"):
        await room.turn()
        assert room.urls == [url]
        assert len(room.notes) == number + 1
        assert [note for note in room.said.values() if note.index >= 0] == room.notes[-1:]
        room.got[-1].ack()
    await sitting
    assert set(room.said.values()) == {AT_WORK}
    assert [(note.offset, note.index) for note in room.notes] == [(7, 0), (7, 1), (0, 0), (8, 0)]
    assert all(note.held and note.deaths == 0 for note in room.notes)
    assert all(case.receipt.done for case in cases)
    assert not room.court.sitting
    assert sorted(room.released) == [TP, other]
    assert room.bus.unacked == 0


async def test_a_guilty_one_is_not_delivered():
    """It ends as a dead letter and its service says what becomes of its URL; the next is tried as an innocent."""
    room = Room()
    room.court.accuse(TP, Note(True, 4, 7, 1, GUILTY), 7, 8)
    case = room.case(7, "a", "b", "c")
    sitting = asyncio.ensure_future(room.court.sit())
    await room.turn()
    room.got[0].ack()
    await room.turn()
    assert [(letter.url, letter.attempts) for letter in room.dead] == [("b", 4)]
    assert [message.url for message in room.ended] == ["b"]
    assert room.urls == ["c"]
    assert room.notes[-1].deaths == 0
    room.got[-1].ack()
    await sitting
    assert case.receipt.done
    assert room.bus.unacked == 0


async def test_one_that_takes_its_time_is_no_killer():
    """Its partition goes on as usual, with what was kept of it."""
    room = Room(trial_s=0.01)
    room.court.accuse(TP, NOTE, 7, 100)
    room.case(7, "a", "b")
    room.case(8, "c")
    await room.court.sit()
    assert room.urls == ["a", "b", "c"]
    assert len(room.notes) == 1
    assert room.released == [TP]


@pytest.mark.parametrize("how", ["left", "not ours"])
async def test_a_partition_that_leaves_takes_its_cases_along(how):
    """Nothing more of it is handed on, and what was not is not counted as in hand."""
    room = Room()
    room.court.accuse(TP, NOTE, 7, 100)
    room.case(7, "a", "b")
    room.case(8, "c")
    sitting = asyncio.ensure_future(room.court.sit())
    await room.turn()
    if how == "left":
        room.court.drop(frozenset({3}))
    room.ours = False
    room.got[0].ack()
    await sitting
    assert len(room.got) == 1
    assert room.bus.unacked == 0
    assert not room.court.sitting


async def test_only_so_many_are_tried():
    """What lies farther behind goes on as usual."""
    room = Room()
    room.court.accuse(TP, NOTE, 0, 10**6)
    for offset in range(SUSPECTS):
        room.case(offset, str(offset))
    sitting = asyncio.ensure_future(room.court.sit())
    for _ in range(SUSPECTS):
        await room.turn()
        room.got[-1].ack()
    await sitting
    assert room.released == [TP]
