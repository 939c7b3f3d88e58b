"""The queue of one job on one host: packed URLs by sort key (order, then arrival), all in memory.

Invariant: `items` is a heap, and no two keys are equal.
"""

from __future__ import annotations

import heapq

ORDERS = 1 << 24
ARRIVALS = 1 << 39
"""As many URLs may ever be queued: half of what 40 bits hold, so that counting down never meets counting up."""


def sort_key(order: int, arrival: int, newest_first: bool) -> int:
    """Order in the upper 24 bits, then arrival, or arrival counted down for the latest first."""
    return order << 40 | ((1 << 40) - 1 - arrival if newest_first else arrival)


class Queue:
    """Push and pop O(log n), `take` O(n)."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[int, bytes]] | None = None) -> None:
        self.items = items or []

    def push(self, key: int, packed: bytes) -> None:
        """Put in."""
        heapq.heappush(self.items, (key, packed))

    def pop(self) -> bytes:
        """Take the first out."""
        return heapq.heappop(self.items)[1]

    def take(self, url_key: bytes) -> bytes | None:
        """Take the first with this fingerprint out."""
        found = min((item for item in self.items if item[1][:16] == url_key), default=None)
        if found is None:
            return None
        self.items.remove(found)
        heapq.heapify(self.items)
        return found[1]

    def ordered(self, limit: int) -> list[tuple[int, bytes]]:
        """The first `limit` with their keys, all when it is 0."""
        return heapq.nsmallest(limit, self.items) if limit else sorted(self.items)
