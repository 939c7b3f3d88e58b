"""How a stage answers, and how a request ends without a response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

from nephila.downloader.dns.contract import NotLookedUpError, ResolveError
from nephila.downloader.in_flight import InFlight, Stage
from nephila.downloader.limits.partitions import Partitions
from nephila.downloader.outcome import undialled
from nephila.kernel import messages as m
from nephila.kernel.net.egress import EgressError
from nephila.kernel.outcomes import given_back
from nephila.kernel.reasons.table import AnyReason, Reason
from nephila.kernel.runtime.clock import Clock


class StageResult(Enum):
    GO = "go"
    WAIT = "wait"
    END = "end"


GO, WAIT, END = StageResult.GO, StageResult.WAIT, StageResult.END
Run = Callable[[InFlight, Stage], None]
"""Continues a request with a stage."""
OnEnd = Callable[[InFlight, m.FetchOutcome], None]


class Ending:
    """Each call leads to one call of `on_end`, which releases what the request holds."""

    def __init__(self, clock: Clock, partitions: Partitions, on_end: OnEnd) -> None:
        self._clock = clock
        self._partitions = partitions
        self._on_end = on_end

    def stop(self, fetch: InFlight) -> None:
        """Cancel the timer, the look-up or the fetch of a request."""
        timer, fetch.timer = fetch.timer, None
        if timer is not None:
            timer.cancel()
        handle, fetch.handle = fetch.handle, None
        if isinstance(handle, asyncio.Task):
            handle.cancel()
        elif handle is not None:
            handle.abort()

    def give_back(self, fetch: InFlight, reason: Reason = Reason.NONE, retry_after_s: float = 0.0) -> None:
        """Stop a request and end it without a result; the scheduler sends it again."""
        self.stop(fetch)
        outcome = given_back(fetch.request)
        outcome.reason, outcome.retry_after_s = reason, retry_after_s
        if fetch.started:  # the server has seen it: the host's delay applies
            outcome.started_at = fetch.started
            outcome.ended_at = self._clock.now()
            outcome.address = fetch.origin_address or fetch.route.pace_address
        self._on_end(fetch, outcome)

    def ends_early(self, fetch: InFlight) -> bool:
        """End a request that was not dialled yet when its partition leaves or it is too late; True when it ended."""
        if fetch.started:
            return False
        if fetch.delivery.partition in self._partitions.revoked:
            self.give_back(fetch)
            return True
        start_by = fetch.request.start_by
        if start_by and self._clock.now() > start_by:
            self.end(fetch, m.FetchResult.EXPIRED, Reason.EXPIRED, "not started in time")
            return True
        return False

    def busy(self, fetch: InFlight) -> StageResult:
        """Give a request back whose address is busy; the scheduler learns the address."""
        outcome = given_back(fetch.request)
        outcome.reason = Reason.BUSY
        outcome.address = fetch.route.pace_address
        return self._end_soon(fetch, outcome)

    def unresolved(self, fetch: InFlight, error: Exception) -> StageResult:
        """End a request whose server has no address that may be dialled."""
        if isinstance(error, EgressError):
            return self.end(fetch, m.FetchResult.DENIED, Reason.ADDRESS, str(error))
        if isinstance(error, NotLookedUpError):
            return self.end(fetch, m.FetchResult.UNSPECIFIED, Reason.NOT_RESOLVED, str(error))
        detail = str(error) if isinstance(error, ResolveError) else f"{type(error).__name__}: {error}"
        return self.end(fetch, m.FetchResult.FAILED, Reason.DNS, detail)

    def paused(self, fetch: InFlight, reason: Reason, detail: str, retry_after_s: float) -> StageResult:
        """Give a request back before its dial; its host pauses."""
        outcome = given_back(fetch.request)
        outcome.reason, outcome.detail, outcome.retry_after_s = reason, detail, retry_after_s
        outcome.ended_at = self._clock.now()
        return self._end_soon(fetch, outcome)

    def end(self, fetch: InFlight, result: m.FetchResult, reason: AnyReason, detail: str) -> StageResult:
        """End a request before its dial."""
        outcome = undialled(fetch.request, result, reason, detail, self._clock.now())
        if fetch.started:  # a robots.txt that was redirected to an address that is refused or cannot be found
            outcome.started_at = fetch.started
            outcome.address = fetch.origin_address
        return self._end_soon(fetch, outcome)

    def _end_soon(self, fetch: InFlight, outcome: m.FetchOutcome) -> StageResult:
        """End in the next turn of the event loop: the outcome may bring the next request of the host, which may end in
        the same way."""
        self._clock.call_soon(lambda: self._on_end(fetch, outcome))
        return END
