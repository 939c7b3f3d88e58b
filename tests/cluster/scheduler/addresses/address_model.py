"""Schedulers that share server addresses, in a model on a manual clock: hosts, a log of messages, and a server's log.

Who paces is the project's own code (turns, address_queue, table of addresses); only frontier, broker and web are
modelled. A scheduler may join, die, freeze and come again; its partitions, and what it has in flight, go to those who
are there. Beside turns the rules they were chosen over: `alone`, where each keeps the pace for itself, and `factor`,
BUbiNG's.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.messages import AddressAnnouncement
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock, Timer
from nephila.scheduler.partition.commit_pipeline import CommitPipeline
from nephila.scheduler.politeness.address_queue import AddressQueue
from nephila_cluster.scheduler.addresses.address_lock_topic import AddressLockTopic
from nephila_cluster.scheduler.addresses.shared_pace import SharedAddressQueue

CONNECTIONS, GAP_S = 4, 0.25
LATENCY_S = 0.02
"""Until a message is read by all, and until a start that was decided is at the server."""
PARTITIONS = 16
SESSION_S = 6.0
TAKEOVER_S = 1.0


class Host:
    """One name on one address."""

    def __init__(self, number: int, address: str, delay_s: float, pages: int) -> None:
        self.partition = number % PARTITIONS
        self.address = address
        self.delay_s = delay_s
        self.left = pages
        self.line = 0
        self.owner: Any = None


class Fetch:
    """As the server's log has it."""

    def __init__(self, host: Host, start: float, end: float) -> None:
        self.host = host
        self.start = start
        self.end = end


class MemberClock:
    """The world's clock, as long as the member is neither dead nor frozen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.frozen = self.dead = False
        self.held: list[Callable[[], None]] = []

    def now(self) -> float:
        """See `Clock`."""
        return self.world.clock.now()

    def monotonic(self) -> float:
        """See `Clock`."""
        return self.world.clock.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """See `Clock`."""
        cancelled: list[bool] = []

        def run() -> None:
            if self.frozen:
                self.held.append(run)
            elif not self.dead and not cancelled:
                callback()

        self.world.clock.call_at(when, run)
        return _Cancel(cancelled)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See `Clock`."""
        self.call_at(self.monotonic(), callback)


class _Cancel:
    def __init__(self, cancelled: list[bool]) -> None:
        self._cancelled = cancelled

    def cancel(self) -> None:
        """See `Timer`."""
        self._cancelled.append(True)


