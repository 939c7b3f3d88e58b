"""The stage GLOBAL_SLOT: the speed of this member, and `concurrency` slots that are shared by how hosts answer."""

from __future__ import annotations

from nephila.downloader.http.deadlines import TimedFetch
from nephila.downloader.in_flight import ADDRESS_SLOT, GLOBAL_SLOT, InFlight, Stage
from nephila.downloader.limits.config import LimitsConfig
from nephila.downloader.limits.fair_slots import FAST, NEW, SLOW, FairSlots, HostSpeeds
from nephila.downloader.outcome import ROBOTS
from nephila.downloader.stages.ending import GO, WAIT, Ending, Run, StageResult
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer

SLOW_PAUSE_S = 15.0
"""Pause of a slow host that is given back; a host that drips holds its slot about as long."""
SLOW_CHECK_S = 0.5
"""Between two looks for slow fetches."""


class GlobalStage:
    """Owns the slots. While requests wait for them, fetches in flight that are slow are found."""

    def __init__(self, config: LimitsConfig, concurrency: int, clock: Clock, ending: Ending, run: Run) -> None:
        self._config = config
        self._clock = clock
        self._ending = ending
        self._run = run
        self.slots: FairSlots[InFlight] = FairSlots(concurrency, config.slow_share)
        self.speeds = HostSpeeds()
        self._dialled: dict[InFlight, None] = {}
        """Requests that wait for their response and are not slow, the oldest first."""
        self._slow_timer = OneTimer(clock, self._on_slow_check)
        self.slow_given_back = 0
        """Slow requests that were given back, since other hosts waited for their slots."""
        self._start_interval_s = 0.0
        """Least time between two requests that ask for a slot; 0: no limit."""
        self._next_start = 0.0

    @property
    def fetching(self) -> int:
        """Requests that hold one of the `concurrency` slots."""
        return self.slots.held

    @property
    def slow(self) -> int:
        """Slots held by hosts that answer slowly."""
        return self.slots.slow

    def set_concurrency(self, limit: int) -> None:
        """Change the number of slots; requests that waited for one continue."""
        for fetch in self.slots.set_limit(limit):
            self._run(fetch, ADDRESS_SLOT)

    def set_speed(self, per_s: float) -> None:
        """Let so many requests per second ask for a slot; 0: no limit. Requests that wait keep their instants."""
        self._start_interval_s = 1 / per_s if per_s else 0.0
        self._next_start = self._clock.monotonic()

    def enter(self, fetch: InFlight) -> StageResult:
        """Wait for the speed of this member, then for one of the `concurrency` slots, which are shared by how hosts
        answer. A slow host without a slot is given back with a pause; a redirected robots.txt still holds its slot.
        Both come before the slots of addresses, whose gaps count from the start."""
        if fetch.started:
            return GO
        if self._start_interval_s:
            now = self._clock.monotonic()
            start = max(self._next_start, now)
            self._next_start = start + self._start_interval_s
            if start > now:
                fetch.timer = self._clock.call_at(start, lambda: self._on_speed_allows(fetch))
                return WAIT
        return self._acquire(fetch)

    def _on_speed_allows(self, fetch: InFlight) -> None:
        fetch.timer = None
        if self._acquire(fetch) is GO:
            self._run(fetch, ADDRESS_SLOT)

    def _acquire(self, fetch: InFlight) -> StageResult:
        speed = self.speeds.by_host.get(fetch.request.host, NEW)
        if self.slots.acquire(fetch, speed):
            return GO
        if speed is SLOW:  # its lease would keep another host from being sent
            self.slots.cancel(fetch)
            self.slow_given_back += 1
            detail = "the share of slow hosts is in use"
            return self._ending.paused(fetch, reason=Reason.SLOW, detail=detail, retry_after_s=SLOW_PAUSE_S)
        self._watch_slow()
        return WAIT

    def on_dial(self, fetch: InFlight) -> None:
        """The request is handed to the fetcher."""
        self._dialled[fetch] = None

    def on_response(self, fetch: InFlight, took_s: float) -> None:
        """A response has come. One of a robots.txt is small and often cached: it proves nothing about pages."""
        request = fetch.request
        if took_s >= self._config.slow_after_s or request.kind is ROBOTS:
            return
        if self.speeds.by_host.get(request.host) is not FAST:
            self.speeds.learn(request.host, FAST)

    def forget_dial(self, fetch: InFlight) -> None:
        """The fetch has ended; its slot is kept."""
        self._dialled.pop(fetch, None)

    def release(self, fetch: InFlight, stage: Stage) -> None:
        """The request has ended in this stage: release its slot, or leave the queue."""
        if stage > GLOBAL_SLOT or fetch.started > 0:  # a redirected robots.txt keeps its slot
            self._dialled.pop(fetch, None)
            for waiter in self.slots.release(fetch):
                self._run(waiter, ADDRESS_SLOT)
        elif stage is GLOBAL_SLOT:
            self.slots.cancel(fetch)

    def close(self) -> None:
        """Look no more."""
        self._slow_timer.cancel()

    def _watch_slow(self) -> None:
        """Look at fetches in flight from time to time, while requests wait for slots."""
        self._slow_timer.start(SLOW_CHECK_S)

    def _on_slow_check(self) -> None:
        config = self._config
        until = self._clock.monotonic() - config.slow_after_s
        for fetch in list(self._dialled):
            if fetch.dialled_at > until:
                break
            handle = fetch.handle
            elapsed_s = self._clock.monotonic() - fetch.dialled_at
            if not isinstance(handle, TimedFetch) or handle.waits_for_memory:
                continue
            if handle.received_bytes < config.slow_rate_bytes * elapsed_s:
                del self._dialled[fetch]
                self.speeds.learn(fetch.request.host, SLOW)
                for following in self.slots.mark_slow(fetch):
                    self._run(following, ADDRESS_SLOT)
        for fetch in self.slots.excess():
            self.slow_given_back += 1
            self._ending.give_back(fetch, Reason.SLOW, SLOW_PAUSE_S)
        if self.slots.waiting:
            self._watch_slow()
