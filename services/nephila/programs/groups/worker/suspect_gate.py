"""The gate between scheduler and downloader of a group that has died: suspects pass one at a time and alone. Pure.

A suspect is a URL that was in flight at two deaths of the group (`group_deaths.py`). While one is fetched and parsed,
all other requests of the group wait, so a further death has one cause. A URL that is poison ends here as a dead letter.
A group without suspects has no gate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from nephila.kernel.bus.pipe.protocol import Key
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult, Record
from nephila.programs.groups.worker.requests_in_flight import RequestsInFlight

_UNTRIED = (FetchResult.UNSPECIFIED, FetchResult.EXPIRED)

Request = tuple[int, FetchRequest]
"""Partition and message."""


class SuspectGate:
    """`hand_on` gives a request to the downloader, `on_poison` ends it."""

    def __init__(
        self,
        suspects: Iterable[Key],
        poison: Iterable[Key],
        hand_on: Callable[[int, FetchRequest], object],
        on_poison: Callable[[int, FetchRequest], None],
        on_probe: Callable[[Key], None],
        on_probed: Callable[[Key, bool], None],
    ) -> None:
        """`on_probe`: a suspect is about to be handed on, alone. `on_probed`: it is finished; whether its URL was
        really fetched."""
        self._suspects = set(suspects)
        self._poison = set(poison)
        self._hand_on = hand_on
        self._on_poison = on_poison
        self._on_probe = on_probe
        self._on_probed = on_probed
        self._in_flight = RequestsInFlight()
        self._probing: Key | None = None
        self._suspect_requests: deque[Request] = deque()
        self._waiting: deque[Request] = deque()
        """Requests that wait for the end of a probe."""

    @property
    def needed(self) -> bool:
        """Whether a request may still have to wait or to end here."""
        return bool(self._suspects or self._poison or self._waiting)

    def request(self, partition: int, request: FetchRequest) -> None:
        """A request of the scheduler."""
        key = (request.job, request.url_key)
        if key in self._poison:
            self._on_poison(partition, request)
            return
        waits = self._suspect_requests if key in self._suspects else self._waiting
        waits.append((partition, request))
        self._hand_on_next()

    def outcome(self, outcome: FetchOutcome) -> None:
        """An outcome of the downloader."""
        if self._in_flight.outcome(outcome):
            self._ended((outcome.job, outcome.url_key), outcome.result not in _UNTRIED)

    def record(self, record: Record) -> None:
        """The row of a page."""
        if self._in_flight.record(record):
            self._ended((record.job, record.url_key), True)

    def _ended(self, key: Key, tried: bool) -> None:
        if key == self._probing:
            self._probing = None
            if tried:
                self._suspects.discard(key)
            self._on_probed(key, tried)
        self._hand_on_next()

    def _hand_on_next(self) -> None:
        """Hand on the next suspect once nothing is in flight; other requests while no suspect waits."""
        if self._probing is not None:
            return
        if self._suspect_requests:
            if not len(self._in_flight):
                partition, request = self._suspect_requests.popleft()
                self._probing = (request.job, request.url_key)
                self._on_probe(self._probing)
                self._pass(partition, request)
            return
        while self._waiting and self._probing is None and not self._suspect_requests:
            self._pass(*self._waiting.popleft())

    def _pass(self, partition: int, request: FetchRequest) -> None:
        self._in_flight.take(request)
        self._hand_on(partition, request)
