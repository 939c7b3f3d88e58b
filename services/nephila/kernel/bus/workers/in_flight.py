"""Requests in flight at one worker: those of which not every result has arrived. Pure.

A request is finished when its outcome has arrived and, if a page was fetched, the record of that page. Invariant: what
is in flight when a worker dies is lost and must be fetched again; of everything else all results are in the main
process.
"""

from __future__ import annotations

from collections.abc import Iterator

from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult, Record

Key = tuple[str, bytes]
_PAGES = (FetchResult.FETCHED, FetchResult.NOT_MODIFIED)


class InFlightRequest:
    """One request, and which of its results have arrived."""

    __slots__ = ("fetched", "partition", "recorded", "request", "sent_at")

    def __init__(self, partition: int, request: FetchRequest, sent_at: float) -> None:
        self.partition = partition
        self.request = request
        self.sent_at = sent_at
        """When it was sent, UTC; 0 if it never was."""
        self.fetched = False
        self.recorded = False

    @property
    def key(self) -> Key:
        """Job and fingerprint."""
        return self.request.job, self.request.url_key


class InFlightRequests:
    """The table holds the requests in flight of all workers. Every operation is O(1)."""

    def __init__(self) -> None:
        self.held: dict[Key, InFlightRequest] = {}
        """By job and fingerprint; others may read its length."""

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[InFlightRequest]:
        return iter(list(self.held.values()))

    def take(self, partition: int, request: FetchRequest, now: float) -> None:
        """A request is sent to the worker. It replaces one of the same URL, whose lease has expired."""
        self.held[request.job, request.url_key] = InFlightRequest(partition, request, now)

    def outcome(self, outcome: FetchOutcome) -> bool:
        """An outcome has arrived; True when its request is finished."""
        if outcome.result is FetchResult.RETRACTED:
            return False
        key = (outcome.job, outcome.url_key)
        held = self.held.get(key)
        if held is None or held.request.fetch_no != outcome.fetch_no or held.request.attempt != outcome.attempt:
            return False
        if outcome.result in _PAGES and outcome.job and not held.recorded:
            held.fetched = True
            return False
        del self.held[key]
        return True

    def record(self, record: Record) -> bool:
        """A record has arrived; True when its request is finished."""
        key = (record.job, record.url_key)
        held = self.held.get(key)
        if held is None or held.request.fetch_no != record.fetch_no or held.request.attempt != record.attempt:
            return False
        if not held.fetched:
            held.recorded = True
            return False
        del self.held[key]
        return True
