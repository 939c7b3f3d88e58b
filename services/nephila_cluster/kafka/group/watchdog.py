"""Detects a stuck consumer: assigned, behind, not paused, and without new records (aiokafka#1154: no error is raised).

Pure: it gets positions, ends of logs and the time. One partition that stays behind without progress for `silent_s` is
enough, because each partition is fetched separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")


class Watchdog(Generic[K]):
    """Remembers since when each partition has been behind at its position."""

    def __init__(self, silent_s: float) -> None:
        self.silent_s = silent_s
        self._since: dict[K, tuple[int, float]] = {}

    def stuck(self, now: float, positions: Mapping[K, int], ends: Mapping[K, int]) -> list[K]:
        """Partitions behind without progress for too long; the arguments contain only assigned partitions that are not
        paused."""
        since: dict[K, tuple[int, float]] = {}
        for key, position in positions.items():
            if position < ends.get(key, 0):
                before = self._since.get(key)
                since[key] = before if before is not None and before[0] == position else (position, now)
        self._since = since
        return [key for key, (_, instant) in since.items() if now - instant >= self.silent_s]
