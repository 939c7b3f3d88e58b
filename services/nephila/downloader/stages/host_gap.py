"""The stage HOST_GAP: a request that was published before the instant of its dial waits for that instant.

A gap counts by the monotonic clock of this process alone. The request names the fetch of its host that it follows. A
downloader that made that fetch waits for the gap after its end; any other waits from the receipt of the request, as
long as the scheduler says. Where addresses are paced, the scheduler has planned the starts on the address by the first
of these two instants, so a request without it is given back. So is a request of a job that was paused or deleted
meanwhile: it was planned before.
"""

from __future__ import annotations

from collections import OrderedDict

from nephila.downloader.in_flight import RESOLVE, InFlight
from nephila.downloader.stages.ending import END, GO, WAIT, Ending, Run, StageResult
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import Clock

REMEMBERED = 20_000
"""Hosts of which the end of the last fetch is remembered."""


class HostGap:
    """Owns the ends of the last fetches. O(1) per request."""

    def __init__(self, clock: Clock, ending: Ending, run: Run, *, remembers: bool) -> None:
        """`remembers`: requests may be planned here; else no end is kept."""
        self._clock = clock
        self._ending = ending
        self._run = run
        self._remembers = remembers
        self._ends: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Host → end of its last fetch: as its outcome says (UTC), and monotonic."""
        self._stopped: set[str] = set()
        """Jobs that are paused or deleted."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        (self._stopped.add if job.paused or job.deleted else self._stopped.discard)(job.uid)

    def on_end(self, host: str, ended_at: float) -> None:
        """A fetch of a host ended now; `ended_at`: as its outcome says."""
        if not self._remembers:
            return
        self._ends[host] = ended_at, self._clock.monotonic()
        self._ends.move_to_end(host)
        if len(self._ends) > REMEMBERED:
            self._ends.popitem(last=False)

    def enter(self, fetch: InFlight) -> StageResult:
        """GO from the instant of the dial on; before that a timer continues the request."""
        request = fetch.request
        if request.wait_s <= 0 or fetch.started:
            return GO
        now = self._clock.monotonic()
        ended_at, ended = self._ends.get(request.host, (0.0, 0.0))
        if request.after and ended_at == request.after:
            due = ended + request.gap_s
        elif request.address:
            self._clock.call_soon(lambda: self._ending.give_back(fetch))
            return END
        else:
            due = now + request.wait_s
        if due <= now:
            return GO
        fetch.timer = self._clock.call_at(due, lambda: self._on_due(fetch))
        return WAIT

    def _on_due(self, fetch: InFlight) -> None:
        fetch.timer = None
        if fetch.request.job in self._stopped:
            self._ending.give_back(fetch)
        else:
            self._run(fetch, RESOLVE)
