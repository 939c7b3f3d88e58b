"""The lead: how long before its dial a request is published, where messages travel in beats. Pure.

Without a lead a host is leased at the instant of its dial, and each request adds the way of its messages to the delay.
With a lead the request is on its way while the delay runs. The delay then counts from the end of the fetch at the
downloader, not from the arrival of its outcome here. Clocks of two members may differ, so no instant of one is
compared with the clock of another: the request names the fetch that it follows, and the gap after it. A downloader that
made this fetch counts the gap by its own monotonic clock. Any other waits from the receipt of the request as long as
this scheduler would wait from the lease, counted from the arrival of the outcome; so it dials later, never earlier.
"""

from __future__ import annotations

from nephila.kernel.messages import FetchOutcome, FetchRequest
from nephila.scheduler.politeness.host_pace import HostPace

SERVER_S = 0.05
"""Added to a gap that counts from the end of a fetch at the downloader: a server under load notes the end of an answer
some time after the client has read it (30 ms in a chaos run). Without a lead the way of the messages covers it."""
CLOCKS_S = 1.0
"""Largest difference of the clocks of two members that are ready."""


class Lead:
    """The lead of all partitions of a scheduler. 0 s: requests are not planned."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0
        """How long before its dial a request may be published. Only `set` changes it."""

    def set(self, seconds: float) -> None:
        """The jobs or the beat have changed."""
        self.seconds = seconds

    def due_at(self, not_before: float) -> float:
        """When a host may be leased that may be fetched from at `not_before`."""
        return not_before - self.seconds

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
