"""When a consumer counts as stuck: assigned, behind, not paused, and silent (aiokafka#1154: nothing says so by
itself).

Pure: it is told what was read and how far the logs go, with the instant. One partition that stays behind without a
record for `silent_s` is enough, for each partition is fetched on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")


class Watchdog(Generic[K]):
    """See the module."""

    def __init__(self, silent_s: float) -> None:
        self.silent_s = silent_s
        self._since: dict[K, tuple[int, float]] = {}

    def stuck(self, now: float, positions: Mapping[K, int], ends: Mapping[K, int]) -> list[K]:
        """Those that have stood still, though behind, for too long; told only what is assigned and not paused."""
        since: dict[K, tuple[int, float]] = {}
        for key, position in positions.items():
            if position < ends.get(key, 0):
                before = self._since.get(key)
                since[key] = before if before is not None and before[0] == position else (position, now)
        self._since = since
        return [key for key, (_, instant) in since.items() if now - instant >= self.silent_s]
