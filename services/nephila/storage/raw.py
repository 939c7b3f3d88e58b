"""Raw pages that wait for the flush of their record.

A page and its record are acknowledged together, so the body is in the file before its URL has ended. The next flush
writes a page alone if its record was flushed before (the group had no credit), or if the record does not arrive within
`wait_s`: over Kafka another member may have received it. No page waits without limit.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer

_Key = tuple[str, bytes, int, int]
MAX_ALONE: Final = 100_000
"""Limit of pages written alone that are remembered, so that their late record is recognised."""


class RawBatch(msgspec.Struct):
    """The raw pages of one flush."""

    pages: list[m.Page | None]
    """The page of each record; None for a record without one."""
    late: list[m.Page]
    """Pages whose records were made durable by an earlier flush."""
    deliveries: list[Delivery]
    exchanges: list[m.Page]
    """Answers that are not pages."""

    def ack(self) -> None:
        """Acknowledge all pages; they are durable."""
        for delivery in self.deliveries:
            delivery.ack()


class RawPages:
    """Pages that wait for their records. O(1) per page."""

    def __init__(self, on_late: Callable[[], None], clock: Clock, wait_s: float) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._timer = OneTimer(clock, self._on_wait_over)
        self._waiting: dict[_Key, tuple[float, Delivery]] = {}
        """In order of arrival, with the time of arrival."""
        self._written_alone: set[_Key] = set()
        self._records_first: set[_Key] = set()
        self.late: list[Delivery] = []
        """Pages that are written without a record."""
        self._exchanges: list[Delivery] = []
        self._on_late = on_late

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def due(self) -> bool:
        """Whether something has to be written without a record."""
        return bool(self.late or self._exchanges)

    def on_exchange(self, delivery: Delivery) -> None:
        """Handler of the topic `exchanges`: no record belongs to these answers."""
        self._exchanges.append(delivery)
        self._on_late()

    def on_page(self, delivery: Delivery) -> None:
        page = delivery.message
        key = (page.job, page.url_key, page.fetch_no, page.attempt)
        if key in self._records_first:
            self._records_first.discard(key)
            self.late.append(delivery)
            self._on_late()
            return
        # A redelivery of the same attempt replaces the earlier copy.
        twin = self._waiting.pop(key, None)
        if twin is not None:
            twin[1].ack()
        self._waiting[key] = (self._clock.monotonic(), delivery)
        self._start_timer()

    def abandon(self, partitions: Container[int], recorded: Container[tuple[str, bytes]]) -> None:
        """The process that fetched from these partitions is dead. The records of its pages do not come any more, and
        the pages are fetched again. `recorded`: job and fingerprint of pages whose records have come."""
        for key, (_, delivery) in list(self._waiting.items()):
            if delivery.partition in partitions and key[:2] not in recorded:
                del self._waiting[key]
                delivery.ack()

    def close(self) -> None:
        self._timer.cancel()

    def _start_timer(self) -> None:
        if self._waiting:
            came, _ = next(iter(self._waiting.values()))
            self._timer.at(came + self._wait_s)

    def _on_wait_over(self) -> None:
        """Write pages alone that have waited for `wait_s`."""
        until = self._clock.monotonic() - self._wait_s
        while self._waiting:
            key, (came, delivery) = next(iter(self._waiting.items()))
            if came > until:
                break
            del self._waiting[key]
            self._note_written_alone(key)
            self.late.append(delivery)
        if self.late:
            self._on_late()
        self._start_timer()

    def _note_written_alone(self, key: _Key) -> None:
        if len(self._written_alone) >= MAX_ALONE:
            self._written_alone.clear()
        self._written_alone.add(key)

    def take(self, records: list[m.Record]) -> RawBatch:
        """Return the pages of these records and the late ones."""
        batch = RawBatch([], [], [*self.late, *self._exchanges], [delivery.message for delivery in self._exchanges])
        batch.late = [delivery.message for delivery in self.late]
        self.late, self._exchanges = [], []
        for record in records:
            key = (record.job, record.url_key, record.fetch_no, record.attempt)
            waiting = self._waiting.pop(key, None)
            if waiting is not None:
                batch.deliveries.append(waiting[1])
                batch.pages.append(waiting[1].message)
                continue
            batch.pages.append(None)
            if key in self._written_alone:
                self._written_alone.discard(key)
            elif record.outcome == m.Outcome.STORED:
                self._records_first.add(key)
        return batch
