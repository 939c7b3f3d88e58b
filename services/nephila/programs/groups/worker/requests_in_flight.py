"""Requests of a group of which not every result has come. Pure.

A request is finished when its outcome has come and, if a page was fetched, the record of that page.
"""

from __future__ import annotations

from nephila.kernel.bus.pipe.protocol import Key
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult, Record

_PAGES = (FetchResult.FETCHED, FetchResult.NOT_MODIFIED)


class _InFlight:
    """One request, and which of its results have come."""

    __slots__ = ("fetched", "recorded", "request")

    def __init__(self, request: FetchRequest) -> None:
        self.request = request
        self.fetched = False
        self.recorded = False


class RequestsInFlight:
    """The requests in flight, by job and fingerprint. Every operation is O(1)."""

    def __init__(self) -> None:
        self._held: dict[Key, _InFlight] = {}

    def __len__(self) -> int:
        return len(self._held)

    def take(self, request: FetchRequest) -> None:
        """A request goes to the downloader. It replaces one of the same URL, whose lease has expired."""
        self._held[request.job, request.url_key] = _InFlight(request)

    def outcome(self, outcome: FetchOutcome) -> bool:
        """An outcome has come; True when its request is finished."""
        if outcome.result is FetchResult.RETRACTED:
            return False
        key = (outcome.job, outcome.url_key)
        held = self._held.get(key)
        if held is None or held.request.fetch_no != outcome.fetch_no or held.request.attempt != outcome.attempt:
            return False
        if outcome.result in _PAGES and outcome.job and not held.recorded:
            held.fetched = True
            return False
        del self._held[key]
        return True

    def record(self, record: Record) -> bool:
        """A record has come; True when its request is finished."""
        key = (record.job, record.url_key)
        held = self._held.get(key)
        if held is None or held.request.fetch_no != record.fetch_no or held.request.attempt != record.attempt:
            return False
        if not held.fetched:
            held.recorded = True
            return False
        del self._held[key]
        return True