class Member:
    """One scheduler."""

    def __init__(self, world: World, name: str, life: int) -> None:
        self.world = world
        self.clock = MemberClock(world)
        self.epochs: dict[int, int] = {}
        self.ready: list[tuple[float, int, Host]] = []
        self.read = 0
        self.counted: set[Fetch] = set()
        """Fetches in flight that it is_announced of."""
        self.pipeline: dict[int, CommitPipeline] = {}
        self.desk: AddressLockTopic | None = None
        networks = AddressLimits(*world.limits())
        now = self.clock.monotonic()
        self.addresses: AddressQueue[Host]
        if world.rule == "turns":
            self.address_queue: Any = SharedAddressQueue(networks, now, (name, life), PARTITIONS, self.pipeline)
            self.addresses = self.address_queue
            self.desk = AddressLockTopic(self, self.clock, self.address_queue, self.go_on)  # type: ignore[arg-type]
            self.desk.start()
        else:
            self.addresses = AddressQueue(networks, now)

    # ---- the bus

    def subscribe(self, topic: Any, group: str, handler: Callable[[Delivery], None], *, credits: int) -> None:
        """See `Bus`."""
        self.handler = handler

    def publish(self, topic: Any, partition: int, message: AddressAnnouncement) -> Receipt:
        """See `Bus`."""
        self.world.say(message)
        return Receipt(0)

    def hear(self) -> None:
        """Read what has come."""
        while self.read < len(self.world.messages):
            self.read += 1
            self.handler(Delivery(self.world.messages[self.read - 1], 0, lambda: None))

    # ---- partitions

    def own(self, partition: int, epoch: int) -> None:
        """With what is in flight there, as a restored frontier has it."""
        self.epochs[partition] = epoch
        now = self.clock.monotonic()
        counted = {fetch for fetch in self.world.flying if fetch.host.partition == partition}
        self.counted |= counted
        flying = {fetch.host for fetch in counted}
        for host in self.world.hosts:
            if host.partition == partition:
                host.line, host.owner = 0, self
                if host in flying:
                    self.addresses.start(host.address, now)
                else:
                    self.when(now, host)
        if self.desk is not None:
            self.desk.own(partition, epoch)
        self.go_on()

    def on_partition_lost(self, partition: int) -> None:
        """It is another's."""
        epoch = self.epochs.pop(partition)
        for host in self.world.hosts:
            if host.partition == partition and host.owner is self:
                self.addresses.leave(host)
        gone = {fetch for fetch in self.counted if fetch.host.partition == partition}
        self.counted -= gone
        left = [fetch.host.address for fetch in gone]
        if self.desk is not None:
            self.desk.on_partition_lost(partition, epoch, left)
        else:
            for address in left:
                self.addresses.end(address, self.clock.monotonic())

    # ---- turns of the loop

    def when(self, at: float, host: Host) -> None:
        """It may be fetched from then on."""
        heapq.heappush(self.ready, (at, next(self.world.order), host))
        self.clock.call_at(at, self.go_on)

    def go_on(self) -> None:
        """Start all fetches that may start."""
        now = self.clock.monotonic()
        waiting = []
        while self.ready and self.ready[0][0] <= now:
            one = heapq.heappop(self.ready)
            if one[2].owner is self and one[2].partition in self.epochs:
                if self._may_begin(one[2]):
                    self._serve(one[2], now)
                else:
                    waiting.append(one)
        for one in waiting:
            heapq.heappush(self.ready, one)
        if self.desk is not None:
            while self.address_queue.call(now):
                pass
            self.desk.soon()
        else:
            while (taken := self.addresses.take(now)) is not None:
                self._serve(taken[1], now, first=True)
        due = self.addresses.next_ready()
        if due is not None and due > now:
            self.clock.call_at(due, self.go_on)

    def _may_begin(self, host: Host) -> bool:
        return self.desk is None or self.desk.may_fetch(host.partition, self.epochs[host.partition])

    def called(self, address: str, host: Host) -> None:
        """See `PartitionView`."""
        self._serve(host, self.clock.monotonic(), first=True)

    def _serve(self, host: Host, now: float, first: bool = False) -> None:
        if not host.left:
            return
        if self.addresses.room(host.address, now, first) == 0.0:
            host.left -= 1
            dial_at = self.addresses.start(host.address, now)
            self.counted.add(self.world.fetch(host, dial_at))
        else:
            self.addresses.wait(host.address, host, now, head=first)
            if self.desk is not None:
                self.address_queue.lock.want(host.address)


