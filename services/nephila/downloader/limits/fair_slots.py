"""The `concurrency` slots, shared by how hosts answer. Pure.

A host is FAST when its last page came quickly, SLOW when its last fetch was slow, NEW before that. Hosts that answer
slowly have a share of the slots, so that any number of them leaves slots to the others:

- A freed slot goes to a FAST host first, then to a NEW one, then to a SLOW one; within these in order of arrival.
- SLOW hosts hold at most `slow_share` of the slots while other hosts hold slots or wait.
- While that share is full, NEW hosts leave an eighth of the rest to FAST ones: many of them may turn out to be slow.
- A fetch that becomes slow beyond the share is in `excess` while others wait; the caller gives it back.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import Generic, TypeVar

T = TypeVar("T")

HOSTS = 10_000
"""Hosts whose speed is known; the one learned first is forgotten first."""


class Speed(IntEnum):
    """How a host answers, in the order in which slots are given."""

    FAST = 0
    NEW = 1
    SLOW = 2


# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
FAST, NEW, SLOW = Speed


class HostSpeeds:
    """The speed of hosts that were fetched from. O(1), at most `HOSTS` entries."""

    def __init__(self) -> None:
        self.by_host: dict[str, Speed] = {}
        """Without NEW hosts."""

    def learn(self, host: str, speed: Speed) -> None:
        """A fetch from the host was slow, or a page came quickly."""
        speeds = self.by_host
        if speeds.get(host) is speed:
            return
        speeds.pop(host, None)
        speeds[host] = speed
        if len(speeds) > HOSTS:
            del speeds[next(iter(speeds))]


class FairSlots(Generic[T]):
    """At most `limit` holders have slots, more only after it was lowered. O(1), except `excess`: O(holders)."""

    def __init__(self, limit: int, slow_share: float) -> None:
        self._slow_share = slow_share
        self._held: dict[T, Speed] = {}
        self._counts: Counter[Speed] = Counter()
        self._waiting: tuple[dict[T, None], dict[T, None], dict[T, None]] = ({}, {}, {})
        self._limit = limit
        self._slow_limit = self._new_limit = limit
        self._divide()

    def _divide(self) -> None:
        self._slow_limit = max(1, int(self._limit * self._slow_share))
        rest = self._limit - self._slow_limit
        self._new_limit = max(1, rest - rest // 8)

    @property
    def held(self) -> int:
        """Slots in use."""
        return len(self._held)

    @property
    def waiting(self) -> int:
        """Waiters of all hosts."""
        return sum(map(len, self._waiting))

    @property
    def slow(self) -> int:
        """Slots in use by slow hosts."""
        return self._counts[SLOW]

    def acquire(self, waiter: T, speed: Speed) -> bool:
        """True when `waiter` holds a slot; False when it was queued."""
        if len(self._held) < self._limit and not self._waiting[speed] and (speed is FAST or self._may_start(speed)):
            self._held[waiter] = speed
            self._counts[speed] += 1
            return True
        self._waiting[speed][waiter] = None
        return False

    def release(self, holder: T) -> list[T]:
        """Free a slot. Returns waiters that hold a slot now."""
        self._counts[self._held.pop(holder)] -= 1
        fast, new, slow = self._waiting
        return self._start() if fast or new or slow else []

    def set_limit(self, limit: int) -> list[T]:
        """Change the limit, at least 1. Returns waiters that hold a slot now. Holders above a lower limit keep theirs;
        the slots that they release are not used again."""
        self._limit = limit
        self._divide()
        return self._start()

    def mark_slow(self, holder: T) -> list[T]:
        """A holder is slow. Returns waiters that hold a slot now."""
        self._counts[self._held[holder]] -= 1
        self._held[holder] = SLOW
        self._counts[SLOW] += 1
        return self._start()

    def excess(self) -> list[T]:
        """Slow holders beyond their share for whose slots others wait, the youngest first."""
        over = min(self._counts[SLOW] - self._slow_limit, len(self._waiting[FAST]) + len(self._waiting[NEW]))
        if over <= 0:
            return []
        return [holder for holder in reversed(self._held) if self._held[holder] is SLOW][:over]

    def cancel(self, waiter: T) -> bool:
        """Remove `waiter` from its queue; False when it waits in none."""
        for queue in self._waiting:
            if waiter in queue:
                del queue[waiter]
                return True
        return False

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        assert Counter(self._held.values()) == +self._counts
        assert not any(waiter in self._held for queue in self._waiting for waiter in queue)
        if len(self._held) < self._limit:
            assert not any(self._waiting[speed] and self._may_start(speed) for speed in Speed), "a free slot"

    def _hold(self, waiter: T, speed: Speed) -> None:
        self._held[waiter] = speed
        self._counts[speed] += 1

    def _may_start(self, speed: Speed) -> bool:
        counts = self._counts
        if speed is FAST or counts[SLOW] < self._slow_limit:
            return True
        if speed is NEW:
            return counts[NEW] < self._new_limit
        return not (counts[FAST] or counts[NEW] or self._waiting[FAST] or self._waiting[NEW])

    def _start(self) -> list[T]:
        started: list[T] = []
        for speed in (FAST, NEW, SLOW):
            queue = self._waiting[speed]
            while queue and len(self._held) < self._limit and self._may_start(speed):
                waiter = next(iter(queue))
                del queue[waiter]
                self._hold(waiter, speed)
                started.append(waiter)
        return started
