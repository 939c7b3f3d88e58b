"""The lead: how long before its dial a request is published, where messages travel in beats. Pure.

Without a lead a host is leased at the instant of its dial, and each request adds the way of its messages to the delay.
With a lead the request is on its way while the delay runs. The delay then counts from the end of the fetch at the
downloader, not from the arrival of its outcome here. Clocks of two members may differ, so no instant of one is
compared with the clock of another: the request names the fetch that it follows, and the gap after it. A downloader that
made this fetch counts the gap by its own monotonic clock. Any other waits from the receipt of the request as long as
this scheduler would wait from the lease, counted from the arrival of the outcome; so it dials later, never earlier.

A lease lasts longer where messages wait for instants, and the downloaders do not fetch meanwhile. So it counts for a
part of a slot: for the share of its time that it would last without a beat. By Little's law as many fetches run at once
then.
"""

from __future__ import annotations

import math
from typing import Final

from nephila.kernel.bus.contract import Beat
from nephila.kernel.messages import FetchOutcome, FetchRequest
from nephila.scheduler.politeness.host_pace import HostPace

SERVER_S = 0.05
"""Added to a gap that counts from the end of a fetch at the downloader: a server under load notes the end of an answer
some time after the client has read it (30 ms in a chaos run). Without a lead the way of the messages covers it."""
CLOCKS_S = 1.0
"""Largest difference of the clocks of two members that are ready."""
WAY_S: Final = 0.15
"""What a lease lasts beyond its fetch without a beat."""
PARTS: Final = 64
"""A slot is counted in so many parts: sums of them are exact."""
SMOOTHING: Final = 1 / 64
"""Weight of a fetch in the mean duration of fetches."""


class Lead:
    """The lead of all partitions of a scheduler. 0 s: requests are not planned."""

    __slots__ = ("_beat", "_took_s")

    def __init__(self, beat: Beat | None = None) -> None:
        """`beat`: of this member; None: there is never one."""
        self._beat = beat
        self._took_s = 0.0
        """Mean duration of the last fetches."""

    @property
    def seconds(self) -> float:
        """How long before its dial a request may be published."""
        return self._beat.lead_s if self._beat is not None else 0.0

    def due_at(self, not_before: float) -> float:
        """When a host may be leased that may be fetched from at `not_before`."""
        return not_before - self._beat.lead_s if self._beat is not None else not_before

    def on_fetch(self, took_s: float) -> None:
        """A fetch has ended."""
        self._took_s += (took_s - self._took_s) * SMOOTHING if self._took_s else took_s

    def slot(self, pace: HostPace, now: float) -> float:
        """The part of a slot of the downloaders that a lease given now counts for."""
        way_s = self._beat.way_s(max(pace.not_before - now, 0.0)) if self._beat is not None else 0.0
        took_s = pace.took_s or self._took_s
        if way_s <= WAY_S or not took_s:
            return 1.0
        return math.ceil(PARTS * (took_s + WAY_S) / (took_s + way_s)) / PARTS

    def since_end(self, outcome: FetchOutcome, utc_now: float) -> tuple[()] | tuple[float, float]:
        """When the fetch of an outcome ended by the clock of its downloader, and how long ago its server had ended it
        for certain: what `HostPace.after_fetch` takes. Empty without a lead."""
        if self.seconds <= 0 or outcome.ended_at <= 0:
            return ()
        return outcome.ended_at, max(utc_now - outcome.ended_at - SERVER_S, -CLOCKS_S)

    @staticmethod
    def plan(request: FetchRequest, pace: HostPace, now: float) -> None:
        """Tell the downloader how long to wait before it dials. Nothing is written where the pace of the host is over
        for certain."""
        wait_s = pace.certain_at - now
        if wait_s > 0:
            request.wait_s = wait_s
            request.after = pace.ended_at
            request.gap_s = pace.pause_s + SERVER_S
