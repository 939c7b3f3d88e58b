"""Buffers of the lean fetcher: one that all connections read into, and spare ones for bodies that arrive in pieces."""

from __future__ import annotations

SHARED_BYTES = 256 << 10
_SPARE = 64


class Buffers:
    """All buffers of a fetcher, of one size."""

    def __init__(self) -> None:
        self.shared = bytearray(SHARED_BYTES)
        self.shared_view = memoryview(self.shared)
        self._spare: list[memoryview] = []

    def take(self) -> memoryview:
        """A buffer for one body; the most recently used one, since it is in the CPU cache."""
        return self._spare.pop() if self._spare else memoryview(bytearray(SHARED_BYTES))

    def give(self, view: memoryview) -> None:
        """Return a buffer."""
        if len(self._spare) < _SPARE:
            self._spare.append(view)
