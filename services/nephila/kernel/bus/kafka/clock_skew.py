"""How far this machine's clock is from the broker's, told by records that were sent anyway. Pure.

The broker stamps a record while it is on its way: by a right clock the stamp lies between the instants at which it was
sent and its answer came. Only what lies outside counts, so that neither a slow network nor a frozen process looks like
a wrong clock. Leases, start_by and retention are instants that other machines read: a member that is more than
`MAX_SKEW_S` off is not ready.
"""

from __future__ import annotations

MAX_SKEW_S = 1.0


class ClockSkew:
    """See the module."""

    def __init__(self) -> None:
        self.offset_s = 0.0
        """Seconds by which this clock is ahead at least, by the last record; below 0: behind."""

    def observe(self, sent: float, stamped: float, answered: float) -> None:
        """All in seconds since 1970 UTC; `stamped` by the broker, in whole milliseconds, the others here."""
        self.offset_s = max(sent - stamped - 0.001, 0.0) or min(answered - stamped, 0.0)

    @property
    def trouble(self) -> str:
        """One line when it is too far off, else empty."""
        if abs(self.offset_s) <= MAX_SKEW_S:
            return ""
        way = "ahead of" if self.offset_s > 0 else "behind"
        return f"this machine's clock is {abs(self.offset_s):.1f} s {way} the broker's; set it (NTP)"
