"""The records that a consumer group has taken from its partitions: decoded, offered to the readers, and bounded.

Invariant: records of a partition are taken in the order of their offsets, none twice, none skipped. A gap in the
offsets is a loss and is refused, except on leased topics, where the leases bring back what is missing. Bytes that are
no message become dead letters; the other messages of their record are delivered. A record of a newer release stays
where it is, and its partition stops. The only I/O is reading the blob store, on a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition
from nephila.kernel.bus.contract import Receipt, all_of
from nephila.kernel.bus.dead_letters import UNREADABLE, dead_letter_for
from nephila.kernel.messages import Frame
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError, UserError
from nephila.kernel.topics import DEAD, REQUESTS, REQUESTS_BROWSER, Topic, Waiting

from nephila_cluster.kafka.beat import DIAL, READ, Beat
from nephila_cluster.kafka.claim_check import ClaimStore
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.consumer.commit_metadata import HELD, CommitMetadata, encode_metadata
from nephila_cluster.kafka.consumer.kafka_subscription import KafkaSubscription, Routed
from nephila_cluster.kafka.consumer.offsets import PartitionPosition
from nephila_cluster.kafka.consumer.owned_partitions import OwnedPartitions, Route
from nephila_cluster.kafka.consumer.partition_state import PartitionState, Phase
from nephila_cluster.kafka.consumer.poison import PoisonIsolation, Suspect
from nephila_cluster.kafka.lanes import Lanes
from nephila_cluster.kafka.wire import FORMATS, UnknownFormat, message_of, partition_of, seal, unseal

log = logging.getLogger(__name__)

CLAIM_RETRY_S = 1.0


class Inbox:
    """The records of one group at this member."""

    def __init__(
        self,
        config: KafkaConfig,
        clock: Clock,
        claim_store: ClaimStore | None,
        commit_metadata: Callable[[TopicPartition, CommitMetadata], Awaitable[bool]],
        beat: Beat | None = None,
        owned: OwnedPartitions | None = None,
    ) -> None:
        """`commit_metadata` stores metadata with a partition's offset; see `PoisonIsolation`. `beat`: of this member;
        None: there is never one. `owned`: the partitions of the group; None: no topic has lanes."""
        self.beat = beat or Beat(clock, 0.0)
        self.config = config
        self.claim_store = claim_store
        self.owned = owned or OwnedPartitions(Lanes())
        self.topics: dict[str, KafkaSubscription] = {}
        """The readers, by the broker's names of their topics."""
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.isolation = PoisonIsolation(clock, commit_metadata, self.all_idle, self.clear_suspicion, config.session_s)
        """Probes messages that may crash members."""
        self.refused = False
        """A partition is stopped until a person acts."""
        self.patient = False
        """The service has stated that no host waits for its messages at present."""
        self._changed = asyncio.Event()

    @property
    def route(self) -> list[Topic]:
        """The topics that the group reads."""
        return [reader.topic for reader in self.topics.values()]

    @property
    def held(self) -> set[int]:
        """Lanes that are owned and opened."""
        return {tp.partition for tp, state in self.partition_states.items() if state.is_opened}

    @property
    def staying(self) -> set[int]:
        """Lanes that are owned and do not leave."""
        states = self.partition_states.items()
        return {tp.partition for tp, state in states if state.phase in (Phase.OPENING, Phase.OPEN)}

    @property
    def waiting(self) -> Waiting:
        """Who waits for the messages read here."""
        most_urgent = min((reader.topic.waiting for reader in self.topics.values()), default=Waiting.HOST)
        return max(most_urgent, Waiting.LINKS) if self.patient else most_urgent

    def beat_s(self) -> tuple[float, float]:
        """The period of the beat, and the seconds until these topics are read in it; zeros where it does not apply."""
        if self.waiting is Waiting.ROW or not self.beat.period_s:
            return 0.0, 0.0
        dials = any(reader.topic in (REQUESTS, REQUESTS_BROWSER) for reader in self.topics.values())
        return self.beat.period_s, self.beat.wait_s(DIAL if dials else READ)

    def ended(self) -> None:
        """A message has been processed."""
        self._changed.set()

    # ---- records

    def leased_offsets(self, batches: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> dict[TopicPartition, int]:
        """Offsets behind the records read of leased topics. They are committed before delivery: if this member then
        dies, the leases bring its messages back after everyone has stopped working on them. Read again at once by a
        successor, they would be processed twice, the second time without the politeness gap to what followed. A record
        that waits for its partition is committed too, until its lane is released."""
        return {
            tp: records[-1].offset + 1
            for tp, records in batches.items()
            if self.topics[tp.topic].topic.leased and (state := self.partition_states.get(tp)) is not None
            if state.phase is Phase.OPEN and records
        }

    def next_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Next offsets to take of these partitions, as far as they are owned."""
        return {
            tp: state.position.next
            for tp in tps
            if (state := self.partition_states.get(tp)) is not None and state.position is not None
        }

    def take(self, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> UserError | None:
        """Offer records to their reader; returns the reason if the remaining ones are refused."""
        state = self.partition_states.get(tp)
        if state is None or state.phase is not Phase.OPEN or state.position is None:
            return None
        reader = self.topics[tp.topic]
        for record in records:
            if state.is_held_up:
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
        self, reader: KafkaSubscription, state: PartitionState, position: PartitionPosition, record: ConsumerRecord
    ) -> UserError | None:
        where = f"{record.topic}/{record.partition} at {record.offset}"
        messages: list[Routed] = []
        others: list[Routed] = []
        unreadable = []
        try:
            frames = unseal(reader.topic.message, record.value, record.headers)
            partitions = [partition_of(frame, record.partition) for frame in frames]
            routes = [self.owned.route(record.partition, partition) for partition in partitions]
            if Route.WAIT in routes:
                log.info("%s: a message of a partition that is not served yet waits", where)
                state.waits_at = record.offset
                return None
            missing = [f.claim for f in frames if f.claim and f.claim not in state.objects]
            if missing:
                state.missing_objects = (record.offset, missing)
                return None
            for frame, partition, route in zip(frames, partitions, routes, strict=True):
                try:
                    routed = Routed(partition, self._message(reader, state, frame))
                    if route is Route.DELIVER:
                        messages.append(routed)
                    elif not reader.topic.leased:  # its lease repeats it, and it must not come beside that
                        others.append(routed)
                except PermanentError as error:
                    unreadable.append((partition, seal([frame]), str(error)))
        except PermanentError as error:
            unreadable.append((record.partition, record.value or b"", str(error)))
        except UnknownFormat as error:
            state.stopped = self.refused = True
            return NotReadyError(
                f"{where} was written by another release ({error}): run one release in all services; nothing is lost"
            )
        state.objects.clear()
        letters = []
        for partition, data, reason in unreadable:
            log.error("%s: dead letter: %s", where, reason)
            letters.append(self._dead_letter(reader, partition, data, reason))
        letters += [reader.bus.publish(reader.topic, *routed) for routed in others]
        self._offer(reader, state, position, record, messages, letters)
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
        position: PartitionPosition,
        record: ConsumerRecord,
        messages: list[Routed],
        letters: list[Receipt],
    ) -> None:
        """Offer the readable messages of a record. It is done when they are, and when `letters`, which replace the
        others, are published."""
        finish = position.take(record.offset, record.timestamp)
        size = len(record.value or b"")
        reader.held_bytes += size
        state.held_bytes += size

        def done() -> None:
            if state.phase is not Phase.REVOKED:
                reader.held_bytes -= size
                state.held_bytes -= size
            finish()

        receipt = Receipt(len(messages))
        all_of([receipt, *letters]).add_done_callback(done)
        reader.bus.unacked += len(messages)
        tp = TopicPartition(record.topic, record.partition)
        if messages and tp in self.isolation:
            self.isolation.take(Suspect(tp, reader, record.offset, messages, receipt))
            return
        for routed in messages:
            reader.offer(record.partition, routed, receipt)

    def _dead_letter(self, reader: KafkaSubscription, partition: int, data: bytes, error: str) -> Receipt:
        """Publish bytes that are no message as a dead letter, if they fit."""
        letter = dead_letter_for(reader.topic, reader.group, partition, None, error, 1)
        letter.format = FORMATS[reader.topic.message]
        if len(data) <= self.config.inline_bytes or self.claim_store is not None:
            letter.message = data
        else:
            letter.error += f" ({len(data)} bytes, not kept)"
        reader.bus.dead_letters[reader.topic.name, UNREADABLE] += 1
        return reader.bus.publish(DEAD, partition, letter)

    def check_gap(self, tp: TopicPartition, position: int, first: int, last: int) -> UserError | None:
        """The log does not contain the next offset. None: continuing without the missing records is correct."""
        topic = self.topics[tp.topic].topic
        state = self.partition_states.get(tp)
        if topic.leased or self.config.accept_loss:
            if state is not None and state.position is not None:
                state.position.next = first
            return None
        if state is not None:
            state.stopped = self.refused = True
        if position < first:
            gap = f"{first - position} records were deleted before they were read (retention {topic.retention_s:g} s)"
        else:
            gap = f"the log ends at {last}: the topic was deleted or its broker lost data"
        remedy = "to continue without them set NEPHILA_KAFKA__ACCEPT_LOSS=true for one start"
        return NotReadyError(f"{tp.topic}/{tp.partition}: the next offset to read is {position}, but {gap}; {remedy}")

    def check_log_end(
        self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[UserError]:
        """Errors for partitions whose log ends before the position read; `positions` are older than `ends`."""
        gaps = (
            self.check_gap(tp, position, ends[tp], ends[tp])
            for tp, position in positions.items()
            if tp in self.partition_states and ends.get(tp, position) < position
        )
        return [refused for refused in gaps if refused is not None]

    def isolates(self, tp: TopicPartition) -> bool:
        """Whether messages that may crash members are probed one by one. Not where no reader ends the URL of a dead
        letter (links, seeds, outcomes, receipts): their loss would be silent. Messages of a leased topic are committed
        before delivery, so those behind the offset crashed no member."""
        reader = self.topics[tp.topic]
        return reader.on_dead is not None and not reader.topic.leased

    # ---- the blob store

    def missing_objects(self, tp: TopicPartition) -> tuple[int, list[str]] | None:
        """The record that waits for objects whose fetch has not begun."""
        state = self.partition_states.get(tp)
        return state.missing_objects if state is not None and not state.objects else None

    async def fetch(self, tp: TopicPartition, names: Collection[str]) -> None:
        """Fetch objects for a waiting record; retries while the store cannot be read."""
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
                log.warning("%s; retrying", error)
                await asyncio.sleep(CLAIM_RETRY_S)
        return None

    # ---- which partitions are read

    def open(self, tp: TopicPartition) -> bool:
        """Whether a partition may be read now."""
        state = self.partition_states.get(tp)
        if state is None or state.phase is not Phase.OPEN or state.is_held_up:
            return False
        if self.isolation.exclusive and tp not in self.isolation:
            return False
        return not self._full(self.topics[tp.topic])

    def resume(self) -> dict[TopicPartition, int]:
        """More partitions may be served now: records that wait are read again. Returns their offsets."""
        offsets = {tp: state.waits_at for tp, state in self.partition_states.items() if state.waits_at >= 0}
        for tp in offsets:
            self.partition_states[tp].waits_at = -1
        return offsets

    def gates(self) -> tuple[bool, ...]:
        """What `open` asks beyond the state of a partition: whether a message is accused, and whether each topic is
        full. While it is the same, only partitions whose state has changed open or close."""
        return (self.isolation.exclusive, *(self._full(reader) for reader in self.topics.values()))

    def _full(self, reader: KafkaSubscription) -> bool:
        """Pause at the limit, resume at half of it: a pause discards what was read ahead."""
        share = 2 if reader.paused else 1
        reader.paused = (
            len(reader.waiting) * share > self.config.buffer_messages
            or reader.held_bytes * share > self.config.buffer_bytes
        )
        return reader.paused

    def reading(self) -> dict[TopicPartition, int]:
        """Positions of the partitions that may be read now."""
        return {
            tp: state.position.next for tp, state in self.partition_states.items() if state.position and self.open(tp)
        }

    # ---- positions and partitions

    def offsets(self) -> dict[TopicPartition, int]:
        """Offsets to commit."""
        return {
            tp: state.position.committed_to
            for tp, state in self.partition_states.items()
            if state.position is not None and state.position.committed_to > state.position.sent
        }

    def with_metadata(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, str]]:
        """These offsets with their metadata."""
        return {
            tp: (offset, encode_metadata(state.metadata.released() if state.phase is Phase.LEAVING else state.metadata))
            for tp, offset in offsets.items()
            if (state := self.partition_states.get(tp)) is not None
        }

    def final_offsets(self, partitions: frozenset[int]) -> dict[TopicPartition, int]:
        """Offsets of partitions that are released. They are committed even if unchanged: the metadata says that no
        member crashed."""
        return {
            tp: state.position.committed_to
            for tp, state in self.partition_states.items()
            if tp.partition in partitions and state.position is not None and not state.stopped
        }

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These offsets have been committed."""
        for tp, offset in offsets.items():
            state = self.partition_states.get(tp)
            if state is not None and state.position is not None:
                state.position.sent = max(state.position.sent, offset)

    def leave(self, partitions: frozenset[int], has_listener: bool = False) -> frozenset[int]:
        """Deliver nothing more of these partitions; returns those that were not leaving before. `has_listener`: a
        service will return the waiting messages of leased topics (`force_deliver`)."""
        fresh = set()
        for tp, state in self.partition_states.items():
            if tp.partition in partitions and state.phase is not Phase.LEAVING:
                state.enter(Phase.LEAVING)
                fresh.add(tp.partition)
        self.isolation.drop(frozenset(fresh))
        for reader in self.topics.values():
            if not (has_listener and reader.topic.leased):
                reader.drop(frozenset(fresh))
        return frozenset(fresh)

    def force_deliver(self, partitions: frozenset[int]) -> None:
        """Deliver waiting messages of leased topics without regard to credit. If half of a record was delivered here,
        the rest must not be delivered elsewhere together with the first half."""
        for reader in self.topics.values():
            if reader.topic.leased:
                reader.force_deliver(partitions)

    def drop(self, partitions: frozenset[int]) -> None:
        """These partitions are lost; messages still in handlers do not change positions."""
        self.isolation.drop(partitions)
        for tp in [tp for tp in self.partition_states if tp.partition in partitions]:
            state = self.partition_states.pop(tp)
            state.enter(Phase.REVOKED)
            self.topics[tp.topic].held_bytes -= state.held_bytes
        for reader in self.topics.values():
            reader.drop(partitions)

    async def idle(self, partitions: frozenset[int]) -> None:
        """Return when no message of these partitions is in a handler."""
        while any(reader.in_handlers[p] for reader in self.topics.values() for p in partitions):
            self._changed.clear()
            await self._changed.wait()

    def pardon(self, pardoned: Mapping[int, int]) -> dict[TopicPartition, int]:
        """Members that seemed to have crashed with these partitions live: take so many crashes of each back. Returns
        the offsets to commit with the new metadata."""
        offsets = {}
        for tp, state in self.partition_states.items() if pardoned else ():
            times = pardoned.get(tp.partition, 0)
            if times and state.phase is Phase.OPENING:
                state.pardons += times
            elif times and state.phase is Phase.OPEN and state.position is not None:
                if tp in self.isolation:
                    state.metadata = state.metadata.pardoned(times)
                    self.isolation.pardon(tp, times)
                offsets[tp] = state.position.committed_to
        return offsets

    def clear_suspicion(self, tp: TopicPartition) -> None:
        """No message of the partition is a suspect any more."""
        if tp in self.partition_states:
            self.partition_states[tp].metadata = HELD

    async def all_idle(self) -> None:
        """Return when no message is in a handler or waits for credit."""
        while any(reader.waiting or any(reader.in_handlers.values()) for reader in self.topics.values()):
            self._changed.clear()
            await self._changed.wait()
