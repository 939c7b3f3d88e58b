"""Detects a stuck consumer: assigned, behind, not paused, and without new records (aiokafka#1154: no error is raised).

Pure: it gets positions, ends of logs and the time. One partition that stays behind without progress for `silent_s` is
enough, because each partition is fetched separately. Where the broker did not name the ends of the logs, there was no
look: time without looks does not count as silence of the consumer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
GAP_SHARE = 0.5
"""Part of `silent_s` between two looks after which the count begins again; regular looks are a sixth apart."""


class Watchdog(Generic[K]):
    """Remembers since when each partition has been behind at its position."""

    def __init__(self, silent_s: float) -> None:
        self.silent_s = silent_s
        self._since: dict[K, tuple[int, float]] = {}
        self._looked_at = math.inf

    def stuck(self, now: float, positions: Mapping[K, int], ends: Mapping[K, int]) -> list[K]:
        """Partitions behind without progress for too long; the arguments contain only assigned partitions that are not
        paused."""
        if now - self._looked_at > GAP_SHARE * self.silent_s:
            self._since = {}
        self._looked_at = now
        since: dict[K, tuple[int, float]] = {}
        for key, position in positions.items():
            if position < ends.get(key, 0):
                before = self._since.get(key)
                since[key] = before if before is not None and before[0] == position else (position, now)
        self._since = since
        return [key for key, (_, instant) in since.items() if now - instant >= self.silent_s]
