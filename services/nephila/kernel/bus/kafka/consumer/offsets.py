"""Where a partition of a topic is read: what is taken next, and below what everything has been dealt with.

Invariant: `committed_to` never passes a record of which a message is unacked, so that nothing is lost when another
member goes on from there; it only rises. Pure; records are told in the order of their offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Position:
    """One topic partition while it is ours."""

    __slots__ = ("_done", "_open", "next", "opened", "sent")

    def __init__(self, start: int) -> None:
        self.next = start
        """Offset of the record that is taken next."""
        self.sent = start
        """What the broker was told last."""
        self.opened = 0
        """Records taken and not dealt with."""
        self._open: deque[int] = deque()
        self._done: set[int] = set()

    def take(self, offset: int) -> Callable[[], None]:
        """A record was taken; returns what is to be called, once, when it has been dealt with. Amortised O(1)."""
        self.next = offset + 1
        self._open.append(offset)
        self.opened += 1
        return lambda: self._finish(offset)

    def _finish(self, offset: int) -> None:
        self.opened -= 1
        self._done.add(offset)
        while self._open and self._open[0] in self._done:
            self._done.remove(self._open.popleft())

    @property
    def committed_to(self) -> int:
        """What a successor may begin with."""
        return self._open[0] if self._open else self.next
