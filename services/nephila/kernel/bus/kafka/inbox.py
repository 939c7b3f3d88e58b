"""What a group has taken from its partitions: records unpacked, offered to the readers, and bounded.

Invariant: of each partition records are taken in the order of their offsets, none twice and none left out; a gap in
the offsets is a loss and refused, unless leases bring back what is missing. Bytes that are no message end as dead
letters; what a newer release wrote stays where it is, and its partition waits. No I/O but the blob store's, on a
thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.dead_letters import letter_of
from nephila.kernel.bus.kafka.claim_check import Claims
from nephila.kernel.bus.kafka.commit_metadata import AT_WORK, written
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.bus.kafka.offsets import Position
from nephila.kernel.bus.kafka.poison import Case, Court
from nephila.kernel.bus.kafka.wire import TooNew, message_of, unseal
from nephila.kernel.bus.subscription import Subscription
from nephila.kernel.messages import Frame
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError, UserError
from nephila.kernel.topics import DEAD

log = logging.getLogger(__name__)

CLAIM_RETRY_S = 1.0


class Place:
    """One partition of one topic while it is ours."""

    __slots__ = ("gone", "held_bytes", "leaving", "note", "objects", "position", "ready", "stopped", "wanted")

    def __init__(self) -> None:
        self.position: Position | None = None
        self.ready = False
        """Opened: it may be read."""
        self.leaving = False
        self.gone = False
        """Not ours any more: what still ends counts for nothing."""
        self.note = AT_WORK
        """What is written beside the position when it is committed."""
        self.held_bytes = 0
        self.stopped = False
        """Refused: what comes next must not be read by this program."""
        self.wanted: tuple[int, list[str]] | None = None
        """Record that waits for objects of the blob store, and their names."""
        self.objects: dict[str, bytes | None] = {}
        """Objects fetched for it; None is one that is gone."""


class KafkaSubscription(Subscription):
    """A subscription that knows what is in hand of each partition, for hand-overs."""

    __slots__ = ("held_bytes", "in_hand", "on_ended", "paused")

    def prepare(self, on_ended: Callable[[], None]) -> KafkaSubscription:
        """Call back whenever a message has ended."""
        self.in_hand: Counter[int] = Counter()
        self.held_bytes = 0
        self.paused = False
        self.on_ended = on_ended
        return self

    def _begin(self, partition: int, message: Any, receipt: Receipt) -> None:
        self.in_hand[partition] += 1
        ended = Receipt()
        ended.add_done_callback(lambda: self._ended(partition, receipt))
        if self.topic.leased:
            receipt.resolve_one()
        super()._begin(partition, message, ended)

    def press(self, partitions: frozenset[int]) -> None:
        """Deliver what waits of these partitions without regard to credit."""
        pressed = [item for item in self.waiting if item[0] in partitions]
        self.waiting = deque(item for item in self.waiting if item[0] not in partitions)
        for item in pressed:
            self.credit -= 1
            self._begin(*item)

    def _ended(self, partition: int, outer: Receipt) -> None:
        self.in_hand[partition] -= 1
        if not self.topic.leased:
            outer.resolve_one()
        self.on_ended()


class Intake:
    """See the module. `topics`: the readers by the broker's names of their topics."""

    def __init__(self, config: KafkaConfig, claims: Claims | None, topics: dict[str, KafkaSubscription]) -> None:
        self.config = config
        self.claims = claims
        self.topics = topics
        self.places: dict[TopicPartition, Place] = {}
        self.court: Court | None = None
        """Where what may be deadly is tried."""
        self.refused = False
        """Something stays unread until a person has looked at it."""
        self._changed = asyncio.Event()

    @property
    def patient(self) -> bool:
        """No host waits for anything that is read here."""
        return all(reader.topic.patient for reader in self.topics.values())

    def ended(self) -> None:
        """A message has ended."""
        self._changed.set()

    # ---- taking

    def ahead(self, batches: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> dict[TopicPartition, int]:
        """Positions behind what was read of leased topics. They are committed before any of it is delivered: what a
        member that dies then has in hand comes back by its lease, when nobody can be at it any more. Read again at
        once by its successor it would be done twice, and the second time at no distance from what followed it."""
        return {
            tp: records[-1].offset + 1
            for tp, records in batches.items()
            if self.topics[tp.topic].topic.leased and (place := self.places.get(tp)) is not None
            if place.ready and not place.leaving and records
        }

    def next_of(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of what is to be taken next of these, as far as they are ours."""
        return {
            tp: place.position.next
            for tp in tps
            if (place := self.places.get(tp)) is not None and place.position is not None
        }

    def take(self, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> UserError | None:
        """Offer records to their reader; returns why the rest of them is refused."""
        place = self.places.get(tp)
        if place is None or not place.ready or place.leaving or place.position is None:
            return None
        reader = self.topics[tp.topic]
        for record in records:
            if place.stopped or place.wanted is not None:
                return None
            if record.offset < place.position.next:
                continue
            if record.offset > place.position.next:
                lost = self.outside(tp, place.position.next, record.offset, record.offset)
                if lost is not None:
                    return lost
            refused = self._take_one(reader, place, place.position, record)
            if refused is not None:
                return refused
        return None

    def _take_one(
        self, reader: KafkaSubscription, place: Place, position: Position, record: ConsumerRecord
    ) -> UserError | None:
        where = f"{record.topic}/{record.partition} at {record.offset}"
        try:
            frames = unseal(record.value, record.headers)
            missing = [f.claim for f in frames if f.claim and f.claim not in place.objects]
            if missing:
                place.wanted = (record.offset, missing)
                return None
            messages = [self._message(reader, place, frame) for frame in frames]
        except PermanentError as error:
            log.error("%s: dead letter: %s", where, error)
            place.objects.clear()
            self._bury(reader, position, record, str(error))
            return None
        except TooNew as error:
            place.stopped = self.refused = True
            return NotReadyError(
                f"{where} was written by a newer release ({error}): update this service; nothing is lost"
            )
        place.objects.clear()
        self._offer(reader, place, position, record, messages)
        return None

    def _message(self, reader: KafkaSubscription, place: Place, frame: Frame) -> Any:
        if not frame.claim:
            return message_of(reader.topic.message, frame)
        data = place.objects[frame.claim]
        if data is None:
            raise PermanentError(f"object {frame.claim} is gone from the blob store")
        return message_of(reader.topic.message, Frame(data, frame.encoding))

    def _offer(
        self, reader: KafkaSubscription, place: Place, position: Position, record: ConsumerRecord, messages: list[Any]
    ) -> None:
        finish = position.take(record.offset)
        size = len(record.value or b"")
        reader.held_bytes += size
        place.held_bytes += size

        def done() -> None:
            if not place.gone:
                reader.held_bytes -= size
                place.held_bytes -= size
            finish()

        receipt = Receipt(len(messages))
        receipt.add_done_callback(done)
        reader.bus.unacked += len(messages)
        tp = TopicPartition(record.topic, record.partition)
        if self.court is not None and tp in self.court:
            self.court.take(Case(tp, reader, record.offset, messages, receipt))
            return
        for message in messages:
            reader.offer(record.partition, message, receipt)

    def _bury(self, reader: KafkaSubscription, position: Position, record: ConsumerRecord, error: str) -> None:
        """The bytes themselves go to the dead letters, as far as they fit."""
        letter = letter_of(reader.topic, reader.group, record.partition, None, error, 1)
        data = record.value or b""
        if len(data) <= self.config.inline_bytes or self.claims is not None:
            letter.message = data
        else:
            letter.error += f" ({len(data)} bytes, not kept)"
        finish = position.take(record.offset)
        reader.bus.publish(DEAD, record.partition, letter).add_done_callback(finish)

    def outside(self, tp: TopicPartition, position: int, first: int, last: int) -> UserError | None:
        """A position that the log does not have: None when going on without what is missing is right."""
        topic = self.topics[tp.topic].topic
        place = self.places.get(tp)
        if topic.leased or self.config.accept_loss:
            if place is not None and place.position is not None:
                place.position.next = first
            return None
        if place is not None:
            place.stopped = self.refused = True
        if position < first:
            what = f"{first - position} records were deleted before they were read (retention {topic.retention_s:g} s)"
        else:
            what = f"the log ends at {last}: the topic was deleted or its broker lost data"
        remedy = "to go on without them set NEPHILA_KAFKA__ACCEPT_LOSS=true for one start"
        return NotReadyError(f"{tp.topic}/{tp.partition}: reading had come to {position}, but {what}; {remedy}")

    def cut(self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[UserError]:
        """Why partitions are refused whose log ends before what was read of it; positions are older than ends."""
        found = (
            self.outside(tp, position, ends[tp], ends[tp])
            for tp, position in positions.items()
            if tp in self.places and ends.get(tp, position) < position
        )
        return [refused for refused in found if refused is not None]

    # ---- the blob store

    def wanted(self, tp: TopicPartition) -> tuple[int, list[str]] | None:
        """The record that waits for objects which nobody fetches yet."""
        place = self.places.get(tp)
        return place.wanted if place is not None and not place.objects else None

    async def fetch(self, tp: TopicPartition, names: Collection[str]) -> None:
        """Get objects for a record that waits; it tries as long as the store cannot be read."""
        place = self.places[tp]
        for name in names:
            place.objects[name] = b""
        for name in names:
            place.objects[name] = await self._get(name)
        place.wanted = None

    async def _get(self, name: str) -> bytes | None:
        while self.claims is not None:
            try:
                return await asyncio.to_thread(self.claims.get, name)
            except PermanentError:
                return None
            except TemporaryError as error:
                log.warning("%s; trying again", error)
                await asyncio.sleep(CLAIM_RETRY_S)
        return None

    # ---- what may be read

    def open(self, tp: TopicPartition) -> bool:
        """Whether a partition may be read now."""
        place = self.places.get(tp)
        if place is None or not place.ready or place.leaving or place.stopped or place.wanted is not None:
            return False
        if self.court is not None and self.court.sitting and tp not in self.court:
            return False
        return not self._full(self.topics[tp.topic])

    def _full(self, reader: KafkaSubscription) -> bool:
        """Paused at the limit, resumed at half of it: a pause throws away what was read ahead."""
        share = 2 if reader.paused else 1
        reader.paused = (
            len(reader.waiting) * share > self.config.buffer_messages
            or reader.held_bytes * share > self.config.buffer_bytes
        )
        return reader.paused

    def reading(self) -> dict[TopicPartition, int]:
        """Positions of what may be read now."""
        return {tp: place.position.next for tp, place in self.places.items() if place.position and self.open(tp)}

    # ---- positions and partitions

    def offsets(self) -> dict[TopicPartition, int]:
        """What has to be committed."""
        return {
            tp: place.position.committed_to
            for tp, place in self.places.items()
            if place.position is not None and place.position.committed_to > place.position.sent
        }

    def notes(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, str]]:
        """These positions with what is written beside them."""
        return {
            tp: (offset, written(place.note.left() if place.leaving else place.note))
            for tp, offset in offsets.items()
            if (place := self.places.get(tp)) is not None
        }

    def last_words(self, partitions: frozenset[int]) -> dict[TopicPartition, int]:
        """Positions of partitions that are let go, to be committed though they have not moved: nobody crashed here."""
        return {
            tp: place.position.committed_to
            for tp, place in self.places.items()
            if tp.partition in partitions and place.position is not None and not place.stopped
        }

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These have been."""
        for tp, offset in offsets.items():
            place = self.places.get(tp)
            if place is not None and place.position is not None:
                place.position.sent = max(place.position.sent, offset)

    def leave(self, partitions: frozenset[int], heard: bool = False) -> frozenset[int]:
        """Deliver nothing more of these; returns those that were not leaving before. `heard`: there is a service that
        gives back what waits of leased topics (`press`)."""
        fresh = set()
        for tp, place in self.places.items():
            if tp.partition in partitions and not place.leaving:
                place.leaving = True
                fresh.add(tp.partition)
        if self.court is not None:
            self.court.drop(frozenset(fresh))
        for reader in self.topics.values():
            if not (heard and reader.topic.leased):
                reader.drop(frozenset(fresh))
        return frozenset(fresh)

    def press(self, partitions: frozenset[int]) -> None:
        """Deliver what waits of leased topics, credit or not: of a record half of which was fetched here the rest must
        not come again elsewhere, and bring the first half along."""
        for reader in self.topics.values():
            if reader.topic.leased:
                reader.press(partitions)

    def drop(self, partitions: frozenset[int]) -> None:
        """These are not ours any more; what handlers still hold ends without effect on positions."""
        if self.court is not None:
            self.court.drop(partitions)
        for tp in [tp for tp in self.places if tp.partition in partitions]:
            place = self.places.pop(tp)
            place.gone = True
            self.topics[tp.topic].held_bytes -= place.held_bytes
        for reader in self.topics.values():
            reader.drop(partitions)

    async def quiet(self, partitions: frozenset[int]) -> None:
        """Return once nothing of these is in a handler's hand."""
        while any(reader.in_hand[p] for reader in self.topics.values() for p in partitions):
            self._changed.clear()
            await self._changed.wait()

    def acquitted(self, tp: TopicPartition) -> None:
        """Nothing of a partition is suspicious any more."""
        if tp in self.places:
            self.places[tp].note = AT_WORK

    async def all_quiet(self) -> None:
        """Return once nothing at all is, and nothing waits for credit."""
        while any(reader.waiting or any(reader.in_hand.values()) for reader in self.topics.values()):
            self._changed.clear()
            await self._changed.wait()
