"""The last guard of a server address: so many fetches at once, so long between two starts. Pure.

The scheduler paces the addresses it knows; a host's first contact, and whatever else slips through, is held back here.
It is not kept: what cannot start almost at once is refused and goes back, so that the scheduler learns the address and
lines the host up. Only what must not go back (a further hop of a robots.txt) is `take`n without asking and waits here.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from nephila.kernel.net.address_limits import Networks
from nephila.kernel.net.address_pace import AddressPace

T = TypeVar("T")

TOLERANCE_S = 0.05
"""What the way here may have cost a fetch that was paced before: so much more than one gap is still waited for."""


class AddressSlots(Generic[T]):
    """Every operation is O(1) amortised but `forget`, O(waiting on the address)."""

    def __init__(self, networks: Networks) -> None:
        self._pace = AddressPace(networks)
        self._waiting: dict[str, deque[T]] = {}

    def refuses(self, address: str, now: float) -> bool:
        """Whether no slot is free, or the next start is farther away than one gap."""
        room = self._pace.room(address, now)
        return room is None or room - now > self._pace.gap_s(address) + TOLERANCE_S

    def take(self, address: str, one: T, now: float) -> float | None:
        """Hold a slot: the instant from which `one` may be dialled, now at the earliest; None when it was put in line
        for a slot."""
        room = self._pace.room(address, now)
        if room is None:
            self._waiting.setdefault(address, deque()).append(one)
            return None
        at = max(room, now)
        self._pace.start(address, now, at)
        return at

    def confirm(self, address: str, now: float) -> float:
        """Called by a holder when it dials: 0.0 when it may, else the instant at which to ask again."""
        return self._pace.confirm(address, now)

    def sent(self, address: str, now: float) -> None:
        """What a holder has dialled has reached the server: the gap counts from here."""
        self._pace.delay(address, now)

    def give(self, address: str, now: float) -> tuple[T, float] | None:
        """A holder is done; the first in line holds the slot now and may be dialled from the instant returned."""
        self._pace.end(address, now)
        line = self._waiting.get(address)
        if not line:
            return None
        one = line.popleft()
        if not line:
            del self._waiting[address]
        at = self._pace.room(address, now) or now
        self._pace.start(address, now, at)
        return one, at

    def forget(self, address: str, one: T) -> bool:
        """Take `one` out of the line; False when it was not waiting."""
        line = self._waiting.get(address)
        if line is None or one not in line:
            return False
        line.remove(one)
        if not line:
            del self._waiting[address]
        return True

    def __len__(self) -> int:
        """Addresses remembered."""
        return len(self._pace)

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        self._pace.check()
        assert all(self._waiting.values()), "an empty line"
        for address in self._waiting:
            assert self._pace.room(address, float("inf")) is None, "somebody waits for a free slot"
