"""Pace by server address for several frontiers of one program: one table, one line per address.

Each frontier sees its own hosts only. Whose turn it is in a line is decided here, once, and its frontier is called. At
which addresses it is this program's turn is said in `turns.py`: at others there is no room, and the line asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace
from nephila.scheduler.cluster.addresses.address_lock import AddressLock
from nephila.scheduler.cluster.commit_pipeline import CommitPipeline
from nephila.scheduler.frontier.host_state import QueueSlot
from nephila.scheduler.politeness.address_queue import AddressQueue


class SharedPace(AddressPace):
    """Count and gap of a program that is one of several: room only in its turn, less what others have in flight."""

    lock: AddressLock

    def next_start(self, address: str, now: float) -> float | None:
        """See `AddressPace.next_start`."""
        known = self._known.get(address) or self._new(address)
        if known.limit.unlimited:
            return 0.0
        if not self.lock.held(address):
            return None
        others, most = self.lock.others(address), known.limit.connections
        if others and most and known.in_flight + others >= most:
            return None
        return super().next_start(address, now)

    def start(self, address: str, now: float, at: float = 0.0) -> None:
        """See `AddressPace.start`."""
        super().start(address, now, at)
        self.lock.record_use(address, now)


class SharedAddressQueue(AddressQueue[QueueSlot]):
    """The table of a program; for its turns it is what is `LocalAddresses`."""

    def __init__(
        self,
        networks: AddressLimits,
        now: float,
        member: tuple[str, int],
        partitions: int,
        pipelines: Mapping[int, CommitPipeline],
    ) -> None:
        """`member`: name and life; `gates`: those of the partitions that are here, by number."""
        pace = SharedPace(networks, now)
        super().__init__(networks, now, pace)
        self.lock = pace.lock = AddressLock(*member, partitions, self)
        self._pipelines = pipelines

    def in_flight(self, address: str) -> int:
        """See `LocalAddresses`."""
        return self._pace.in_flight(address)

    def wait_s(self, address: str, now: float) -> float:
        """See `LocalAddresses`."""
        return self._pace.wait_s(address, now)

    def delay_until(self, address: str, until: float) -> None:
        """See `LocalAddresses`."""
        self._pace.delay_until(address, until)

    def gap_s(self, address: str) -> float:
        """See `LocalAddresses`."""
        return self._pace.gap_s(address)

    def has_line(self, address: str) -> bool:
        """See `LocalAddresses`."""
        line = self._lines.get(address)
        return line is not None and line.first() is not None

    def in_use(self) -> Iterable[str]:
        """See `LocalAddresses`."""
        return self._pace.limited()

    def mark(self) -> Callable[[], bool]:
        """See `LocalAddresses`: a start is on its way when the turn that made it has passed the pipelines."""
        waiting = [(pipeline, pipeline.submitted) for pipeline in self._pipelines.values() if len(pipeline)]
        return lambda: all(pipeline.completed >= sent for pipeline, sent in waiting)

    def call(self, now: float) -> bool:
        """Call the frontiers whose hosts are next where there is room, one of each line; whether there was any. Each
        takes its turn before this is asked again: only then is it known whether the room is still there."""
        called: set[str] = set()
        while self._heap and self._heap[0][2] not in called and (taken := self.take(now)) is not None:
            called.add(taken[0])
            taken[1].owner.called(*taken)
        return bool(called)


class PartitionView(AddressQueue[QueueSlot]):
    """One frontier's view: everything is counted in the common table; `take` gives what was called."""

    def __init__(self, address_queue: SharedAddressQueue, wake: Callable[[], None]) -> None:
        self._lines, self._pace, self._heap, self._order = (
            address_queue._lines,
            address_queue._pace,
            address_queue._heap,
            address_queue._order,
        )
        self._called: deque[tuple[str, QueueSlot]] = deque()
        self._wake = wake
        self._lock = address_queue.lock

    def called(self, address: str, place: QueueSlot) -> None:
        """The place is next in the line of an address that has room, and out of it."""
        self._called.append((address, place))
        self._wake()

    def wait(self, address: str, host: QueueSlot, now: float, head: bool = False) -> None:
        """See `Addresses.wait`."""
        host.owner = self
        super().wait(address, host, now, head)
        self._lock.want(address)

    def leave(self, host: QueueSlot) -> None:
        """See `Addresses.leave`."""
        super().leave(host)
        self._called = deque(one for one in self._called if one[1] is not host)

    def next_ready(self) -> float | None:
        """Nothing: the table's owner calls."""
        return None

    def take(self, now: float) -> tuple[str, QueueSlot] | None:
        """Who was called first."""
        return self._called.popleft() if self._called else None
