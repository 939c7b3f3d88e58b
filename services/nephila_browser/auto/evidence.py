"""The comparisons of one group of pages: the verdict they give, and when a page is compared again. Pure.

A verdict exists once QUORUM of the last comparisons agree. A comparison that confirms it doubles the pages until the
next one. After one that contradicts it the next page is compared as well, and the interval is the shortest again.
"""

from __future__ import annotations

from collections import deque
from typing import Final

PROBE_EVERY: Final = 10
PROBE_MOST: Final = 160
"""Pages between two comparisons of a verdict that was confirmed often: a template that changes is seen within these."""


class Evidence:
    """The last `window` comparisons; `quorum` equal ones are a verdict."""

    __slots__ = ("_quorum", "every", "needed", "pages")

    def __init__(self, window: int, quorum: int) -> None:
        self._quorum = quorum
        self.needed: deque[bool] = deque(maxlen=window)
        """Whether the page needed a browser, the newest last."""
        self.pages = 0
        """Pages since the last comparison began."""
        self.every = PROBE_EVERY

    @property
    def verdict(self) -> bool | None:
        """Whether the pages need a browser; None: not known."""
        count = sum(self.needed)
        if count >= self._quorum:
            return True
        return False if len(self.needed) - count >= self._quorum else None

    def is_due(self) -> bool:
        """Count a page; whether it has to be compared."""
        self.pages += 1
        if self.pages < self.every:
            return False
        self.pages = 0
        return True

    def add(self, needed: bool) -> None:
        """The result of a comparison."""
        before = self.verdict
        self.needed.append(needed)
        if before is None:
            return
        if before is needed is self.verdict:
            self.every = min(2 * self.every, PROBE_MOST)
            return
        self.every = PROBE_EVERY
        if self.verdict is not needed:
            self.pages = PROBE_EVERY - 1
