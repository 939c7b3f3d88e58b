"""The size of one flush or request: half of it when the receiver takes long, more again step by step when it does not.

A server ends what takes too long; the same flush would then never succeed, and a smaller one needs less time. The unit
is that of the caller: rows, or bytes. Pure. O(1).
"""

from __future__ import annotations

SLOW_S = 5.0
"""A flush that takes longer is slow: a third of the limit after which a server ends an idle transaction (15 s)."""
STEPS = 8
"""Fast flushes from half of the size that was too large to that size. Above it each step is twice the one before: the
server is faster than it was."""


class BatchSize:
    """The most units of the next flush."""

    def __init__(self, most: int, least: int) -> None:
        """`least`: slow flushes shrink to no less: where each flush waits for a slow disk, smaller ones would be slower
        in total. Only flushes that fail shrink to one unit."""
        self.limit = most
        self._most = most
        self._least = least
        self._too_large = most
        self._step = 1

    def succeeded(self, size: int, took_s: float) -> None:
        """A flush of this size is durable."""
        if took_s > SLOW_S:
            self._shrink(size, self._least)
        elif size >= self.limit:
            self.limit = min(self.limit + self._step, self._most)
            if self.limit > self._too_large:
                self._step *= 2

    def failed(self, size: int) -> None:
        """The server did not take so much in time."""
        self._shrink(size, 1)

    def _shrink(self, size: int, least: int) -> None:
        self.limit = min(self.limit, max(size // 2, least))
        self._too_large = size
        self._step = max(self.limit // STEPS, 1)
