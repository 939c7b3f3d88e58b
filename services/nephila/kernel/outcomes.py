"""The outcome of a request that nobody has dialled: what whoever holds a request begins with. Pure."""

from __future__ import annotations

from nephila.kernel.messages import FetchOutcome, FetchRequest


def given_back(request: FetchRequest) -> FetchOutcome:
    """The request goes back untouched: no attempt is counted."""
    return FetchOutcome(
        job=request.job,
        url_key=request.url_key,
        host=request.host,
        kind=request.kind,
        fetch_no=request.fetch_no,
        attempt=request.attempt,
        epoch=request.epoch,
    )
