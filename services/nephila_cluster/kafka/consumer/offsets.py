"""The position in one partition of a topic: the next record to take, and the offset below which all are processed.

Invariant: `committed_to` never passes a record with an unacked message, so nothing is lost when another member
continues from there. It only rises. Pure; records are passed in the order of their offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class PartitionPosition:
    """One partition while this member owns it."""

    __slots__ = ("_done", "_open", "_written_at", "next", "opened", "sent")

    def __init__(self, start: int) -> None:
        self.next = start
        """Offset of the next record to take."""
        self.sent = start
        """Offset committed last."""
        self.opened = 0
        """Records taken and not processed."""
        self._open: deque[int] = deque()
        self._written_at: deque[int] = deque()
        """When each record of `_open` was written, in milliseconds since 1970 UTC."""
        self._done: set[int] = set()

    def take(self, offset: int, written_at: int = 0) -> Callable[[], None]:
        """A record was taken; returns the function to call once when it has been processed. Amortised O(1)."""
        self.next = offset + 1
        self._open.append(offset)
        self._written_at.append(written_at)
        self.opened += 1
        return lambda: self._finish(offset)

    def _finish(self, offset: int) -> None:
        self.opened -= 1
        self._done.add(offset)
        while self._open and self._open[0] in self._done:
            self._done.remove(self._open.popleft())
            self._written_at.popleft()

    @property
    def committed_to(self) -> int:
        """The offset at which a successor may start."""
        return self._open[0] if self._open else self.next

    @property
    def oldest_written_at(self) -> int | None:
        """Time (ms) at which the oldest record that is taken and not processed was written; None without one."""
        return self._written_at[0] if self._written_at else None
