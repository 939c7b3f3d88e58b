"""A network by delay, the log of a broker, and the consumer group of a broker, on a manual clock.

Members are the real `Membership`, the plan is the real `plan` (the ring) at the leader. Modelled is what the broker
does: Kafka's classic group protocol. A member learns of a rebalance with its next heartbeat, joins with its claim, and
waits until all members have joined or their session is over. The CPU time that the plan takes is measured, and the
virtual clock waits for it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import Topic
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.group.membership import Claim, Membership, plan
from nephila_cluster.kafka.wire import frame_of

SITES_S = (0.001, 0.02, 0.045)
"""One-way delay to the broker from each of three regions."""
BROKER_S = 0.01
"""From the arrival of a message until it can be read: replicas and fetch."""
DRAIN_S = 0.3
"""A holder finishes the work in flight of a partition that leaves."""
_KAFKA = KafkaConfig()


class Traffic:
    """Messages and bytes on the topics."""

    def __init__(self) -> None:
        self.sent: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        """Topic → messages, bytes. Each is read by all members."""
        self.largest: dict[str, int] = defaultdict(int)

    def count(self, topic: Topic, message: Any, copies: int = 1) -> None:
        """A message is published."""
        size = len(frame_of(topic.message, message).message)
        self.sent[topic.name][0] += copies
        self.sent[topic.name][1] += size * copies
        self.largest[topic.name] = max(self.largest[topic.name], size)


class SharedLog:
    """Compacted topics of one partition: all members read all messages, in one order."""

    def __init__(self, clock: ManualClock, traffic: Traffic) -> None:
        self._clock = clock
        self._traffic = traffic
        self._readers: dict[str, list[SimulatedBus]] = defaultdict(list)
        self.on_append: list[Callable[[Topic, Any], None]] = []
        self.cpu_s: dict[str, float] = defaultdict(float)
        """Topic → CPU of all readers."""

    def publish(self, site: int, topic: Topic, message: Any) -> None:
        """A member of a site publishes."""
        self._traffic.count(topic, message)
        self._clock.call_at(self._clock.monotonic() + SITES_S[site] + BROKER_S, lambda: self._append(topic, message))

    def subscribe(self, bus: SimulatedBus, topic: Topic) -> None:
        """All later messages are delivered."""
        self._readers[topic.name].append(bus)

    def _append(self, topic: Topic, message: Any) -> None:
        for listener in self.on_append:
            listener(topic, message)
        for site, delay in enumerate(SITES_S):
            self._clock.call_at(self._clock.monotonic() + delay, partial(self._deliver, site, topic, message))

    def _deliver(self, site: int, topic: Topic, message: Any) -> None:
        began = time.process_time()
        for bus in self._readers[topic.name]:
            if bus.site == site and bus.alive:
                bus.handlers[topic.name](Delivery(message, 0, _nothing))
        self.cpu_s[topic.name] += time.process_time() - began


def _nothing() -> None:
    pass


class SimulatedBus:
    """The bus of one member for the shared topics; bytes are counted, objects are passed."""

    def __init__(self, log: SharedLog, member: str, site: int) -> None:
        self.member = member
        self.site = site
        self.alive = True
        self.handlers: dict[str, Callable[[Delivery], None]] = {}
        self._log = log

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """See `Bus`."""
        if self.alive:
            self._log.publish(self.site, topic, message)
        return Receipt(0)

    def subscribe(self, topic: Topic, group: str, handler: Callable[[Delivery], None], **options: Any) -> None:
        """See `Bus`."""
        self.handlers[topic.name] = handler
        self._log.subscribe(self, topic)


class Assigned(Protocol):
    """A member of the group: what it does with its partitions."""

    name: str
    site: int
    alive: bool

    def assigned(self, partitions: frozenset[int], generation: int) -> None:
        """These are new here."""

    def lost(self, partitions: frozenset[int]) -> None:
        """These belong to another member."""


class _Joined:
    """A member at the broker."""

    def __init__(self, member: Assigned, membership: Membership, phase: float) -> None:
        self.member = member
        self.membership = membership
        self.phase = phase
        """Of its heartbeats within their interval."""
        self.joined_at: float | None = None
        """Since when it waits for the plan; it polls nothing meanwhile."""


class Group:
    """The group of one service at the broker."""

    def __init__(self, clock: ManualClock, partitions: int) -> None:
        self._clock = clock
        self._partitions = partitions
        self._members: dict[str, _Joined] = {}
        self._generation = 0
        self._round: int | None = None
        """Number of the running rebalance."""
        self._rounds = 0
        self._missing: set[str] = set()
        """Members that have not joined the running rebalance."""
        self.again = False
        """A member asked for a rebalance while the plan was made."""
        self.plans_s: list[float] = []
        """CPU of each plan."""
        self.join_bytes: list[int] = []
        """Claims of all members, which the leader reads."""
        self.share_bytes: list[int] = []
        self.stalls: list[float] = []
        """How long each member polled nothing."""

    def join(self, *members: Assigned) -> None:
        """New members."""
        for member in members:
            membership = Membership(member.name, self._clock.now(), {"partitions": str(self._partitions)})
            phase = (hash_of(member.name) % 1000) / 1000 * _KAFKA.heartbeat_s
            self._members[member.name] = _Joined(member, membership, phase)
        self.rebalance()

    def died(self, members: Sequence[Assigned]) -> None:
        """Killed now: the broker removes each one session after its last heartbeat."""
        for member in members:
            last = self._heartbeat_after(self._members[member.name], self._clock.monotonic()) - _KAFKA.heartbeat_s
            at = last + _KAFKA.session_s + SITES_S[member.site]
            self._clock.call_at(at, partial(self._expire, member.name))

    def held(self, name: str) -> dict[int, int]:
        """Partitions of a member, with their generations."""
        return self._members[name].membership.held

    @property
    def idle(self) -> bool:
        """Whether no rebalance runs."""
        return self._round is None

    def forget(self) -> None:
        """Count from here."""
        for counts in (self.plans_s, self.join_bytes, self.share_bytes, self.stalls):
            counts.clear()

    def rebalance(self) -> None:
        """Start a rebalance, unless one runs that has not been planned yet."""
        if self._round is not None:
            self.again = True
            return
        self._rounds += 1
        self._round = self._rounds
        self.again = False
        now = self._clock.monotonic()
        self._missing = set(self._members)
        for joined in self._members.values():
            joined.joined_at = None
            at = self._heartbeat_after(joined, now) + 3 * SITES_S[joined.member.site]
            self._clock.call_at(at, partial(self._on_join, joined, self._rounds))

    def _heartbeat_after(self, joined: _Joined, now: float) -> float:
        step = _KAFKA.heartbeat_s
        return now + (joined.phase - now) % step

    def _expire(self, name: str) -> None:
        self._members.pop(name, None)
        self._missing.discard(name)
        if self._round is None:
            self.rebalance()
        else:
            self._plan_when_all_joined()

    def _on_join(self, joined: _Joined, number: int) -> None:
        if joined.member.alive and number == self._round:
            joined.joined_at = self._clock.monotonic()
            self._missing.discard(joined.member.name)
            self._plan_when_all_joined()

    def _plan_when_all_joined(self) -> None:
        if self._missing:
            return
        claims = {name: one.membership.claim() for name, one in self._members.items()}
        self.join_bytes.append(sum(map(len, claims.values())))
        began = time.process_time()
        shares = plan({name: _claim(data) for name, data in claims.items()}, self._partitions)
        spent = time.process_time() - began
        self.plans_s.append(spent)
        number, waiting = self._round, dict(self._members)
        leader = min(waiting)
        way = 2 * SITES_S[waiting[leader].member.site]
        self._generation += 1
        for name, joined in waiting.items():
            data = msgspec.msgpack.encode(shares[name])
            self.share_bytes.append(len(data))
            at = self._clock.monotonic() + way + spent + SITES_S[joined.member.site]
            self._clock.call_at(at, partial(self._on_share, joined, shares[name].partitions, data))
        self._clock.call_at(self._clock.monotonic() + way + spent, lambda: self._planned(number))

    def _planned(self, number: int | None) -> None:
        if number == self._round:
            self._round = None
            if self.again:
                self.rebalance()

    def _on_share(self, joined: _Joined, partitions: list[int], data: bytes) -> None:
        member, membership = joined.member, joined.membership
        if not member.alive:
            return
        if joined.joined_at is not None:
            self.stalls.append(self._clock.monotonic() - joined.joined_at)
        membership.on_share(data)
        new, gone = membership.on_assignment(partitions, self._generation)
        if gone:
            member.lost(gone)
        if new:
            member.assigned(new, self._generation)
        if membership.leaving:
            leaving = membership.leaving
            self._clock.call_at(self._clock.monotonic() + DRAIN_S, lambda: self._release(joined, leaving))

    def _release(self, joined: _Joined, leaving: frozenset[int]) -> None:
        if joined.member.alive and leaving & joined.membership.held.keys():
            joined.member.lost(leaving)
            joined.membership.release(leaving)
            self.rebalance()


def _claim(data: bytes) -> Claim:
    return msgspec.msgpack.decode(data, type=Claim)


def hash_of(name: str) -> int:
    """A number that is the same in each run."""
    return int.from_bytes(name.encode()[-6:].rjust(6, b"\0"), "big") * 2654435761 % (1 << 32)
