"""Kafka in memory, on a manual clock: `FakeKafka` holds the logs, a `FakeKafkaBus` is the bus of one member.

Messages travel as bytes, as over the real broker. The bus passes the suites of both contracts, `Bus` and `LogReader`
(tests/contracts). Nothing happens by itself: `take` lets the broker take published messages, `deliver` hands over what
the member has to read; an `eager` bus does both at each publication. A member is assigned all partitions, or those of
`held`.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from nephila.kernel.bus.contract import DeadHandler, EndOffsets, Handler, LogRecords, Receipt
from nephila.kernel.bus.dead_letters import dead_letter_for
from nephila.kernel.bus.subscription import Subscription
from nephila.kernel.layout import layout_of
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import DEAD, Topic
from nephila_cluster.kafka.beat import Beat
from nephila_cluster.kafka.consumer.offsets import PartitionPosition
from nephila_cluster.kafka.wire import frame_of, message_of

PARTITIONS = 4


class FakeKafka:
    """The logs by topic and partition, and the offsets that groups have committed."""

    def __init__(self, partitions: int = PARTITIONS, lanes: int = 0) -> None:
        """`lanes`: of the topics that have lanes; 0: they have the partitions of the system."""
        self.partitions = partitions
        self.lanes = lanes
        self.layout = layout_of(partitions)
        self.logs: dict[tuple[str, int], list[Any]] = defaultdict(list)
        self.first: dict[tuple[str, int], int] = defaultdict(int)
        """Offset of the oldest record."""
        self.committed: dict[tuple[str, str, int], int] = defaultdict(int)
        """By group, topic and partition."""
        self.beat_s = 0.0
        """Period of the beat of new members, where jobs allow it."""
        self.failures = 0
        """So many of the next questions of a `LogReader` fail."""

    def grow(self, partitions: int) -> None:
        """The topics have so many partitions; members see it when they are told (`FakeKafkaBus.see_layout`)."""
        self.partitions = partitions
        self.layout = layout_of(self.layout.base, partitions)

    def append(self, topic: Topic, partition: int, message: Any) -> int:
        """Take a message; returns its offset."""
        frame = frame_of(topic.message, message)
        frame.partition = partition + 1
        log = self.logs[topic.name, self.lane(topic, partition)]
        log.append(frame)
        return len(log) - 1

    def lane(self, topic: Topic, partition: int) -> int:
        """The log of a partition. Compacted topics have one."""
        return 0 if topic.key else partition % self.lanes if topic.laned and self.lanes else partition

    def all(self, topic: Topic, partition: int, start: int = 0) -> list[Any]:
        """Messages of a log from an offset on."""
        return [message for _, message in self.records(topic, partition, start)]

    def records(self, topic: Topic, partition: int, start: int = 0, end: int | None = None) -> list[tuple[int, Any]]:
        """(offset, message) of the records in a range of a log."""
        frames = enumerate(self.logs[topic.name, self.lane(topic, partition)][start:end], start)
        return [
            (offset, message_of(topic.message, frame))
            for offset, frame in frames
            if frame is not None and (topic.key or frame.partition == partition + 1)
        ]

    def in_lane(self, topic: Topic, lane: int, start: int) -> list[tuple[int, Any]]:
        """(partition, message) of the records of a lane from an offset on."""
        frames = self.logs[topic.name, lane][start:]
        return [(frame.partition - 1, message_of(topic.message, frame)) for frame in frames]

    def compact(self, topic: Topic, partition: int = 0) -> int:
        """Remove the records of a compacted topic that a later one of their key replaces, as the broker's cleaner does
        behind its open segment; returns how many. Offsets stay: the log has gaps (None)."""
        assert topic.key, f"{topic.name} is no compacted topic"
        records = self.records(topic, partition)
        last = {getattr(message, topic.key): offset for offset, message in records}
        replaced = [offset for offset, message in records if last[getattr(message, topic.key)] != offset]
        for offset in replaced:
            self.logs[topic.name, partition][offset] = None
        return len(replaced)

    def fail_once(self) -> None:
        """Raise `TemporaryError` while failures are set."""
        if self.failures:
            self.failures -= 1
            raise TemporaryError("the broker does not answer")


class FakeKafkaBus:
    """The bus of one member. `slow`: published messages wait for `take`; `rng` chooses between logs."""

    max_attempts = 3
    on_quiet = None

    def __init__(self, broker: FakeKafka, clock: ManualClock, member: str, held: Iterable[int] | None = None) -> None:
        self.broker = broker
        self.clock = clock
        self.member = member
        self.held = set(range(broker.partitions) if held is None else held)
        self.slow = False
        self.eager = False
        self.troubles: list[str] = []
        self.answering_since = -math.inf
        """Of a broker that was away: when it came back."""
        self.rng: random.Random | None = None
        self.alive = True
        """A member that is not alive publishes and commits nothing more."""
        self.emits = True
        """Whether its membership is certain."""
        self.unacked = 0
        self.beat = Beat(clock, broker.beat_s)
        self.patient: dict[str, bool] = {}
        """What the services have stated of their groups."""
        self.unsent: list[tuple[Topic, int, Any, Receipt]] = []
        self.layout = broker.layout
        self._on_layout: list[Callable[[], None]] = []
        self._subscriptions: dict[tuple[str, str], Subscription] = {}
        self._positions: dict[tuple[str, str, int], PartitionPosition] = {}
        self._last: dict[tuple[str, int], int] = {}

    # ---- Bus

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """See `Bus`."""
        receipt = Receipt()
        self.unsent.append((topic, partition, message, receipt))
        if not self.slow:
            self.take()
        if self.eager:
            self.deliver()
        return receipt

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        """See `Bus`."""
        if (topic.name, group) in self._subscriptions:
            raise ValueError(f"group {group!r} already reads topic {topic.name!r}")
        self._subscriptions[topic.name, group] = Subscription(self, topic, group, handler, credits, on_dead)

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        """See `Bus`."""
        return self.publish(DEAD, partition, dead_letter_for(topic, service, partition, message, error, attempts))

    def set_patient(self, group: str, patient: bool) -> None:
        """See `LogBus`."""
        self.patient[group] = patient

    # ---- LogReader

    def watch_layout(self, on_change: Callable[[], None]) -> None:
        """See `LogReader`."""
        self._on_layout.append(on_change)

    def see_layout(self) -> None:
        """The member reads the setting of a growth."""
        self.layout = self.broker.layout
        for on_change in self._on_layout:
            on_change()

    def may_emit(self, group: str) -> bool:
        """See `LogReader`."""
        return self.emits and self.alive

    def last_offset(self, topic: Topic, partition: int) -> int:
        """See `LogReader`."""
        return self._last.get((topic.name, self.broker.lane(topic, partition)), -1)

    def lanes(self, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        """See `LogReader`."""
        return {partition: self.broker.lane(topic, partition) for partition in partitions}

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """See `LogReader`."""
        self.broker.fail_once()
        lanes = {p: self.broker.lane(topic, p) for p in partitions}
        ends = {p: len(self.broker.logs[topic.name, lane]) for p, lane in lanes.items()}
        return {p: (self.broker.first[topic.name, lane], ends[p]) for p, lane in lanes.items()}

    async def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]:
        """See `LogReader`."""
        for p, (start, end) in ranges.items():
            if start < self.broker.first[topic.name, self.broker.lane(topic, p)] and not topic.key:
                raise TemporaryError(f"{topic.name}/{p}: the beginning of the log was deleted while it was read")
            if end > start:
                yield p, self.broker.records(topic, p, start, end)

    async def end_offsets(self, topics: Iterable[Topic]) -> EndOffsets:
        """See `LogReader`."""
        return {(t.name, p): len(self.broker.logs[t.name, p]) for t in topics for p in range(self.broker.partitions)}

    async def has_read_to(self, group: str, ends: EndOffsets) -> bool:
        """See `LogReader`."""
        return all(self.broker.committed[group, name, p] >= end for (name, p), end in ends.items())

    async def read_up_to(self, group: str, topic: Topic, ends: Mapping[int, int]) -> frozenset[int]:
        """See `LogReader`."""
        self.broker.fail_once()
        lanes = {p: self.broker.lane(topic, p) for p in ends}
        return frozenset(p for p, end in ends.items() if self.broker.committed[group, topic.name, lanes[p]] >= end)

    async def committed(self, group: str, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        """See `LogReader`."""
        self.broker.fail_once()
        found = {p: self.broker.committed.get((group, topic.name, self.broker.lane(topic, p))) for p in partitions}
        return {p: offset for p, offset in found.items() if offset is not None}

    async def delete_before(self, topic: Topic, offsets: Mapping[int, int]) -> None:
        """See `LogReader`."""
        for p, offset in offsets.items() if self.alive else ():
            self.broker.first[topic.name, p] = max(self.broker.first[topic.name, p], offset)

    # ---- what the test lets happen

    def take(self, count: int = 1 << 30) -> int:
        """The broker takes messages that wait, of each log the oldest first; returns how many."""
        done = 0
        while self.unsent and done < count and self.alive:
            topic, partition, message, receipt = self.unsent.pop(self._next())
            lane, offset = self.broker.lane(topic, partition), self.broker.append(topic, partition, message)
            self._last[topic.name, lane] = offset
            receipt.resolve_one()
            done += 1
        return done

    def take_only(self, topic: Topic) -> None:
        """The broker takes the messages of this topic, and no others."""
        others = [one for one in self.unsent if one[0] is not topic]
        self.unsent = [one for one in self.unsent if one[0] is topic]
        self.take()
        self.unsent = others + self.unsent

    def deliver(self) -> int:
        """Hand over the records of the held partitions; returns how many."""
        count = 0
        for (name, group), subscription in list(self._subscriptions.items()):
            topic = subscription.topic
            for p in sorted({self.broker.lane(topic, partition) for partition in ([0] if topic.key else self.held)}):
                position = self._position(group, name, p, 0 if topic.key else self.broker.committed[group, name, p])
                log = self.broker.logs[name, p]
                while position.next < len(log) and self._positions.get((group, name, p)) is position:
                    if log[position.next] is None:
                        position.next += 1
                        continue
                    partition = 0 if topic.key else log[position.next].partition - 1
                    if not topic.key and partition not in self.held:
                        break  # it waits in its lane
                    message = message_of(topic.message, log[position.next])
                    receipt = Receipt()
                    commit = self._committing(group, name, p, position)
                    commit() if topic.leased else receipt.add_done_callback(commit)
                    self.unacked += 1
                    count += 1
                    subscription.offer(partition, message, receipt)
        return count

    def forget(self, partitions: set[int]) -> None:
        """The partitions belong to another member now."""
        self.held -= partitions
        for subscription in self._subscriptions.values():
            if not subscription.topic.key:
                subscription.drop(frozenset(partitions))
        topics = {name: one.topic for (name, _), one in self._subscriptions.items()}
        for group, name, lane in list(self._positions):
            topic = topics[name]
            if not topic.key and lane in {self.broker.lane(topic, partition) for partition in partitions}:
                del self._positions[group, name, lane]

    def _next(self) -> int:
        """Index in `unsent` of the message that is taken next."""
        if self.rng is None:
            return 0
        oldest = {(topic.name, partition): i for i, (topic, partition, *_) in reversed(list(enumerate(self.unsent)))}
        return self.rng.choice(list(oldest.values()))

    def _position(self, group: str, name: str, partition: int, start: int) -> PartitionPosition:
        return self._positions.setdefault((group, name, partition), PartitionPosition(start))

    def _committing(self, group: str, name: str, partition: int, position: PartitionPosition) -> Any:
        finish = position.take(position.next)

        def acked() -> None:
            finish()
            if self.alive and self._positions.get((group, name, partition)) is position:
                self.broker.committed[group, name, partition] = position.committed_to

        return acked
