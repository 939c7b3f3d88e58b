"""A bound on concurrent fetches per key; further ones wait in order of arrival. Pure.

One instance bounds fetches per host, another one all fetches. The scheduler decides the pace; this is the last limit.
Server addresses have their own (`address_slots.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Slots(Generic[T]):
    """A key has at most `limit` holders (0 = no limit); more only after the limit was lowered. O(1), except `cancel`:
    O(waiting on the key)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[T]] = {}

    def acquire(self, key: Hashable, waiter: T) -> bool:
        """True when `waiter` holds a slot; False when it was queued."""
        if self._limit <= 0:
            return True
        held = self._held.get(key, 0)
        if held < self._limit:
            self._held[key] = held + 1
            return True
        self._waiting.setdefault(key, deque()).append(waiter)
        return False

    def release(self, key: Hashable) -> T | None:
        """Free a slot. Returns the first waiter, which holds the slot now; None when nothing waits."""
        if self._limit <= 0:
            return None
        queue = self._waiting.get(key)
        if queue and self._held[key] <= self._limit:
            waiter = queue.popleft()
            if not queue:
                del self._waiting[key]
            return waiter
        held = self._held[key] - 1
        if held:
            self._held[key] = held
        else:
            del self._held[key]
        return None

    def held(self, key: Hashable) -> int:
        """Slots in use."""
        return self._held.get(key, 0)

    def set_limit(self, limit: int) -> list[T]:
        """Change the limit, at least 1. Returns waiters that hold a slot now. Holders above a lower limit keep theirs;
        the slots that they release are not used again. O(keys with waiters)."""
        self._limit = limit
        started = []
        for key, queue in list(self._waiting.items()):
            while queue and self._held.get(key, 0) < limit:
                self._held[key] = self._held.get(key, 0) + 1
                started.append(queue.popleft())
            if not queue:
                del self._waiting[key]
        return started

    def cancel(self, key: Hashable, waiter: T) -> bool:
        """Remove `waiter` from the queue; False when it was not in it."""
        queue = self._waiting.get(key)
        if queue is None or waiter not in queue:
            return False
        queue.remove(waiter)
        if not queue:
            del self._waiting[key]
        return True

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        assert all(held > 0 for held in self._held.values())
        assert all(self._waiting.values()), "an empty queue"
        assert all(self._held[key] >= self._limit for key in self._waiting), "a waiter although a slot is free"
