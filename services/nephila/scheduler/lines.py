"""Pace by server address for several frontiers of one program: one table, one line per address.

Each frontier sees its own hosts only. Whose turn it is in a line is decided here, once, and its frontier is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from nephila.scheduler.addresses import Addresses
from nephila.scheduler.host import Place


class Lines(Addresses[Place]):
    """The table of a program."""

    def call(self, now: float) -> bool:
        """Call the frontiers whose hosts are next where there is room, one of each line; whether there was any. Each
        takes its turn before this is asked again: only then is it known whether the room is still there."""
        called: set[str] = set()
        while self._heap and self._heap[0][2] not in called and (taken := self.take(now)) is not None:
            called.add(taken[0])
            taken[1].owner.called(*taken)
        return bool(called)


class Share(Addresses[Place]):
    """One frontier's view: everything is counted in the common table; `take` gives what was called."""

    def __init__(self, lines: Lines, wake: Callable[[], None]) -> None:
        self._lines, self._pace, self._heap, self._order = lines._lines, lines._pace, lines._heap, lines._order
        self._called: deque[tuple[str, Place]] = deque()
        self._wake = wake

    def called(self, address: str, place: Place) -> None:
        """The place is next in the line of an address that has room, and out of it."""
        self._called.append((address, place))
        self._wake()

    def wait(self, address: str, host: Place, now: float, head: bool = False) -> None:
        """See `Addresses.wait`."""
        host.owner = self
        super().wait(address, host, now, head)

    def leave(self, host: Place) -> None:
        """See `Addresses.leave`."""
        super().leave(host)
        self._called = deque(one for one in self._called if one[1] is not host)

    def next_ready(self) -> float | None:
        """Nothing: the table's owner calls."""
        return None

    def take(self, now: float) -> tuple[str, Place] | None:
        """Who was called first."""
        return self._called.popleft() if self._called else None
