"""Pace per server address over all hosts and jobs, and the queue of hosts that wait for each address. Pure.

A ready host whose address has no room goes to the end of the address's queue. Only the first host of a queue is looked
at, and only when there is room: a thousand hosts on one address cost as much as one. The dispatcher uses `next_ready`
and `take` beside those of the host store. A host that `take` has returned is out of its queue, whether it is fetched
from or not, so it cannot block those behind it. Queues are not durable: after a restart a host enters one when it is
ready.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Generic, Protocol, TypeVar

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace


class QueuedHost(Protocol):
    """A host in a queue: `line` is its ticket there, 0 while it is in none."""

    line: int


H = TypeVar("H", bound=QueuedHost)


class _Line(Generic[H]):
    """Hosts in order of arrival, prepared ones first. An entry is valid while its ticket is the host's current one."""

    __slots__ = ("due", "entries", "prepared")

    def __init__(self) -> None:
        self.prepared: deque[tuple[int, H]] = deque()
        self.entries: deque[tuple[int, H]] = deque()
        self.due: float | None = None
        """When the queue is looked at next; None while only the end of a fetch can make room."""

    def __len__(self) -> int:
        return len(self.prepared) + len(self.entries)

    def first(self) -> H | None:
        """The first host that has not left."""
        for entries in (self.prepared, self.entries):
            while entries:
                if entries[0][1].line == entries[0][0]:
                    return entries[0][1]
                entries.popleft()
        return None

    def remove_first(self) -> None:
        """Remove the host that `first` has returned."""
        (self.prepared or self.entries).popleft()[1].line = 0

    def hosts(self) -> list[H]:
        """Hosts that have not left, in order."""
        return [host for entries in (self.prepared, self.entries) for ticket, host in entries if host.line == ticket]


class AddressQueue(Generic[H]):
    """Operations are O(log queues) amortised; memory is O(addresses with a fetch, a gap or a queue)."""

    def __init__(
        self, networks: AddressLimits, restarted_at: float = float("-inf"), pace: AddressPace | None = None
    ) -> None:
        """`restarted_at`: see `AddressPace`; `pace`: use this pace instead."""
        self._pace = AddressPace(networks, restarted_at) if pace is None else pace
        self._lines: dict[str, _Line[H]] = {}
        self.heap: list[tuple[float, int, str]] = []
        """Queues that wait for an instant; empty: `take` has nothing of its own to look at."""
        self._order = itertools.count(1)

    def room(self, address: str, now: float, first: bool = False) -> float | None:
        """0.0 when a fetch may start now, else the instant; None when only the end of a fetch can make room.

        `first`: the host is the one that `take` has returned. Any other host has no room while the queue is not empty.
        """
        room = self._pace.next_start(address, now)
        if first or room is None:
            return room
        line = self._lines.get(address)
        if line is None or line.first() is None:
            return room
        # An estimate, not 0: one gap for each host in the queue.
        return max(room, now) + len(line) * max(self._pace.gap_s(address), 1e-3)

    def start(self, address: str, now: float, planned: float = 0.0) -> float:
        """A fetch on the address was leased, for the instant `planned` where that is later; returns when it has to
        dial, 0.0 = at once."""
        return self._pace.start(address, now, planned if planned > now else 0.0)

    def sent(self, address: str, at: float) -> None:
        """The request has reached the server; the gap counts from this instant."""
        self._pace.record_sent(address, at)

    def end(self, address: str, now: float, refused: bool = False) -> None:
        """A fetch on the address has ended. `refused`: the downloader gave it back undialled, because of fetches that
        this scheduler does not know."""
        (self._pace.refuse if refused else self._pace.end)(address, now)
        self.look(address, now)

    def wait(self, address: str, host: H, now: float, head: bool = False, prepared: bool = False) -> None:
        """Put the host at the end of the queue, or at its head when it was first before; no effect for a host in a
        queue. `prepared`: its robots.txt was fetched for a page; such hosts come before the others."""
        if host.line:
            return
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = _Line()
            self._pace.pin(address)
        host.line = next(self._order)
        entries = line.prepared if prepared else line.entries
        (entries.appendleft if head else entries.append)((host.line, host))
        if line.due is None:
            self._arm(address, line, now)

    def look(self, address: str, now: float) -> None:
        """Look at a queue again: there may be room without the end of a fetch."""
        line = self._lines.get(address)
        if line is not None and line.due is None:
            self._arm(address, line, now)

    def leave(self, host: H) -> None:
        """Take the host out of its queue: it has nothing to fetch, or waits for another reason."""
        host.line = 0

    def next_ready(self) -> float | None:
        """When the first host of a queue may be served; None when no queue waits for time."""
        return self.heap[0][0] if self.heap else None

    def take(self, now: float) -> tuple[str, H] | None:
        """Remove and return (address, host), the next where there is room; None for none."""
        while self.heap and self.heap[0][0] <= now:
            address = heapq.heappop(self.heap)[2]
            line = self._lines[address]
            line.due = None
            host = line.first()
            if host is None:
                del self._lines[address]
                self._pace.unpin(address)
            elif self._pace.next_start(address, now) != 0.0:
                self._arm(address, line, now)
            else:
                line.remove_first()
                self._arm(address, line, now)
                return address, host
        return None

    def _arm(self, address: str, line: _Line[H], now: float) -> None:
        room = self._pace.next_start(address, now)
        if room is not None:
            line.due = max(room, now)
            heapq.heappush(self.heap, (line.due, next(self._order), address))

    def __len__(self) -> int:
        return len(self._pace)

    def lined(self) -> list[str]:
        """Addresses with a queue."""
        return list(self._lines)

    def line(self, address: str) -> list[H]:
        """Hosts that wait for an address, in order. O(queue)."""
        line = self._lines.get(address)
        return line.hosts() if line is not None else []

    def waiting(self) -> list[H]:
        """Hosts in all queues. O(them)."""
        return [host for address in self._lines for host in self.line(address)]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold. O(everything)."""
        self._pace.check()
        due = {address: at for at, _, address in self.heap}
        assert len(due) == len(self.heap), "a queue is due twice"
        numbers = [host.line for host in self.waiting()]
        assert len(numbers) == len(set(numbers)), "a host is in two queues"
        for address, line in self._lines.items():
            assert due.get(address) == line.due, f"the queue of {address} is never looked at"
            if line.due is None:
                assert self._pace.next_start(address, float("inf")) is None, (
                    f"{address} has room, and its queue waits for ever"
                )
