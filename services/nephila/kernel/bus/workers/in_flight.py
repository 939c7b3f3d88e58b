"""What one worker has in its hands: requests of which not everything has come back. Pure.

A request is done when its outcome has come and, where a page was fetched, that page's record. Invariant: what is here
when a worker dies is lost and has to be fetched again; what is not here has all that came of it in the main process.
"""

from __future__ import annotations

from collections.abc import Iterator

from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult, Record

Key = tuple[str, bytes]
_PAGES = (FetchResult.FETCHED, FetchResult.NOT_MODIFIED)


class InFlightRequest:
    """One request and the half of its end that has come."""

    __slots__ = ("fetched", "partition", "recorded", "request", "sent_at")

    def __init__(self, partition: int, request: FetchRequest, sent_at: float) -> None:
        self.partition = partition
        self.request = request
        self.sent_at = sent_at
        """When it was handed over, UTC; 0 when it never was."""
        self.fetched = False
        self.recorded = False

    @property
    def key(self) -> Key:
        """Job and fingerprint."""
        return self.request.job, self.request.url_key


class InFlightRequests:
    """Every operation is O(1)."""

    def __init__(self) -> None:
        self.held: dict[Key, InFlightRequest] = {}
        """By job and fingerprint; for others to count."""

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[InFlightRequest]:
        return iter(list(self.held.values()))

    def take(self, partition: int, request: FetchRequest, now: float) -> None:
        """A request goes to the worker. One of the same URL that is still here has been given up by the scheduler."""
        self.held[request.job, request.url_key] = InFlightRequest(partition, request, now)

    def outcome(self, outcome: FetchOutcome) -> bool:
        """An outcome has come; True when its request is done with it."""
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
        """A record has come; True when its request is done with it."""
        key = (record.job, record.url_key)
        held = self.held.get(key)
        if held is None or held.request.fetch_no != record.fetch_no or held.request.attempt != record.attempt:
            return False
        if not held.fetched:
            held.recorded = True
            return False
        del self.held[key]
        return True
