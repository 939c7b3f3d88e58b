"""Pace per server address over all hosts, jobs and lanes, and the line of hosts that wait for one. Pure.

A host that is ready while its address has no room goes to the end of that address's line and off the workbench. Only
the first of a line is looked at, and only when there is room: a thousand hosts on one address cost as much as one.
`next_ready` and `take` are those of the workbench; the dispatcher serves whichever of the two is due first. A host that
`take` has given is out of the line, whether it is served or not: nobody behind it waits for somebody who is gone.
Lines are not durable: after a restart a host meets its address again when it is ready.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Generic, Protocol, TypeVar

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace


class Lined(Protocol):
    """What a line needs of a host: its number there, 0 while it stands in none."""

    line: int


H = TypeVar("H", bound=Lined)


class _Line(Generic[H]):
    """Hosts in order of arrival. An entry counts while its number is the host's current one."""

    __slots__ = ("due", "entries")

    def __init__(self) -> None:
        self.entries: deque[tuple[int, H]] = deque()
        self.due: float | None = None
        """When it is looked at next; None while only an end can make room."""

    def first(self) -> H | None:
        """Who is first of those that have not left."""
        entries = self.entries
        while entries and entries[0][1].line != entries[0][0]:
            entries.popleft()
        return entries[0][1] if entries else None


class AddressQueue(Generic[H]):
    """Operations are O(log lines) amortised, memory that of addresses with a fetch, a gap or a line."""

    def __init__(
        self, networks: AddressLimits, restarted_at: float = float("-inf"), pace: AddressPace | None = None
    ) -> None:
        """`restarted_at`: the instant of a restart, see `AddressPace`; `pace`: another one than that alone."""
        self._pace = AddressPace(networks, restarted_at) if pace is None else pace
        self._lines: dict[str, _Line[H]] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._order = itertools.count(1)

    def room(self, address: str, now: float, first: bool = False) -> float | None:
        """0.0 when a fetch may start now, else the instant; None when only an end can make room.

        Who is not `first`, as is the host that `take` has just given, comes after the line: no room while one waits.
        """
        room = self._pace.next_start(address, now)
        if first or room is None:
            return room
        line = self._lines.get(address)
        if line is None or line.first() is None:
            return room
        # As if each of the line took one gap: an estimate for people, at least not 0.
        return max(room, now) + len(line.entries) * max(self._pace.gap_s(address), 1e-3)

    def start(self, address: str, now: float) -> None:
        """A fetch on the address is handed out."""
        self._pace.start(address, now)

    def sent(self, address: str, at: float) -> None:
        """A request that was started has reached the server: the gap counts from here."""
        self._pace.record_sent(address, at)

    def end(self, address: str, now: float, refused: bool = False) -> None:
        """A fetch that was started there has ended, whatever became of it; `refused` when the downloader sent it back
        undialled: it knows of fetches that are not known here, such as first contacts."""
        (self._pace.refuse if refused else self._pace.end)(address, now)
        self.look(address, now)

    def wait(self, address: str, host: H, now: float, head: bool = False) -> None:
        """Put the host at the end of the address's line, or at its head where it has been before; one that stands in
        a line keeps its place."""
        if host.line:
            return
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = _Line()
            self._pace.pin(address)
        host.line = next(self._order)
        (line.entries.appendleft if head else line.entries.append)((host.line, host))
        if line.due is None:
            self._arm(address, line, now)

    def look(self, address: str, now: float) -> None:
        """There may be room at an address where no end was waited for."""
        line = self._lines.get(address)
        if line is not None and line.due is None:
            self._arm(address, line, now)

    def leave(self, host: H) -> None:
        """Take the host out of its line: it has nothing to fetch any more, or rests for a reason of its own."""
        host.line = 0

    def next_ready(self) -> float | None:
        """When the first of a line may be served; None when no line waits for time."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> tuple[str, H] | None:
        """(address, host) that is next where there is room; None when there is nobody. It has left its line."""
        while self._heap and self._heap[0][0] <= now:
            address = heapq.heappop(self._heap)[2]
            line = self._lines[address]
            line.due = None
            host = line.first()
            if host is None:
                del self._lines[address]
                self._pace.unpin(address)
            elif self._pace.next_start(address, now) != 0.0:
                self._arm(address, line, now)
            else:
                line.entries.popleft()
                host.line = 0
                self._arm(address, line, now)
                return address, host
        return None

    def _arm(self, address: str, line: _Line[H], now: float) -> None:
        room = self._pace.next_start(address, now)
        if room is not None:
            line.due = max(room, now)
            heapq.heappush(self._heap, (line.due, next(self._order), address))

    def __len__(self) -> int:
        """Addresses remembered."""
        return len(self._pace)

    def lined(self) -> list[str]:
        """Addresses with a line."""
        return list(self._lines)

    def line(self, address: str) -> list[H]:
        """Who waits, in order. O(line)."""
        line = self._lines.get(address)
        return [host for number, host in line.entries if host.line == number] if line is not None else []

    def waiting(self) -> list[H]:
        """All that stand in a line. O(hosts in lines)."""
        return [host for address in self._lines for host in self.line(address)]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(everything)."""
        self._pace.check()
        due = {address: at for at, _, address in self._heap}
        assert len(due) == len(self._heap), "a line is looked at twice"
        numbers = [number for line in self._lines.values() for number, host in line.entries if host.line == number]
        assert len(numbers) == len(set(numbers)), "a host stands in two lines"
        for address, line in self._lines.items():
            assert due.get(address) == line.due, f"nobody will look at the line of {address}"
            if line.due is None:
                assert self._pace.next_start(address, float("inf")) is None, (
                    f"{address} has room, and its line waits for ever"
                )
