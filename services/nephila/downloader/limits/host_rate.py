"""The highest rate of requests to one host, observed at the dial: the rate that sites see, not the planned one.

Pure. Memory is O(hosts dialled in one window); a note costs one dictionary entry.
"""

from __future__ import annotations

WINDOW_S = 10.0


class HostRates:
    """Requests per host in windows of `WINDOW_S`; instants are monotonic seconds."""

    def __init__(self) -> None:
        self._until = 0.0
        self._counts: dict[str, int] = {}
        self._highest = 0

    def note(self, host: str, now: float) -> None:
        """A request is sent to a host."""
        if now >= self._until:
            self._roll(now)
        self._counts[host] = self._counts.get(host, 0) + 1

    def highest(self, now: float) -> float:
        """Requests per second of the busiest host, in the last complete window."""
        if now >= self._until:
            self._roll(now)
        return self._highest / WINDOW_S

    def _roll(self, now: float) -> None:
        complete = now < self._until + WINDOW_S
        self._highest = max(self._counts.values(), default=0) if complete else 0
        self._counts = {}
        self._until = now + WINDOW_S
