"""The beat: where all jobs leave their hosts alone for long, members read and write at common instants.

A request to the broker costs a member a millisecond, however much it carries. Outcomes and pages wait for the next
beat; each reader fetches once in a beat, after the messages that it reads were written: scheduler and parser right
after the beat, the downloader when the scheduler has written its requests. The instants are multiples of the period in
UTC, so members agree on them without a message. Clocks that differ make a message late by a beat, nothing else.
"""

from __future__ import annotations

import math
from typing import Final

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import EXCHANGES, OUTCOMES, PAGES, Topic

LEAST_DELAY_S: Final = 0.5
"""Least delay of a job with which there is a beat."""
HELD: Final[tuple[Topic, ...]] = (OUTCOMES, PAGES, EXCHANGES)
"""Topics whose messages wait for the beat: their events come one by one. Others are written in the beat of a reader."""
READ, PLAN, DIAL = 0.12, 0.25, 0.5
"""Parts of the period after the beat: outcomes and pages are read; hosts that are due are leased; requests are read."""
LINGER: Final = 0.06
"""Part of the period for which any other message waits for more of its kind."""
LEAD: Final = 2.0
"""Periods from the earliest lease of a host to its dial. Its outcome may wait one period, its request less than one."""
COMMITS = 4
"""Periods between two commits of offsets, at least."""
HEARTBEAT_S = 2.0
"""Time between heartbeats, or a third of the session where that is shorter."""


class Beat:
    """The beat of one member."""

    def __init__(self, clock: Clock, longest_s: float) -> None:
        """`longest_s`: the period for long delays; 0: there is never a beat."""
        self._clock = clock
        self._longest_s = longest_s
        self.period_s = 0.0
        """0: there is no beat at present."""

    def set_least_delay(self, delay_s: float) -> None:
        """The least delay between two fetches of a host has changed; 0 without jobs."""
        self.period_s = min(self._longest_s, delay_s / 2) if delay_s >= LEAST_DELAY_S else 0.0

    @property
    def lead_s(self) -> float:
        """How long before its dial a request may be published."""
        return self.period_s * LEAD

    def way_s(self, wait_s: float) -> float:
        """Seconds for which the messages of a fetch are on their way: its request, published now for a dial `wait_s`
        from now or later, and its outcome, on average. 0 without a beat."""
        if not self.period_s:
            return 0.0
        return max(wait_s, self.wait_s(DIAL, self.period_s * LINGER)) + self.period_s * (0.5 + READ)

    @property
    def commit_s(self) -> float:
        """Least time between two commits of offsets; 0 without a beat."""
        return self.period_s * COMMITS

    def heartbeat_s(self, session_s: float, settled: bool) -> float:
        """Least time between two heartbeats: no host waits for what they tell. 0 without a beat, and while partitions
        of the member move."""
        return min(HEARTBEAT_S, session_s / 3) if self.period_s and settled else 0.0

    def wait_s(self, part: float, after_s: float = 0.0) -> float:
        """Seconds until the next instant that lies this part of the period after a beat, and `after_s` from now at
        least; 0 without a beat."""
        period_s = self.period_s
        if not period_s:
            return 0.0
        now = self._clock.now() + after_s
        return after_s + (math.floor(now / period_s - part) + 1 + part) * period_s - now

    def next(self, when: float) -> float:
        """The first instant at or after this one (monotonic) at which hosts are leased."""
        if not self.period_s:
            return when
        ahead_s = max(when - self._clock.monotonic(), 0.0)
        return self._clock.monotonic() + self.wait_s(PLAN, ahead_s)
