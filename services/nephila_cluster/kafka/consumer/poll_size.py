"""How many records one poll may return: as many as are handled within a tenth of a second. Pure."""

from __future__ import annotations

MOST = 200
SLICE_S = 0.1
"""Target duration of handling one poll: heartbeats and timers wait meanwhile."""


class PollSize:
    """Halves after a poll that took too long, doubles after any other."""

    def __init__(self) -> None:
        self.records = MOST

    def adapt(self, took_s: float) -> None:
        """The records of a poll were handled in this time."""
        self.records = max(self.records // 2, 1) if took_s > SLICE_S else min(self.records * 2, MOST)
