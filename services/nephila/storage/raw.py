"""Raw pages between the moment they are seen and the flush of their record.

A page and its record are acked together, so that the body is in the file by the time its URL has ended. A page that
comes after its record was flushed (its group had no credit) is written by the next flush, alone; so is one whose record
does not come for `wait_s`, as over a broker, where another member may have taken it: no page waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.runtime.clock import Clock, Timer

_Key = tuple[str, bytes, int, int]
MAX_ALONE: Final = 100_000
"""Pages written without their records whose records are known when they come after all."""


@dataclass(slots=True)
class RawBatch:
    """The raw pages of one flush."""

    pages: list[m.Page | None]
    """Page of each record, None for a record without one."""
    late: list[m.Page]
    """Pages whose records an earlier flush has made durable."""
    deliveries: list[Delivery]
    exchanges: list[m.Page]
    """Answers that are no pages."""

    def ack(self) -> None:
        """All of them are durable."""
        for delivery in self.deliveries:
            delivery.ack()


class RawPages:
    """Pages that wait for their records. O(1) per page."""

    def __init__(self, on_late: Callable[[], None], clock: Clock, wait_s: float) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._timer: Timer | None = None
        self._waiting: dict[_Key, tuple[float, Delivery]] = {}
        """In the order in which they came; with when that was."""
        self._written_alone: set[_Key] = set()
        self._records_first: set[_Key] = set()
        self.late: list[Delivery] = []
        """Pages to be written without a record."""
        self._exchanges: list[Delivery] = []
        self._on_late = on_late

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def due(self) -> bool:
        """Whether something is to be written without a record."""
        return bool(self.late or self._exchanges)

    def on_exchange(self, delivery: Delivery) -> None:
        """Handler of the topic `exchanges`: no record belongs to them."""
        self._exchanges.append(delivery)
        self._on_late()

    def on_page(self, delivery: Delivery) -> None:
        """Handler of the topic `pages`."""
        page = delivery.message
        key = (page.job, page.url_key, page.fetch_no, page.attempt)
        if key in self._records_first:
            self._records_first.discard(key)
            self.late.append(delivery)
            self._on_late()
            return
        # The same attempt delivered again replaces its twin, which has nothing to add.
        twin = self._waiting.pop(key, None)
        if twin is not None:
            twin[1].ack()
        self._waiting[key] = (self._clock.monotonic(), delivery)
        self._start_timer()

    def close(self) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self) -> None:
        if self._timer is None and self._waiting:
            came, _ = next(iter(self._waiting.values()))
            self._timer = self._clock.call_at(came + self._wait_s, self._on_wait_over)

    def _on_wait_over(self) -> None:
        """Those that have waited long enough go without their records."""
        self._timer = None
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
        """Hand out the pages of these records and the late ones."""
        batch = RawBatch([], [], [*self.late, *self._exchanges], [delivery.message for delivery in self._exchanges])
        batch.late = [delivery.message for delivery in self.late]
        self.late, self._exchanges = [], []
        for record in records:
            key = (record.job, record.url_key, record.fetch_no, record.attempt)
            found = self._waiting.pop(key, None)
            if found is not None:
                batch.deliveries.append(found[1])
                batch.pages.append(found[1].message)
                continue
            batch.pages.append(None)
            if key in self._written_alone:
                self._written_alone.discard(key)
            elif record.outcome == m.Outcome.STORED:
                self._records_first.add(key)
        return batch
