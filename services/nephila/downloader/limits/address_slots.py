"""The last limit per server address: fetches at once, and the gap between two starts. Pure.

The scheduler paces the addresses of hosts that were resolved before. Other fetches, such as the first of a host, wait
here. A request that cannot start almost at once is refused and given back, so that the scheduler learns the address and
queues the host. Only a redirect of a robots.txt, which must not be given back, calls `acquire` at once and waits here.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace

T = TypeVar("T")

TOLERANCE_S = 0.05
"""Transport delay of a fetch that the scheduler paced: a wait of one gap and this much more is accepted."""


class AddressSlots(Generic[T]):
    """Slots and queues by address. O(1) amortised, except `cancel`: O(waiting on the address)."""

    def __init__(self, limits: AddressLimits) -> None:
        self._pace = AddressPace(limits)
        self._waiting: dict[str, deque[T]] = {}

    def refuses(self, address: str, now: float, planned: float = 0.0) -> bool:
        """Whether no slot is free, or the next start is farther away from now, or from the `planned` instant, than one
        gap."""
        next_start = self._pace.next_start(address, now)
        return next_start is None or next_start - max(now, planned) > self._pace.gap_s(address) + TOLERANCE_S

    def acquire(self, address: str, waiter: T, now: float, planned: float = 0.0) -> float | None:
        """Take a slot. Returns the instant of the dial, `now` and the `planned` instant at the earliest; None when
        `waiter` was queued."""
        next_start = self._pace.next_start(address, now)
        if next_start is None:
            self._waiting.setdefault(address, deque()).append(waiter)
            return None
        at = max(next_start, now, planned)
        self._pace.start(address, now, at)
        return at

    def confirm(self, address: str, now: float) -> float:
        """Called by a holder before its dial: 0.0 when it may start, else the instant of the next try."""
        return self._pace.confirm(address, now)

    def record_sent(self, address: str, now: float) -> None:
        """The request of a holder was written: the gap counts from now."""
        self._pace.restart_gap(address, now)

    def release(self, address: str, now: float) -> tuple[T, float] | None:
        """Free a slot. Returns the first waiter, which holds the slot now, and the instant from which it may dial."""
        self._pace.end(address, now)
        queue = self._waiting.get(address)
        if not queue:
            return None
        waiter = queue.popleft()
        if not queue:
            del self._waiting[address]
        at = self._pace.next_start(address, now) or now
        self._pace.start(address, now, at)
        return waiter, at

    def cancel(self, address: str, waiter: T) -> bool:
        """Remove `waiter` from the queue; False when it was not in it."""
        queue = self._waiting.get(address)
        if queue is None or waiter not in queue:
            return False
        queue.remove(waiter)
        if not queue:
            del self._waiting[address]
        return True

    def __len__(self) -> int:
        return len(self._pace)

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        self._pace.check()
        assert all(self._waiting.values()), "an empty queue"
        for address in self._waiting:
            assert self._pace.next_start(address, float("inf")) is None, "a waiter although a slot is free"
