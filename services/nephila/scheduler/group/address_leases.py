"""Which group of partitions may fetch from a server address. Pure.

The hosts of one address may belong to partitions of several groups, and each group paces its own fetches. So an address
belongs to one group at a time: the main process leases it (`AddressLeases`), and a group has no slot on an address that
it does not hold (`HeldAddresses`, `LeasedPace`). A group that is called upon to give an address back starts one more
fetch at most, waits for the end of its fetches there, and returns the address with the end of its gap. A group that
died has no connection any more; the gap counts from its death.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace
from nephila.scheduler.partition.address_table import AddressTable

HELD = 50_000
"""Addresses that a group keeps; beyond it returns those that it does not use."""


class Grant(NamedTuple):
    """The group gets the address, from an instant on."""

    group: int
    address: str
    not_before: float


class Recall(NamedTuple):
    """The group is to give the address back."""

    group: int
    address: str


class AddressLeases:
    """The leases of all groups, in the main process. O(1) per operation, memory is O(addresses held)."""

    def __init__(self, limits: AddressLimits) -> None:
        self._limits = limits
        self._holders: dict[str, int] = {}
        self._waiting: dict[str, deque[int]] = {}
        self._free_at: dict[str, float] = {}
        """Ends of the gaps of addresses that no group holds, the last ones that were returned."""

    def want(self, group: int, address: str) -> Grant | Recall | None:
        """A group waits for an address; None: it waits behind others that do."""
        holder = self._holders.setdefault(address, group)
        if holder == group:
            return Grant(group, address, self._free_at.pop(address, 0.0))
        waiting = self._waiting.setdefault(address, deque())
        waiting.append(group)
        return Recall(holder, address) if len(waiting) == 1 else None

    def release(self, address: str, free_at: float) -> list[Grant | Recall]:
        """The holder has returned an address."""
        del self._holders[address]
        return self._pass_on(address, free_at)

    def lost(self, group: int, now: float) -> list[Grant | Recall]:
        """A group has died: its addresses go to others, after one gap. O(addresses held)."""
        for address, waiting in list(self._waiting.items()):
            self._waiting[address] = waiting = deque(other for other in waiting if other != group)
            if not waiting:
                del self._waiting[address]
        messages: list[Grant | Recall] = []
        for address in [address for address, holder in self._holders.items() if holder == group]:
            del self._holders[address]
            messages += self._pass_on(address, now + self._limits.find(address).gap_s)
        return messages

    def _pass_on(self, address: str, free_at: float) -> list[Grant | Recall]:
        waiting = self._waiting.get(address)
        if not waiting:
            self._free_at[address] = free_at
            if len(self._free_at) > HELD:
                del self._free_at[next(iter(self._free_at))]
            return []
        group = self._holders[address] = waiting.popleft()
        messages: list[Grant | Recall] = [Grant(group, address, free_at)]
        if waiting:
            messages.append(Recall(group, address))
        else:
            del self._waiting[address]
        return messages

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        assert len(self._free_at) <= HELD
        assert not self._free_at.keys() & self._holders.keys()
        for address, waiting in self._waiting.items():
            assert waiting, f"an empty queue for {address}"
            assert address in self._holders, f"groups wait for {address}, which no group holds"
            assert self._holders[address] not in waiting, f"the holder of {address} waits for it"


class Lease(Enum):
    """An address as its group sees it."""

    HELD = "held"
    USED = "used"
    """A fetch was started on it since the grant."""
    RECALLED = "recalled"
    """Another group waits, and no fetch was started since the grant: one may start."""
    RETURNING = "returning"
    """Another group waits: no fetch starts, and the address is returned when none is left."""


RECALLS = {
    Lease.HELD: Lease.RECALLED,
    Lease.USED: Lease.RETURNING,
    Lease.RECALLED: Lease.RECALLED,
    Lease.RETURNING: Lease.RETURNING,
}
STARTS = {Lease.HELD: Lease.USED, Lease.USED: Lease.USED, Lease.RECALLED: Lease.RETURNING}


class HeldAddresses:
    """The addresses of one group."""

    def __init__(self, want: Callable[[str], None], release: Callable[[str, float], None]) -> None:
        """`want` asks the main process for an address; `release` returns one with the end of its gap."""
        self._want = want
        self._release = release
        self._leases: dict[str, Lease] = {}
        self._wanted: set[str] = set()
        self._recalled: set[str] = set()

    def may_start(self, address: str) -> bool:
        """Whether a fetch may start on the address, apart from its pace."""
        lease = self._leases.get(address)
        return lease is not None and lease is not Lease.RETURNING

    def want(self, address: str) -> None:
        """A host waits for the address."""
        if address not in self._leases and address not in self._wanted:
            self._wanted.add(address)
            self._want(address)

    def granted(self, address: str) -> None:
        """The main process has granted the address."""
        self._wanted.discard(address)
        self._leases[address] = Lease.HELD

    def started(self, address: str) -> None:
        """A fetch on the address has started."""
        lease = self._leases.get(address)
        if lease is not None:  # an address without limits is not leased
            self._leases[address] = STARTS[lease]

    def recall(self, address: str) -> None:
        """Another group waits for the address."""
        if address in self._leases:
            self._leases[address] = RECALLS[self._leases[address]]
            self._recalled.add(address)

    def return_unused(self, table: AddressTable, now: float) -> None:
        """Return recalled addresses without a fetch, and idle ones if there are too many. O(recalled)."""
        idle: Iterable[str] = ()
        if len(self._leases) > HELD:
            idle = list(self._leases)[: len(self._leases) - HELD]
        for address in [*self._recalled, *idle]:
            waits = table.has_line(address)
            if table.in_flight(address) or (waits and self._leases.get(address) is not Lease.RETURNING):
                continue
            self._recalled.discard(address)
            if self._leases.pop(address, None) is not None:
                self._release(address, now + table.wait_s(address, now))
            if waits:
                self.want(address)


class LeasedPace(AddressPace):
    """Slots and gaps of one group: none on an address that another group holds."""

    def __init__(self, limits: AddressLimits, restarted_at: float, held: HeldAddresses) -> None:
        super().__init__(limits, restarted_at)
        self._held = held

    def next_start(self, address: str, now: float) -> float | None:
        state = self._known.get(address) or self._new(address)
        if state.limit.unlimited:
            return 0.0
        return super().next_start(address, now) if self._held.may_start(address) else None

    def start(self, address: str, now: float, at: float = 0.0) -> float:
        self._held.started(address)
        return super().start(address, now, at)


class LeasedAddresses(AddressTable):
    """The table of one group."""

    def __init__(self, limits: AddressLimits, restarted_at: float, held: HeldAddresses) -> None:
        super().__init__(limits, restarted_at, LeasedPace(limits, restarted_at, held))
        self._held = held

    def want(self, address: str) -> None:
        self._held.want(address)

    def granted(self, address: str, not_before: float, now: float) -> None:
        """The address belongs to this group from an instant on."""
        self._held.granted(address)
        self.delay_until(address, not_before)
        self.look(address, now)