class World:
    """Schedulers and hosts. `rule`: turns, alone or factor."""

    def __init__(self, rule: str, hosts: list[Host], schedulers: int, *, took_s: float = 0.2, seed: int = 1) -> None:
        self.rule = rule
        self.hosts = hosts
        self.took_s = took_s
        self.schedulers = schedulers
        self.rng = random.Random(seed)
        self.order = count()
        self.clock = ManualClock()
        self.run = self.clock.advance
        self.messages: list[AddressAnnouncement] = []
        self.log: list[Fetch] = []
        self.flying: set[Fetch] = set()
        self.members: dict[str, Member] = {}
        self.lives = count(1)
        self.epochs = count(1)
        for number in range(schedulers):
            self.members[f"s{number}"] = Member(self, f"s{number}", next(self.lives))
        self.share_out()

    def limits(self) -> tuple[int, float]:
        """What each scheduler keeps to for itself."""
        parts = self.schedulers if self.rule == "factor" else 1
        return max(CONNECTIONS // parts, 1), GAP_S * parts

    # ---- schedulers

    def share_out(self) -> None:
        """Deal the partitions out among those who are there; those that stay stay."""
        there = [name for name, one in self.members.items() if not (one.clock.frozen or one.clock.dead)]
        for partition in range(PARTITIONS):
            new = self.members[there[partition % len(there)]]
            old = next((one for one in self.members.values() if partition in one.epochs), None)
            if old is not None and old is not new and not (old.clock.frozen or old.clock.dead):
                old.on_partition_lost(partition)
            if old is not new:
                epoch = next(self.epochs)
                at = self.clock.monotonic() + TAKEOVER_S * self.rng.random()
                new.clock.call_at(at, lambda new=new, p=partition, e=epoch: self._arrive(new, p, e))

    def _arrive(self, member: Member, partition: int, epoch: int) -> None:
        for other in self.members.values():
            stands_still = other.clock.dead or other.clock.frozen
            if not stands_still and other.epochs.get(partition, epoch) < epoch:
                other.on_partition_lost(partition)
        if all(one.epochs.get(partition, 0) < epoch for one in self.members.values()):
            member.own(partition, epoch)

    def join(self, name: str) -> None:
        """A further scheduler."""
        self.members[name] = Member(self, name, next(self.lives))
        self.share_out()

    def kill(self, name: str) -> None:
        """It is gone; after a session its partitions go to the others."""
        self.members[name].clock.dead = True
        self.clock.call_at(self.clock.monotonic() + SESSION_S, lambda: self._gone(name))

    def _gone(self, name: str) -> None:
        member = self.members.pop(name)
        member.epochs.clear()
        self.share_out()

    def freeze(self, name: str, seconds: float) -> None:
        """It stands still; beyond the session its partitions are others' when it goes on."""
        member = self.members[name]
        member.clock.frozen = True
        if seconds > SESSION_S:
            self.clock.call_at(self.clock.monotonic() + SESSION_S, self.share_out)
        self.clock.call_at(self.clock.monotonic() + seconds, lambda: self._thaw(member, seconds > SESSION_S))

    def _thaw(self, member: Member, lost: bool) -> None:
        for partition, epoch in list(member.epochs.items()):
            if lost or any(one.epochs.get(partition, 0) > epoch for one in self.members.values()):
                member.on_partition_lost(partition)
        member.clock.frozen = False
        held, member.clock.held = member.clock.held, []
        for callback in held:
            callback()
        if lost:
            self.share_out()

    # ---- the log and the web

    def say(self, message: AddressAnnouncement) -> None:
        """A message is appended; all read it a little later."""
        self.messages.append(message)
        for member in self.members.values():
            if member.desk is not None:
                member.clock.call_at(self.clock.monotonic() + LATENCY_S, member.hear)

    def fetch(self, host: Host, dial_at: float) -> Fetch:
        """A fetch is leased, to begin at this instant; 0.0: now."""
        start = max(self.clock.monotonic(), dial_at)
        one = Fetch(host, start, start + self.took_s)
        self.log.append(one)
        self.flying.add(one)
        self.clock.call_at(one.end, lambda: self._ended(one))
        return one

    def _ended(self, fetch: Fetch) -> None:
        owner = next((one for one in self.members.values() if fetch.host.partition in one.epochs), None)
        if owner is None or fetch not in owner.counted or owner.clock.frozen or owner.clock.dead:
            # The outcome waits in its log.
            self.clock.call_at(self.clock.monotonic() + 0.1, lambda: self._ended(fetch))
            return
        self.flying.discard(fetch)
        owner.counted.discard(fetch)
        now = self.clock.monotonic()
        owner.addresses.end(fetch.host.address, now)
        owner.when(now + fetch.host.delay_s, fetch.host)
        owner.go_on()

    # ---- what the server saw

    def by_address(self) -> dict[str, list[Fetch]]:
        """The log of each address."""
        found: dict[str, list[Fetch]] = defaultdict(list)
        for fetch in self.log:
            found[fetch.host.address].append(fetch)
        return found

    def too_early(self) -> int:
        """Starts less than a gap after the one before on their address."""
        return sum(
            later.start - earlier.start < GAP_S - 1e-6
            for fetches in self.by_address().values()
            for earlier, later in pairwise(fetches)
        )

    def most_at_once(self) -> int:
        """Fetches in flight on one address at most."""
        most = 0
        for fetches in self.by_address().values():
            events = sorted([(one.start, 1) for one in fetches] + [(one.end, -1) for one in fetches])
            flying = 0
            for _, change in events:
                flying += change
                most = max(most, flying)
        return most


def storm(seed: int) -> tuple[World, float]:
    """Eight kills, freezes and joins among at first three schedulers whose 48 hosts share three addresses; then some
    quiet. Returns the world, and what it fetched in the last 20 s as a share of what it might have."""
    rng = random.Random(seed)
    took_s = rng.choice((0.1, 0.5, 2.0))
    hosts = [Host(number, f"10.0.0.{number % 3}", 0.5, 10**9) for number in range(48)]
    world = World("turns", hosts, 3, took_s=took_s, seed=seed)
    for number in range(8):
        world.run(rng.uniform(2, 12))
        there = [name for name, one in world.members.items() if not (one.clock.frozen or one.clock.dead)]
        what = rng.choice(("kill", "freeze", "freeze", "join"))
        if what == "join" or len(there) < 2:
            world.join(f"n{number}")
        elif what == "kill":
            world.kill(rng.choice(there))
        else:
            world.freeze(rng.choice(there), rng.choice((1.0, 4.0, 9.0)))
    world.run(10)
    before = len(world.log)
    world.run(20)
    most = 20 * 3 * min(1 / GAP_S, CONNECTIONS / took_s)
    return world, (len(world.log) - before) / most
