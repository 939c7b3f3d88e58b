"""Pace per server address for several frontiers of one program: one table, and one queue per address.

A frontier sees only its own hosts. Which host of a queue is next is decided here, and its frontier is called. Which
addresses this program may fetch from at present is decided by the address lock; elsewhere there is no free slot, and
the queue requests the lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace
from nephila.scheduler.frontier.host_state import QueueSlot
from nephila.scheduler.partition.commit_pipeline import CommitPipeline
from nephila.scheduler.politeness.address_queue import AddressQueue

from nephila_cluster.scheduler.addresses.address_lock import AddressLock

LEAD_S = 0.15
"""Time from a lease to the dial that is planned for. The way of each request (commit, broker, downloader) takes another
time, and the gap counts at the server."""
MARGIN_S = 0.03
"""Added to the gap between planned dials: what the ways from two downloaders to the server differ by."""


class SharedPace(AddressPace):
    """Slots and gaps of a program that is one of several: free only while the address is held, and minus the fetches
    of others. A fetch within the gap is leased LEAD_S early with the instant of its dial, so that downloaders keep the
    gap among each other. A fetch on an idle address dials at once, and counts as if it came LEAD_S later."""

    def __init__(self, networks: AddressLimits, restarted_at: float, lock: AddressLock) -> None:
        super().__init__(networks, restarted_at)
        self._lock = lock

    def next_start(self, address: str, now: float) -> float | None:
        facts = self._known.get(address) or self._new(address)
        if facts.limit.unlimited:
            return 0.0
        if not self._lock.held(address):
            return None
        others, most = self._lock.others(address), facts.limit.connections
        if others and most and facts.in_flight + others >= most:
            return None
        free_at = super().next_start(address, now)
        if not free_at:
            return free_at
        return 0.0 if free_at - LEAD_S <= now else free_at - LEAD_S

    def start(self, address: str, now: float, at: float = 0.0) -> float:
        facts = self._get(address)
        dial_at = max(facts.free_at, at) if facts.limit.gap_s else 0.0
        super().start(address, now, dial_at + MARGIN_S if dial_at > now else now + LEAD_S)
        self._lock.record_use(address, now)
        return dial_at if dial_at > now else 0.0


class SharedAddressQueue(AddressQueue[QueueSlot]):
    """The table of a program; the `LocalAddresses` of its address lock."""

    def __init__(
        self,
        networks: AddressLimits,
        now: float,
        member: tuple[str, int],
        partitions: int,
        pipelines: Mapping[int, CommitPipeline],
    ) -> None:
        """`member`: name and incarnation; `pipelines`: commit pipelines of the partitions here, by number."""
        self.lock = AddressLock(*member, partitions, self)
        super().__init__(networks, now, SharedPace(networks, now, self.lock))
        self._pipelines = pipelines

    def in_flight(self, address: str) -> int:
        return self._pace.in_flight(address)

    def wait_s(self, address: str, now: float) -> float:
        return self._pace.wait_s(address, now)

    def delay_until(self, address: str, until: float) -> None:
        self._pace.delay_until(address, until)

    def gap_s(self, address: str) -> float:
        return self._pace.gap_s(address)

    def has_line(self, address: str) -> bool:
        line = self._lines.get(address)
        return line is not None and line.first() is not None

    def in_use(self) -> Iterable[str]:
        return self._pace.limited()

    def mark(self) -> Callable[[], bool]:
        """A start is published when its batch has passed the pipeline."""
        waiting = [(pipeline, pipeline.submitted) for pipeline in self._pipelines.values() if len(pipeline)]
        return lambda: all(pipeline.completed >= sent for pipeline, sent in waiting)

    def call(self, now: float) -> bool:
        """Call the frontiers whose hosts are next where a slot is free, one per queue; returns whether there was one.
        Each frontier takes its turn before the next call: only then is it known whether the slot is used."""
        called: set[str] = set()
        while self.heap and self.heap[0][2] not in called and (taken := self.take(now)) is not None:
            called.add(taken[0])
            taken[1].owner.called(*taken)
        return bool(called)


class PartitionView(AddressQueue[QueueSlot]):
    """The view of one frontier: everything counts in the common table, and `take` returns hosts that were called."""

    def __init__(self, address_queue: SharedAddressQueue, wake: Callable[[], None]) -> None:
        self._lines, self._pace, self.heap, self._order = (
            address_queue._lines,
            address_queue._pace,
            address_queue.heap,
            address_queue._order,
        )
        self._called: deque[tuple[str, QueueSlot]] = deque()
        self._wake = wake
        self._lock = address_queue.lock

    def called(self, address: str, slot: QueueSlot) -> None:
        """The host is next in the queue of an address with a free slot, and out of the queue."""
        self._called.append((address, slot))
        self._wake()

    def wait(self, address: str, host: QueueSlot, now: float, head: bool = False, prepared: bool = False) -> None:
        host.owner = self
        super().wait(address, host, now, head, prepared)
        self._lock.want(address)

    def leave(self, host: QueueSlot) -> None:
        super().leave(host)
        self._called = deque(call for call in self._called if call[1] is not host)

    def next_ready(self) -> float | None:
        """Always None: the owner of the table calls."""
        return None

    def take(self, now: float) -> tuple[str, QueueSlot] | None:
        """The host that was called first."""
        return self._called.popleft() if self._called else None
