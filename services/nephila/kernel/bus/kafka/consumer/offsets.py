"""The position in one partition of a topic: the next record to take, and the offset below which all are processed.

Invariant: `committed_to` never passes a record with an unacked message, so nothing is lost when another member
continues from there. It only rises. Pure; records are passed in the order of their offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Position:
    """One partition while this member owns it."""

    __slots__ = ("_done", "_open", "next", "opened", "sent")

    def __init__(self, start: int) -> None:
        self.next = start
        """Offset of the next record to take."""
        self.sent = start
        """Offset committed last."""
        self.opened = 0
        """Records taken and not processed."""
        self._open: deque[int] = deque()
        self._done: set[int] = set()

    def take(self, offset: int) -> Callable[[], None]:
        """A record was taken; returns the function to call once when it has been processed. Amortised O(1)."""
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
        """The offset at which a successor may start."""
        return self._open[0] if self._open else self.next
