"""Outcomes of requests that were not dialled or whose downloader ended; which outcomes count as errors. Pure."""

from __future__ import annotations

from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.reasons.table import Reason, set_reason


def given_back(request: FetchRequest) -> FetchOutcome:
    """The outcome of a request that is given back: no attempt is counted."""
    return FetchOutcome(
        job=request.job,
        url_key=request.url_key,
        host=request.host,
        kind=request.kind,
        fetch_no=request.fetch_no,
        attempt=request.attempt,
        epoch=request.epoch,
        lease_until=request.lease_until,
    )


def is_error(outcome: FetchOutcome) -> bool:
    """Whether a fetch counts as an error. A robots.txt answered with 4xx does not: it allows everything (RFC 9309)."""
    if outcome.result is not FetchResult.FAILED:
        return False
    return outcome.kind is not FetchKind.ROBOTS or not 400 <= outcome.status < 500


def gone(request: FetchRequest, at: float) -> FetchOutcome:
    """The outcome of a request whose downloader ended at an instant (seconds since 1970 UTC), as if its lease had
    expired then."""
    outcome = given_back(request)
    outcome.result, outcome.detail = FetchResult.FAILED, "the downloader that had it is gone"
    set_reason(outcome, Reason.DOWNLOADER_GONE)
    outcome.started_at = outcome.ended_at = at
    return outcome
