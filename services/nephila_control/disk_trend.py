"""When a disk will be full, by its free space over the last hour. Pure.

A share of free space alone comes too late for a small disk and too early for a large one. Invariant: one sample a
minute of each disk, and an hour of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from nephila_control.system_types import Disk

STEP_S: Final = 60.0
WINDOW_S: Final = 3600.0
LEAST_S: Final = 600.0
"""A shorter time says nothing about the next hours: logs and snapshots are written in bursts."""


class DiskTrend:
    def __init__(self) -> None:
        self._samples: dict[str, deque[tuple[float, int]]] = {}
        """Member → (monotonic instant, free bytes), the oldest first."""

    def due(self, now: float, member: str) -> bool:
        samples = self._samples.get(member)
        return not samples or now - samples[-1][0] >= STEP_S

    def note(self, now: float, member: str, free_bytes: int) -> None:
        """Takes a sample if one is due. O(1)."""
        if not self.due(now, member):
            return
        samples = self._samples.setdefault(member, deque())
        samples.append((now, free_bytes))
        while samples[0][0] < now - WINDOW_S:
            samples.popleft()

    def disk(self, now: float, member: str, free_bytes: int, size_bytes: int) -> Disk:
        at, before = next(iter(self._samples.get(member, ())), (now, free_bytes))
        lost = before - free_bytes
        full_in_s = free_bytes * (now - at) / lost if lost > 0 and now - at >= LEAST_S else None
        return Disk(member=member, free_bytes=free_bytes, size_bytes=size_bytes, full_in_s=full_in_s)

    def keep(self, members: Iterable[str]) -> None:
        """Forgets the disks of all other members."""
        self._samples = {member: self._samples[member] for member in members if member in self._samples}


def fullest_first(disks: Iterable[Disk]) -> list[Disk]:
    return sorted(disks, key=lambda disk: disk.free_bytes / max(disk.size_bytes, 1))
