"""The stages ADDRESS_CHECK and ADDRESS_SLOT: requests of paced jobs wait for a slot and the gap of their address."""

from __future__ import annotations

from nephila.downloader.coordination import Coordination
from nephila.downloader.http.route import prefer_counted_address
from nephila.downloader.in_flight import ADDRESS_CHECK, GLOBAL_SLOT, MEMBERSHIP, InFlight
from nephila.downloader.limits.address_slots import AddressSlots
from nephila.downloader.limits.config import LimitsConfig
from nephila.downloader.stages.ending import END, GO, WAIT, Ending, Run, StageResult
from nephila.kernel import messages as m
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import Clock

LATE_S, MAX_LATE = 0.05, 4
"""A dial that is later than LATE_S waits LATE_S once more, at most MAX_LATE times."""


class AddressStage:
    """Owns the slots of addresses. Without limits of addresses every request passes."""

    def __init__(
        self, config: LimitsConfig, clock: Clock, coordination: Coordination, ending: Ending, run: Run
    ) -> None:
        self._clock = clock
        self._coordination = coordination
        self._ending = ending
        self._run = run
        limits = AddressLimits(config.per_address, config.address_gap_s, config.networks, "downloader.limits.networks")
        self._slots: AddressSlots[InFlight] | None = None if limits.unlimited else AddressSlots(limits)
        self._paced_jobs: dict[str, bool] = {}
        """Whether a job is paced by server address, for the jobs known."""

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        if job.deleted:
            self._paced_jobs.pop(job.uid, None)
        else:
            self._paced_jobs[job.uid] = seconds(spec_of(job).politeness.delay) > 0

    def check(self, fetch: InFlight) -> StageResult:
        """Give back a paced request whose address is busy, or whose address the scheduler did not count and refuses."""
        request = fetch.request
        route = fetch.route = prefer_counted_address(fetch.route, request.address)
        if self._slots is None or fetch.started or not self._is_paced(request):
            return GO
        if self._is_address_busy(fetch):
            return self._ending.busy(fetch)
        late_check = self._coordination.late_address_check
        if late_check is None or request.address == route.pace_address:
            return GO
        late_check(request, route.pace_address, lambda go: self._on_address_check(fetch, go))
        return WAIT

    def _on_address_check(self, fetch: InFlight, go: bool) -> None:
        if fetch.stage is not ADDRESS_CHECK:  # ended in the meantime
            return
        if go:
            self._run(fetch, GLOBAL_SLOT)
        else:
            self._ending.busy(fetch)

    def acquire(self, fetch: InFlight) -> StageResult:
        """Wait for a slot of the server address and for the end of its gap. Unpaced requests pass."""
        if self._slots is None or not self._is_paced(fetch.request):
            return GO
        if not fetch.started:
            if self._ending.ends_early(fetch):
                return END
            if self._is_address_busy(fetch):
                return self._ending.busy(fetch)
        address = fetch.address_slot = fetch.route.pace_address
        start = self._slots.acquire(address, fetch, self._clock.monotonic(), self._planned(fetch))
        return WAIT if start is None else self._wait_for_gap(fetch, start)

    def _wait_for_gap(self, fetch: InFlight, start: float) -> StageResult:
        """GO from `start` on; before that a timer continues the request. The slot is held."""
        assert self._slots is not None
        now = self._clock.monotonic()
        if start <= now:
            start = self._slots.confirm(fetch.address_slot, now)
            if not start:
                return GO
        fetch.timer = self._clock.call_at(start, lambda: self._on_gap_over(fetch, start, 0))
        return WAIT

    def _on_gap_over(self, fetch: InFlight, start: float, late: int) -> None:
        """Continue at `start`.

        A late call means that the event loop was blocked. Requests dialled before may be written only in the next turns
        of the loop, and the gap counts from then; so this request waits for those turns first.
        """
        fetch.timer = None
        now = self._clock.monotonic()
        if now - start > LATE_S and late < MAX_LATE:
            again = now + LATE_S
            fetch.timer = self._clock.call_at(again, lambda: self._on_gap_over(fetch, again, late + 1))
        elif self._wait_for_gap(fetch, start) is GO:
            self._run(fetch, MEMBERSHIP)

    def record_sent(self, fetch: InFlight) -> None:
        """The request was written: the gap of its address counts from now."""
        if self._slots is not None and fetch.address_slot:
            now = self._clock.monotonic()
            self._slots.record_sent(fetch.address_slot, now)
            if self._coordination.on_sent is not None:
                self._coordination.on_sent(fetch.address_slot, now)

    def _is_paced(self, request: m.FetchRequest) -> bool:
        """Whether address slots apply. A robots.txt belongs to no job: it is paced while any job is."""
        if request.job:
            return self._paced_jobs.get(request.job, True)
        return not self._paced_jobs or any(self._paced_jobs.values())

    def _is_address_busy(self, fetch: InFlight) -> bool:
        """Whether the address cannot take a request soon. The request is given back then, and the scheduler learns the
        address. A request that was dialled before waits instead: given back, its host would be fetched again."""
        assert self._slots is not None
        return self._slots.refuses(fetch.route.pace_address, self._clock.monotonic(), self._planned(fetch))

    def _planned(self, fetch: InFlight) -> float:
        """When the scheduler wants this request to dial, on the monotonic scale; 0.0: at once. Not for the hops of a
        redirected robots.txt."""
        dial_at = fetch.request.dial_at
        return self._clock.monotonic() + dial_at - self._clock.now() if dial_at and not fetch.started else 0.0

    def release(self, fetch: InFlight) -> None:
        """Free the slot of the address; the next request of its queue continues."""
        address, fetch.address_slot = fetch.address_slot, ""
        slots = self._slots
        if address and slots is not None and not slots.cancel(address, fetch):
            following = slots.release(address, self._clock.monotonic())
            if following is not None and self._wait_for_gap(*following) is GO:
                self._run(following[0], MEMBERSHIP)
