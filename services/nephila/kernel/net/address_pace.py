"""Pace per server address: a limit on concurrent fetches and a gap between two starts. Pure.

The scheduler plans by it, the downloader enforces it. Instants are monotonic seconds. An address without a fetch whose
gap is over carries no information, so it is removed.
"""

from __future__ import annotations

from collections import deque

from nephila.kernel.net.address_limits import AddressLimit, AddressLimits
from nephila.kernel.runtime.waits import Backoff

REFUSED_S = 0.05
"""First wait after a refusal on an address without a gap."""
UNSENT_S, UNSENT_STEP_S = 1.0, 0.05
"""A confirmed start whose request is not written delays the next start by so long at most, in steps. Without it, two
requests would reach the server together after a slow connection attempt; with no bound, an address that accepts no
connection would delay all its hosts by whole timeouts."""


class AddressState:
    __slots__ = (
        "free_at",
        "in_flight",
        "last",
        "limit",
        "pins",
        "queued",
        "refused",
        "unsent_until",
    )

    def __init__(self, limit: AddressLimit, free_at: float) -> None:
        self.limit = limit
        self.free_at = free_at
        """End of the gap after the last start."""
        self.last = float("-inf")
        """Instant of the last start that was confirmed or sent."""
        self.unsent_until = float("-inf")
        """End of the wait for the request of the last confirmed start to be written."""
        self.in_flight = 0
        self.pins = 0
        """References that keep the state beyond the fetches in flight."""
        self.refused = 0
        """Fetches in a row that were given back: there are fetches on the address that are not counted here."""
        self.queued = False


class AddressPace:
    """Pace of all addresses. O(1) amortised per operation; memory is O(addresses that are not idle)."""

    def __init__(self, limits: AddressLimits, restarted_at: float = float("-inf")) -> None:
        """`restarted_at`: instant of a restart. Starts before it are unknown, so the first start on each address comes
        one gap later."""
        self._limits = limits
        self._not_before = restarted_at
        self._known: dict[str, AddressState] = {}
        self._idle: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._known)

    def next_start(self, address: str, now: float) -> float | None:
        """0.0 when a fetch may start now, else the instant when it may; None when a running fetch has to end first."""
        state = self._known.get(address) or self._new(address)
        if state.limit.connections and state.in_flight >= state.limit.connections:
            return None
        return state.free_at if state.free_at > now else 0.0

    def start(self, address: str, now: float, at: float = 0.0) -> float:
        """Count a fetch that starts now, or `at` a later instant that is reserved for it. Returns when it has to dial;
        0.0 = at once."""
        state = self._get(address)
        state.in_flight += 1
        state.free_at = max(state.free_at, max(now, at) + state.limit.gap_s)
        self._drop_idle(now)
        return at

    def confirm(self, address: str, now: float) -> float:
        """0.0 when a reserved start may be made now, else the instant of the next try. After a blocked event loop
        several reserved starts are due at once; the gap applies between them as well. The request of the start before
        must be written, its fetch ended, or UNSENT_S over."""
        state = self._known[address]
        due = state.last + state.limit.gap_s
        if now < due:
            return due
        if now < state.unsent_until:
            return min(now + UNSENT_STEP_S, state.unsent_until)
        self.restart_gap(address, now)
        if state.limit.gap_s:
            state.unsent_until = now + UNSENT_S
        return 0.0

    def record_sent(self, address: str, at: float) -> None:
        """Like `restart_gap`, for a late report: the address may have been removed by then."""
        if address in self._known:
            self.restart_gap(address, at)

    def restart_gap(self, address: str, now: float) -> None:
        """A request was written now: the gap counts from here."""
        state = self._known[address]
        state.last = now
        state.unsent_until = float("-inf")
        state.free_at = max(state.free_at, now + state.limit.gap_s)

    def delay_until(self, address: str, until: float) -> None:
        """Allow no start before an instant: another scheduler may have started a fetch just now."""
        state = self._get(address)
        state.free_at = max(state.free_at, until)
        self._queue_if_idle(address, state)

    def in_flight(self, address: str) -> int:
        """Fetches on the address that have not ended."""
        state = self._known.get(address)
        return state.in_flight if state is not None else 0

    def wait_s(self, address: str, now: float) -> float:
        """Seconds until the end of the current gap."""
        state = self._known.get(address)
        return max(state.free_at - now, 0.0) if state is not None else 0.0

    def limited(self) -> list[str]:
        """Stored addresses that have a limit. O(addresses)."""
        return [address for address, state in self._known.items() if not state.limit.unlimited]

    def end(self, address: str, now: float) -> None:
        state = self._known[address]
        state.refused = 0
        self._finish(address, state, now)

    def refuse(self, address: str, now: float) -> None:
        """A fetch was given back by the stricter limit of a downloader. The wait doubles each time in a row, up to
        sixteen gaps."""
        state = self._known[address]
        state.refused += 1
        gap_s = max(state.limit.gap_s, REFUSED_S)
        state.free_at = max(state.free_at, now + Backoff(gap_s, 16 * gap_s).after(state.refused))
        self._finish(address, state, now)

    def gap_s(self, address: str) -> float:
        """Seconds between two starts on the address."""
        state = self._known.get(address)
        return state.limit.gap_s if state is not None else self._limits.find(address).gap_s

    def pin(self, address: str) -> AddressState:
        """The state of the address; it is not removed before `unpin`."""
        state = self._get(address)
        state.pins += 1
        return state

    def unpin(self, address: str) -> None:
        state = self._known[address]
        state.pins -= 1
        self._queue_if_idle(address, state)

    def _get(self, address: str) -> AddressState:
        state = self._known.get(address)
        if state is None:
            state = self._known[address] = self._new(address)
        return state

    def _new(self, address: str) -> AddressState:
        limit = self._limits.find(address)
        return AddressState(limit, self._not_before + limit.gap_s)

    def _finish(self, address: str, state: AddressState, now: float) -> None:
        state.in_flight -= 1
        if not state.in_flight:
            state.unsent_until = float("-inf")
        self._queue_if_idle(address, state)
        self._drop_idle(now)

    def _queue_if_idle(self, address: str, state: AddressState) -> None:
        if not state.in_flight and not state.pins and not state.queued:
            state.queued = True
            self._idle.append(address)

    def _drop_idle(self, now: float) -> None:
        """Remove at most two idle addresses whose gap is over; a long gap delays the removal of those behind it."""
        for _ in range(min(2, len(self._idle))):
            state = self._known[self._idle[0]]
            idle = not state.in_flight and not state.pins
            if idle and state.free_at > now:
                return
            state.queued = False
            address = self._idle.popleft()
            if idle:
                del self._known[address]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(addresses)."""
        queued = set(self._idle)
        assert len(queued) == len(self._idle), "an address is in the idle queue twice"
        assert queued == {address for address, state in self._known.items() if state.queued}
        for address, state in self._known.items():
            assert min(state.in_flight, state.pins) >= 0, f"{address}: more ends than starts"
            assert state.in_flight or state.pins or state.queued, f"{address} is idle and is never removed"
            most = state.limit.connections
            assert not most or state.in_flight <= most, f"{address}: {state.in_flight} fetches, at most {most}"
