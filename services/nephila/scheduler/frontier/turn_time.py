"""The instants of the current turn, which all parts of a frontier share."""

from __future__ import annotations

from nephila.kernel.runtime.clock import Clock


class TurnTime:
    """Monotonic and UTC seconds. Only `begin` and `read` change them."""

    __slots__ = ("now", "utc_now", "utc_offset")

    def __init__(self) -> None:
        self.now = 0.0
        self.utc_now = 0.0
        self.utc_offset = 0.0
        """UTC minus monotonic."""

    def begin(self, now: float, utc_now: float) -> None:
        self.now, self.utc_now, self.utc_offset = now, utc_now, utc_now - now

    def read(self, clock: Clock) -> float:
        """A new turn begins, or an input has come, at the present time of the clock; returns it (monotonic)."""
        self.now, self.utc_now = now, utc_now = clock.monotonic(), clock.now()
        self.utc_offset = utc_now - now
        return now
