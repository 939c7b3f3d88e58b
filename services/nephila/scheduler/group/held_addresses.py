"""The addresses that the main process has leased to a group (`address_leases.py`), and their pace. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace
from nephila.scheduler.group.address_leases import HELD
from nephila.scheduler.partition.address_table import AddressTable


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
