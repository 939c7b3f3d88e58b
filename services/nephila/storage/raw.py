"""Raw pages between the moment they are seen and the flush of their record.

A page and its record are acked together, so that the body is in the file by the time its URL has ended. A page that
comes after its record was flushed (its group had no credit) is written by the next flush, alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nephila.kernel import messages as m
from nephila.kernel.bus.base import Delivery

_Key = tuple[str, bytes, int, int]


@dataclass(slots=True)
class Taken:
    """The raw pages of one flush."""

    pages: list[m.Page | None]
    """Page of each record, None for a record without one."""
    late: list[m.Page]
    """Pages whose records an earlier flush has made durable."""
    deliveries: list[Delivery]

    def ack(self) -> None:
        """All of them are durable."""
        for delivery in self.deliveries:
            delivery.ack()


class RawPages:
    """Pages that wait for their records. O(1) per page."""

    def __init__(self, on_late: Callable[[], None]) -> None:
        self._waiting: dict[_Key, Delivery] = {}
        self._missed: set[_Key] = set()
        self.late: list[Delivery] = []
        """Pages to be written without a record."""
        self._on_late = on_late

    def __len__(self) -> int:
        return len(self._waiting)

    def on_page(self, delivery: Delivery) -> None:
        """Handler of the topic `pages`."""
        page = delivery.message
        key = (page.job, page.url_key, page.fetch_no, page.attempt)
        if key in self._missed:
            self._missed.discard(key)
            self.late.append(delivery)
            self._on_late()
            return
        # The same attempt delivered again replaces its twin, which has nothing to add.
        twin = self._waiting.pop(key, None)
        if twin is not None:
            twin.ack()
        self._waiting[key] = delivery

    def take(self, records: list[m.Record]) -> Taken:
        """Hand out the pages of these records and the late ones."""
        taken = Taken([], [], self.late)
        taken.late = [delivery.message for delivery in self.late]
        self.late = []
        for record in records:
            key = (record.job, record.url_key, record.fetch_no, record.attempt)
            delivery = self._waiting.pop(key, None)
            if delivery is not None:
                taken.deliveries.append(delivery)
                taken.pages.append(delivery.message)
                continue
            taken.pages.append(None)
            if record.outcome == m.Outcome.STORED:
                self._missed.add(key)
        return taken
