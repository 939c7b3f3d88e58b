"""Which group of partitions may fetch from a server address. Pure.

The hosts of one address may belong to partitions of several groups, and each group paces its own fetches. So an address
belongs to one group at a time: the main process leases it (`AddressLeases`), and a group has no slot on an address that
it does not hold (`held_addresses.py`). A group that is called upon to give an address back starts one more
fetch at most, waits for the end of its fetches there, and returns the address with the end of its gap. A group that
died has no connection any more; the gap counts from its death.
"""

from collections import deque
from typing import NamedTuple

from nephila.kernel.net.address_limits import AddressLimits

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
