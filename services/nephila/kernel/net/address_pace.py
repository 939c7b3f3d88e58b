"""Count and gap per server address: so many fetches at once, so long between two starts. Pure.

The scheduler plans by it, the downloader guards by it. Instants are monotonic seconds. What is idle is forgotten:
an address without a fetch whose gap is over is as good as one never seen.
"""

from __future__ import annotations

from collections import deque

from nephila.kernel.net.address_limits import Bears, Networks

REFUSED_S = 0.05
"""Before an address without a gap is tried again after a refusal."""


class Address:
    """What is remembered of one address."""

    __slots__ = ("bears", "free_at", "in_flight", "kept", "last", "refused", "resting")

    def __init__(self, bears: Bears, free_at: float) -> None:
        self.bears = bears
        self.free_at = free_at
        """When the gap after the last start is over."""
        self.last = float("-inf")
        """When a reserved start was made last."""
        self.in_flight = 0
        self.kept = 0
        """How many rely on it beyond the fetches in flight."""
        self.refused = 0
        """Fetches in a row that were sent back: more goes on there than is known here."""
        self.resting = False


class AddressPace:
    """Every operation is O(1) amortised; memory is that of the addresses that are not idle."""

    def __init__(self, networks: Networks, nobody_before: float = float("-inf")) -> None:
        """`nobody_before`: when a restart begins; starts of the program before are unknown, so the first start on
        every address is one gap later."""
        self._networks = networks
        self._nobody_before = nobody_before
        self._known: dict[str, Address] = {}
        self._resting: deque[str] = deque()

    def __len__(self) -> int:
        """Addresses remembered."""
        return len(self._known)

    def room(self, address: str, now: float) -> float | None:
        """0.0 when a fetch may start now, else the instant; None when only an end can make room."""
        known = self._known.get(address) or self._new(address)
        if known.bears.connections and known.in_flight >= known.bears.connections:
            return None
        return known.free_at if known.free_at > now else 0.0

    def start(self, address: str, now: float, at: float = 0.0) -> None:
        """A fetch starts, now or `at` a later instant that is reserved for it."""
        known = self._get(address)
        known.in_flight += 1
        known.free_at = max(known.free_at, max(now, at) + known.bears.gap_s)
        self._forget(now)

    def confirm(self, address: str, now: float) -> float:
        """Whether a reserved start may be made now: 0.0, or when. A program that stood still wakes up with several that
        are due; between those it makes the gap counts as well."""
        known = self._known[address]
        due = known.last + known.bears.gap_s
        if now < due:
            return due
        self.delay(address, now)
        return 0.0

    def sent(self, address: str, at: float) -> None:
        """Like `delay`, for whoever hears of it later: the address may be forgotten by then."""
        if address in self._known:
            self.delay(address, at)

    def delay(self, address: str, now: float) -> None:
        """A start that was made took until now."""
        known = self._known[address]
        known.last = now
        known.free_at = max(known.free_at, now + known.bears.gap_s)

    def put_off(self, address: str, until: float) -> None:
        """Nothing starts there before an instant: somebody else's start may have been just now."""
        known = self._get(address)
        known.free_at = max(known.free_at, until)
        self._rest(address, known)

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
        return [address for address, known in self._known.items() if not known.bears.anything]

    def end(self, address: str, now: float) -> None:
        """A fetch that was started has ended."""
        known = self._known[address]
        known.refused = 0
        self._ended(address, known, now)

    def refuse(self, address: str, now: float) -> None:
        """A fetch that was started never was one: a stricter guard sent it back. Each time in a row the next try is
        twice as far away, up to sixteen gaps."""
        known = self._known[address]
        wait_s = max(known.bears.gap_s, REFUSED_S) * 2 ** min(known.refused, 4)
        known.free_at = max(known.free_at, now + wait_s)
        known.refused += 1
        self._ended(address, known, now)

    def gap_s(self, address: str) -> float:
        """Seconds between two starts there."""
        known = self._known.get(address)
        return known.bears.gap_s if known is not None else self._networks.find(address).gap_s

    def keep(self, address: str) -> Address:
        """The address, not to be forgotten until `let_go`."""
        known = self._get(address)
        known.kept += 1
        return known

    def let_go(self, address: str) -> None:
        """The counterpart of `keep`."""
        known = self._known[address]
        known.kept -= 1
        self._rest(address, known)

    def _get(self, address: str) -> Address:
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = self._new(address)
        return known

    def _new(self, address: str) -> Address:
        bears = self._networks.find(address)
        return Address(bears, self._nobody_before + bears.gap_s)

    def _ended(self, address: str, known: Address, now: float) -> None:
        known.in_flight -= 1
        self._rest(address, known)
        self._forget(now)

    def _rest(self, address: str, known: Address) -> None:
        if not known.in_flight and not known.kept and not known.resting:
            known.resting = True
            self._resting.append(address)

    def _forget(self, now: float) -> None:
        """Drop what rests and whose gap is over, a few at a time; one with a long gap holds up those behind it."""
        for _ in range(min(2, len(self._resting))):
            known = self._known[self._resting[0]]
            idle = not known.in_flight and not known.kept
            if idle and known.free_at > now:
                return
            known.resting = False
            address = self._resting.popleft()
            if idle:
                del self._known[address]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(addresses)."""
        resting = set(self._resting)
        assert len(resting) == len(self._resting), "an address rests twice"
        assert resting == {address for address, known in self._known.items() if known.resting}
        for address, known in self._known.items():
            assert min(known.in_flight, known.kept) >= 0, f"{address}: more ends than starts"
            assert known.in_flight or known.kept or known.resting, f"{address} is idle and will never be forgotten"
            most = known.bears.connections
            assert not most or known.in_flight <= most, f"{address}: {known.in_flight} fetches, at most {most}"
