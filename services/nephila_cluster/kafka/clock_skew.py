"""Difference between this machine's clock and the broker's, from records that are sent anyway. Pure.

The broker's timestamp of a record lies between the sending and the answer if both clocks agree. Only the part outside
this interval counts, so neither a slow network nor a frozen process looks like a wrong clock. Leases, start_by and
retention are times that other machines read: a member with more than `MAX_SKEW_S` is not ready.
"""

from __future__ import annotations

MAX_SKEW_S = 1.0


class ClockSkew:
    """The skew measured by the last record."""

    def __init__(self) -> None:
        self.offset_s = 0.0
        """Seconds by which this clock is at least ahead; below 0: behind."""

    def observe(self, sent: float, stamped: float, answered: float) -> None:
        """All times in seconds since 1970 UTC: `sent` and `answered` by this clock, `stamped` by the broker in whole
        milliseconds."""
        self.offset_s = max(sent - stamped - 0.001, 0.0) or min(answered - stamped, 0.0)

    @property
    def trouble(self) -> str:
        """One line when the skew is too large, else empty."""
        if abs(self.offset_s) <= MAX_SKEW_S:
            return ""
        way = "ahead of" if self.offset_s > 0 else "behind"
        return f"this machine's clock is {abs(self.offset_s):.1f} s {way} the broker's; set it (NTP)"
