"""Count and gap per server address: so many fetches at once, so long between two starts. Pure.

The scheduler plans by it, the downloader guards by it. Instants are monotonic seconds. What is idle is forgotten:
an address without a fetch whose gap is over is as good as one never seen.
"""

from __future__ import annotations

from collections import deque

from nephila.kernel.net.address_limits import AddressLimit, AddressLimits

REFUSED_S = 0.05
"""Before an address without a gap is tried again after a refusal."""


class AddressState:
    """What is remembered of one address."""

    __slots__ = (
        "free_at",
        "in_flight",
        "last",
        "limit",
        "pins",
        "queued",
        "refused",
    )

    def __init__(self, limit: AddressLimit, free_at: float) -> None:
        self.limit = limit
        self.free_at = free_at
        """When the gap after the last start is over."""
        self.last = float("-inf")
        """When a reserved start was made last."""
        self.in_flight = 0
        self.pins = 0
        """How many rely on it beyond the fetches in flight."""
        self.refused = 0
        """Fetches in a row that were sent back: more goes on there than is known here."""
        self.queued = False


class AddressPace:
    """Every operation is O(1) amortised; memory is that of the addresses that are not idle."""

    def __init__(self, limits: AddressLimits, restarted_at: float = float("-inf")) -> None:
        """`restarted_at`: when a restart begins; starts of the program before are unknown, so the first start on
        every address is one gap later."""
        self._limits = limits
        self._nobody_before = restarted_at
        self._known: dict[str, AddressState] = {}
        self._idle: deque[str] = deque()

    def __len__(self) -> int:
        """Addresses remembered."""
        return len(self._known)

    def next_start(self, address: str, now: float) -> float | None:
        """0.0 when a fetch may start now, else the instant; None when only an end can make room."""
        known = self._known.get(address) or self._new(address)
        if known.limit.connections and known.in_flight >= known.limit.connections:
            return None
        return known.free_at if known.free_at > now else 0.0

    def start(self, address: str, now: float, at: float = 0.0) -> None:
        """A fetch starts, now or `at` a later instant that is reserved for it."""
        known = self._get(address)
        known.in_flight += 1
        known.free_at = max(known.free_at, max(now, at) + known.limit.gap_s)
        self._drop_idle(now)

    def confirm(self, address: str, now: float) -> float:
        """Whether a reserved start may be made now: 0.0, or when. A program that stood still wakes up with several that
        are due; between those it makes the gap counts as well."""
        known = self._known[address]
        due = known.last + known.limit.gap_s
        if now < due:
            return due
        self.restart_gap(address, now)
        return 0.0

    def record_sent(self, address: str, at: float) -> None:
        """Like `restart_gap`, for whoever hears of it later: the address may be forgotten by then."""
        if address in self._known:
            self.restart_gap(address, at)

    def restart_gap(self, address: str, now: float) -> None:
        """A start that was made took until now."""
        known = self._known[address]
        known.last = now
        known.free_at = max(known.free_at, now + known.limit.gap_s)

    def delay_until(self, address: str, until: float) -> None:
        """Nothing starts there before an instant: somebody else's start may have been just now."""
        known = self._get(address)
        known.free_at = max(known.free_at, until)
        self._queue_if_idle(address, known)

    def in_flight(self, address: str) -> int:
        """Fetches that were started there and have not ended."""
        known = self._known.get(address)
        return known.in_flight if known is not None else 0

    def wait_s(self, address: str, now: float) -> float:
        """Seconds until the gap after the last start there is over."""
        known = self._known.get(address)
        return max(known.free_at - now, 0.0) if known is not None else 0.0

    def limited(self) -> list[str]:
        """Addresses remembered that have a limit. O(addresses)."""
        return [address for address, known in self._known.items() if not known.limit.unlimited]

    def end(self, address: str, now: float) -> None:
        """A fetch that was started has ended."""
        known = self._known[address]
        known.refused = 0
        self._finish(address, known, now)

    def refuse(self, address: str, now: float) -> None:
        """A fetch that was started never was one: a stricter guard sent it back. Each time in a row the next try is
        twice as far away, up to sixteen gaps."""
        known = self._known[address]
        wait_s = max(known.limit.gap_s, REFUSED_S) * 2 ** min(known.refused, 4)
        known.free_at = max(known.free_at, now + wait_s)
        known.refused += 1
        self._finish(address, known, now)

    def gap_s(self, address: str) -> float:
        """Seconds between two starts there."""
        known = self._known.get(address)
        return known.limit.gap_s if known is not None else self._limits.find(address).gap_s

    def pin(self, address: str) -> AddressState:
        """The address, not to be forgotten until `unpin`."""
        known = self._get(address)
        known.pins += 1
        return known

    def unpin(self, address: str) -> None:
        """The counterpart of `pin`."""
        known = self._known[address]
        known.pins -= 1
        self._queue_if_idle(address, known)

    def _get(self, address: str) -> AddressState:
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = self._new(address)
        return known

    def _new(self, address: str) -> AddressState:
        limit = self._limits.find(address)
        return AddressState(limit, self._nobody_before + limit.gap_s)

    def _finish(self, address: str, known: AddressState, now: float) -> None:
        known.in_flight -= 1
        self._queue_if_idle(address, known)
        self._drop_idle(now)

    def _queue_if_idle(self, address: str, known: AddressState) -> None:
        if not known.in_flight and not known.pins and not known.queued:
            known.queued = True
            self._idle.append(address)

    def _drop_idle(self, now: float) -> None:
        """Drop what rests and whose gap is over, a few at a time; one with a long gap holds up those behind it."""
        for _ in range(min(2, len(self._idle))):
            known = self._known[self._idle[0]]
            idle = not known.in_flight and not known.pins
            if idle and known.free_at > now:
                return
            known.queued = False
            address = self._idle.popleft()
            if idle:
                del self._known[address]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(addresses)."""
        queued = set(self._idle)
        assert len(queued) == len(self._idle), "an address rests twice"
        assert queued == {address for address, known in self._known.items() if known.queued}
        for address, known in self._known.items():
            assert min(known.in_flight, known.pins) >= 0, f"{address}: more ends than starts"
            assert known.in_flight or known.pins or known.queued, f"{address} is idle and will never be forgotten"
            most = known.limit.connections
            assert not most or known.in_flight <= most, f"{address}: {known.in_flight} fetches, at most {most}"
