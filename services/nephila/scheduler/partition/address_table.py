"""One table of server addresses for several frontiers of one program, and one queue per address.

A frontier sees only its own hosts. The table decides which host of a queue is next, and calls its frontier. Where
several programs fetch, a subclass says which addresses this program may fetch from at present; elsewhere there is no
free slot, and the queue requests the address.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from nephila.scheduler.frontier.host_state import QueueSlot
from nephila.scheduler.politeness.address_queue import AddressQueue


class AddressTable(AddressQueue[QueueSlot]):
    """The table of a program."""

    def want(self, address: str) -> None:
        """A host waits for this address."""

    def call(self, now: float) -> bool:
        """Call the frontiers whose hosts are next where a slot is free, one per queue; returns whether there was one.
        Each frontier takes its turn before the next call: only then is it known whether the slot is used."""
        called: set[str] = set()
        while self.heap and self.heap[0][2] not in called and (taken := self.take(now)) is not None:
            called.add(taken[0])
            taken[1].owner.called(*taken)
        return bool(called)

    def has_line(self, address: str) -> bool:
        """Whether a host waits for the address."""
        line = self._lines.get(address)
        return line is not None and line.first() is not None

    def in_flight(self, address: str) -> int:
        """Fetches on the address that have not ended."""
        return self._pace.in_flight(address)

    def wait_s(self, address: str, now: float) -> float:
        """Seconds until the end of the current gap."""
        return self._pace.wait_s(address, now)

    def delay_until(self, address: str, until: float) -> None:
        """Allow no start before an instant."""
        self._pace.delay_until(address, until)


class PartitionView(AddressQueue[QueueSlot]):
    """The view of one frontier: everything counts in the common table, and `take` returns hosts that were called."""

    def __init__(self, table: AddressTable, wake: Callable[[], None]) -> None:
        self._lines, self._pace, self.heap, self._order = table._lines, table._pace, table.heap, table._order
        self._called: deque[tuple[str, QueueSlot]] = deque()
        self._wake = wake
        self._table = table

    def called(self, address: str, slot: QueueSlot) -> None:
        """The host is next in the queue of an address with a free slot, and out of the queue."""
        self._called.append((address, slot))
        self._wake()

    def wait(self, address: str, host: QueueSlot, now: float, head: bool = False, prepared: bool = False) -> None:
        host.owner = self
        super().wait(address, host, now, head, prepared)
        self._table.want(address)

    def leave(self, host: QueueSlot) -> None:
        super().leave(host)
        self._called = deque(call for call in self._called if call[1] is not host)

    def next_ready(self) -> float | None:
        """Always None: the owner of the table calls."""
        return None

    def take(self, now: float) -> tuple[str, QueueSlot] | None:
        """The host that was called first."""
        return self._called.popleft() if self._called else None
