"""The URLs that were in flight when a group died, as the main process remembers them. Pure.

A page may kill its group each time. URLs that were in flight at two deaths in a row are suspects: the group fetches
each of them alone (`worker/suspect_gate.py`), and one whose group dies twice while it is alone is poison. A single
death, as of a kill from outside, makes no suspect: what was in flight is fetched again together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from nephila.kernel.bus.pipe.protocol import Key
from nephila.programs.groups.crash_suspects import CrashSuspects

RECORDED = 2048
"""Rows of a process that are remembered. More than the requests without a receipt that a group may have."""


class GroupDeaths:
    """The deaths of one group. Every operation is O(1) per URL."""

    def __init__(self) -> None:
        self.suspects = CrashSuspects()
        self.poison: set[Key] = set()
        """URLs that end as a dead letter when they come once more."""
        self._before: frozenset[Key] = frozenset()
        """URLs in flight at the last death."""
        self._recorded: deque[Key] = deque(maxlen=RECORDED)
        """URLs of which the present process has sent the row: they have not killed it."""

    def recorded(self, key: Key) -> None:
        """The row of a page has arrived."""
        self._recorded.append(key)

    @property
    def last_rows(self) -> frozenset[Key]:
        """URLs of the last rows of the present process."""
        return frozenset(self._recorded)

    def died(self, leased: Iterable[Key]) -> int:
        """The log of a dead process has these URLs without a receipt; returns how many of them may have killed it."""
        in_flight = frozenset(leased) - frozenset(self._recorded)
        alone = self.suspects.probing is not None
        poison = self.suspects.died(in_flight & self._before, alone)
        if poison is not None:
            self.poison.add(poison)
        self._before = in_flight
        self._recorded.clear()
        return len(in_flight)
