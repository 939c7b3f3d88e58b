"""What a group has taken from its partitions: records unpacked, offered to the readers, and bounded.

Invariant: of each partition records are taken in the order of their offsets, none twice and none left out; a gap in
the offsets is a loss and refused, unless leases bring back what is missing. Bytes that are no message end as dead
letters; what a newer release wrote stays where it is, and its partition waits. No I/O but the blob store's, on a
thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.dead_letters import dead_letter_for
from nephila.kernel.bus.kafka.claim_check import ClaimStore
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.bus.kafka.consumer.commit_metadata import HELD, encode_metadata
from nephila.kernel.bus.kafka.consumer.kafka_subscription import KafkaSubscription
from nephila.kernel.bus.kafka.consumer.offsets import Position
from nephila.kernel.bus.kafka.consumer.poison import PoisonIsolation, Suspect
from nephila.kernel.bus.kafka.wire import UnknownFormat, message_of, unseal
from nephila.kernel.messages import Frame
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError, UserError
from nephila.kernel.topics import DEAD

log = logging.getLogger(__name__)

CLAIM_RETRY_S = 1.0


class PartitionState:
    """One partition of one topic while it is ours."""

    __slots__ = (
        "held_bytes",
        "leaving",
        "metadata",
        "missing_objects",
        "objects",
        "position",
        "ready",
        "revoked",
        "stopped",
    )

    def __init__(self) -> None:
        self.position: Position | None = None
        self.ready = False
        """Opened: it may be read."""
        self.leaving = False
        self.revoked = False
        """Not ours any more: what still ends counts for nothing."""
        self.metadata = HELD
        """What is written beside the position when it is committed."""
        self.held_bytes = 0
        self.stopped = False
        """Refused: what comes next must not be read by this program."""
        self.missing_objects: tuple[int, list[str]] | None = None
        """Record that waits for objects of the blob store, and their names."""
        self.objects: dict[str, bytes | None] = {}
        """Objects fetched for it; None is one that is gone."""


class Inbox:
    """See the module. `topics`: the readers by the broker's names of their topics."""

    def __init__(
        self, config: KafkaConfig, claim_store: ClaimStore | None, topics: dict[str, KafkaSubscription]
    ) -> None:
        self.config = config
        self.claim_store = claim_store
        self.topics = topics
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.isolation: PoisonIsolation | None = None
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

    def leased_offsets(self, batches: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> dict[TopicPartition, int]:
        """Positions behind what was read of leased topics. They are committed before any of it is delivered: what a
        member that dies then has in hand comes back by its lease, when nobody can be at it any more. Read again at
        once by its successor it would be done twice, and the second time at no distance from what followed it."""
        return {
            tp: records[-1].offset + 1
            for tp, records in batches.items()
            if self.topics[tp.topic].topic.leased and (state := self.partition_states.get(tp)) is not None
            if state.ready and not state.leaving and records
        }

    def next_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of what is to be taken next of these, as far as they are ours."""
        return {
            tp: state.position.next
            for tp in tps
            if (state := self.partition_states.get(tp)) is not None and state.position is not None
        }

    def take(self, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> UserError | None:
        """Offer records to their reader; returns why the rest of them is refused."""
        state = self.partition_states.get(tp)
        if state is None or not state.ready or state.leaving or state.position is None:
            return None
        reader = self.topics[tp.topic]
        for record in records:
            if state.stopped or state.missing_objects is not None:
                return None
            if record.offset < state.position.next:
                continue
            if record.offset > state.position.next:
                lost = self.check_gap(tp, state.position.next, record.offset, record.offset)
                if lost is not None:
                    return lost
            refused = self._take_one(reader, state, state.position, record)
            if refused is not None:
                return refused
        return None

    def _take_one(
        self, reader: KafkaSubscription, state: PartitionState, position: Position, record: ConsumerRecord
    ) -> UserError | None:
        where = f"{record.topic}/{record.partition} at {record.offset}"
        try:
            frames = unseal(record.value, record.headers)
            missing = [f.claim for f in frames if f.claim and f.claim not in state.objects]
            if missing:
                state.missing_objects = (record.offset, missing)
                return None
            messages = [self._message(reader, state, frame) for frame in frames]
        except PermanentError as error:
            log.error("%s: dead letter: %s", where, error)
            state.objects.clear()
            self._dead_letter(reader, position, record, str(error))
            return None
        except UnknownFormat as error:
            state.stopped = self.refused = True
            return NotReadyError(
                f"{where} was written by another release ({error}): run one release in all services; nothing is lost"
            )
        state.objects.clear()
        self._offer(reader, state, position, record, messages)
        return None

    def _message(self, reader: KafkaSubscription, state: PartitionState, frame: Frame) -> Any:
        if not frame.claim:
            return message_of(reader.topic.message, frame)
        data = state.objects[frame.claim]
        if data is None:
            raise PermanentError(f"object {frame.claim} is gone from the blob store")
        return message_of(reader.topic.message, Frame(data, frame.encoding))

    def _offer(
        self,
        reader: KafkaSubscription,
        state: PartitionState,
        position: Position,
        record: ConsumerRecord,
        messages: list[Any],
    ) -> None:
        finish = position.take(record.offset)
        size = len(record.value or b"")
        reader.held_bytes += size
        state.held_bytes += size

        def done() -> None:
            if not state.revoked:
                reader.held_bytes -= size
                state.held_bytes -= size
            finish()

        receipt = Receipt(len(messages))
        receipt.add_done_callback(done)
        reader.bus.unacked += len(messages)
        tp = TopicPartition(record.topic, record.partition)
        if self.isolation is not None and tp in self.isolation:
            self.isolation.take(Suspect(tp, reader, record.offset, messages, receipt))
            return
        for message in messages:
            reader.offer(record.partition, message, receipt)

    def _dead_letter(self, reader: KafkaSubscription, position: Position, record: ConsumerRecord, error: str) -> None:
        """The bytes themselves go to the dead letters, as far as they fit."""
        letter = dead_letter_for(reader.topic, reader.group, record.partition, None, error, 1)
        data = record.value or b""
        if len(data) <= self.config.inline_bytes or self.claim_store is not None:
            letter.message = data
        else:
            letter.error += f" ({len(data)} bytes, not kept)"
        finish = position.take(record.offset)
        reader.bus.publish(DEAD, record.partition, letter).add_done_callback(finish)

    def check_gap(self, tp: TopicPartition, position: int, first: int, last: int) -> UserError | None:
        """A position that the log does not have: None when going on without what is missing is right."""
        topic = self.topics[tp.topic].topic
        state = self.partition_states.get(tp)
        if topic.leased or self.config.accept_loss:
            if state is not None and state.position is not None:
                state.position.next = first
            return None
        if state is not None:
            state.stopped = self.refused = True
        if position < first:
            what = f"{first - position} records were deleted before they were read (retention {topic.retention_s:g} s)"
        else:
            what = f"the log ends at {last}: the topic was deleted or its broker lost data"
        remedy = "to go on without them set NEPHILA_KAFKA__ACCEPT_LOSS=true for one start"
        return NotReadyError(f"{tp.topic}/{tp.partition}: reading had come to {position}, but {what}; {remedy}")

    def check_log_end(
        self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[UserError]:
        """Why partitions are refused whose log ends before what was read of it; positions are older than ends."""
        found = (
            self.check_gap(tp, position, ends[tp], ends[tp])
            for tp, position in positions.items()
            if tp in self.partition_states and ends.get(tp, position) < position
        )
        return [refused for refused in found if refused is not None]

    # ---- the blob store

    def missing_objects(self, tp: TopicPartition) -> tuple[int, list[str]] | None:
        """The record that waits for objects which nobody fetches yet."""
        state = self.partition_states.get(tp)
        return state.missing_objects if state is not None and not state.objects else None

    async def fetch(self, tp: TopicPartition, names: Collection[str]) -> None:
        """Get objects for a record that waits; it tries as long as the store cannot be read."""
        state = self.partition_states[tp]
        for name in names:
            state.objects[name] = b""
        for name in names:
            state.objects[name] = await self._get(name)
        state.missing_objects = None

    async def _get(self, name: str) -> bytes | None:
        while self.claim_store is not None:
            try:
                return await asyncio.to_thread(self.claim_store.get, name)
            except PermanentError:
                return None
            except TemporaryError as error:
                log.warning("%s; trying again", error)
                await asyncio.sleep(CLAIM_RETRY_S)
        return None

    # ---- what may be read

    def open(self, tp: TopicPartition) -> bool:
        """Whether a partition may be read now."""
        state = self.partition_states.get(tp)
        if state is None or not state.ready or state.leaving or state.stopped or state.missing_objects is not None:
            return False
        if self.isolation is not None and self.isolation.active and tp not in self.isolation:
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
        return {
            tp: state.position.next for tp, state in self.partition_states.items() if state.position and self.open(tp)
        }

    # ---- positions and partitions

    def offsets(self) -> dict[TopicPartition, int]:
        """What has to be committed."""
        return {
            tp: state.position.committed_to
            for tp, state in self.partition_states.items()
            if state.position is not None and state.position.committed_to > state.position.sent
        }

    def with_metadata(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, str]]:
        """These positions with what is written beside them."""
        return {
            tp: (offset, encode_metadata(state.metadata.released() if state.leaving else state.metadata))
            for tp, offset in offsets.items()
            if (state := self.partition_states.get(tp)) is not None
        }

    def final_offsets(self, partitions: frozenset[int]) -> dict[TopicPartition, int]:
        """Positions of partitions that are let go, to be committed though they have not moved: nobody crashed here."""
        return {
            tp: state.position.committed_to
            for tp, state in self.partition_states.items()
            if tp.partition in partitions and state.position is not None and not state.stopped
        }

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These have been."""
        for tp, offset in offsets.items():
            state = self.partition_states.get(tp)
            if state is not None and state.position is not None:
                state.position.sent = max(state.position.sent, offset)

    def leave(self, partitions: frozenset[int], has_listener: bool = False) -> frozenset[int]:
        """Deliver nothing more of these; returns those that were not leaving before. `heard`: there is a service that
        gives back what waits of leased topics (`press`)."""
        fresh = set()
        for tp, state in self.partition_states.items():
            if tp.partition in partitions and not state.leaving:
                state.leaving = True
                fresh.add(tp.partition)
        if self.isolation is not None:
            self.isolation.drop(frozenset(fresh))
        for reader in self.topics.values():
            if not (has_listener and reader.topic.leased):
                reader.drop(frozenset(fresh))
        return frozenset(fresh)

    def force_deliver(self, partitions: frozenset[int]) -> None:
        """Deliver what waits of leased topics, credit or not: of a record half of which was fetched here the rest must
        not come again elsewhere, and bring the first half along."""
        for reader in self.topics.values():
            if reader.topic.leased:
                reader.force_deliver(partitions)

    def drop(self, partitions: frozenset[int]) -> None:
        """These are not ours any more; what handlers still hold ends without effect on positions."""
        if self.isolation is not None:
            self.isolation.drop(partitions)
        for tp in [tp for tp in self.partition_states if tp.partition in partitions]:
            state = self.partition_states.pop(tp)
            state.revoked = True
            self.topics[tp.topic].held_bytes -= state.held_bytes
        for reader in self.topics.values():
            reader.drop(partitions)

    async def idle(self, partitions: frozenset[int]) -> None:
        """Return once nothing of these is in a handler's hand."""
        while any(reader.in_handlers[p] for reader in self.topics.values() for p in partitions):
            self._changed.clear()
            await self._changed.wait()

    def clear_suspicion(self, tp: TopicPartition) -> None:
        """Nothing of a partition is suspicious any more."""
        if tp in self.partition_states:
            self.partition_states[tp].metadata = HELD

    async def all_idle(self) -> None:
        """Return once nothing at all is, and nothing waits for credit."""
        while any(reader.waiting or any(reader.in_handlers.values()) for reader in self.topics.values()):
            self._changed.clear()
            await self._changed.wait()
