"""The bus of a parser where partitions are apart: links are published on the partitions of their targets, before their
page.

The links of a page are looked up in the recently-seen cache and split by partition (most pages need one or few). Links
for one partition wait up to HOLD_S, or until there are LINKS of them, and are published in one record; each message in
it keeps its page. They do not wait where the fetchers have too little to do: the next request may be for one of them.
Invariant: a record is published when the broker has all links of its page. So when a URL has ended, all its links are
published. A link that the cache treats as known belongs to a page of which the same holds, or which has not ended yet.
The cache forgets a job when a scheduler reports that the job's scope has grown, and when links cannot be sent. Links
of a page that is fetched once more are all sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from nephila.kernel.bus.contract import DeadHandler, Delivery, Handler, Receipt, all_of
from nephila.kernel.bus.wrapper import BusWrapper, Outlet
from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, JobStatus, Outlinks, Record
from nephila.kernel.pages.chosen_links import only
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import JOB_STATUS, JOBS, OUTLINKS, PAGES, RECORDS, Topic
from nephila.programs.recently_seen import RecentLinks

GROUP = "exchange"
HOLD_S = 0.05
"""Longest wait of a link for others of its partition."""
LINKS = 500
"""So many links of a partition wait for no more."""
LARGE_BYTES = 64 << 10
"""Longer links of a page are sent at once: a failure is reported while the page is still unacked."""

Key = tuple[str, bytes]


class OutlinkRouter(BusWrapper):
    """The bus as a parser sees it."""

    def __init__(
        self, bus: Outlet, clock: Clock, layout: Callable[[], Layout], wanting: Callable[[], bool] = lambda: False
    ) -> None:
        """`layout`: the present one. `wanting`: whether the fetchers have too little to do."""
        super().__init__(bus)
        self.recent = RecentLinks(clock)
        self._clock = clock
        self._layout = layout
        self._wanting = wanting
        self._held: dict[int, _Held] = {}
        self._timer = OneTimer(clock, self._flush)
        self._open: dict[Key, list[Receipt]] = {}
        """Pages whose record is still to come → receipts of their links."""
        self._again: set[Key] = set()
        """Pages that are fetched once more and whose record is still to come."""
        self._anchors: dict[str, int] = {}
        bus.subscribe(JOBS, GROUP, self._on_job, credits=1000)
        bus.subscribe(JOB_STATUS, GROUP, self._on_status, credits=1000)

    # ---- the bus

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        if topic is OUTLINKS:
            return self._links(message)
        if topic is RECORDS:
            return self._record(partition, message)
        return super().publish(topic, partition, message)

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        take = self._noting(handler) if topic is PAGES else handler
        super().subscribe(topic, group, take, credits=credits, on_dead=on_dead)

    def _noting(self, handler: Handler) -> Handler:
        """A handler of pages that notes those which are fetched once more."""

        def take(delivery: Delivery) -> None:
            if delivery.message.attempt > 1:
                self._again.add((delivery.message.job, delivery.message.url_key))
            handler(delivery)

        return take

    # ---- links, then their record

    def _links(self, links: Outlinks) -> Receipt:
        key = (links.job, links.parent_key)
        layout = self._layout()
        parts = split(links, self.recent.new(links, again=key in self._again), layout)
        if links.next_pages is not None:
            parts = with_next_pages(links, parts, layout)
        try:
            receipts = [self._put(partition, part) for partition, part in parts]
        except PermanentError:
            self.recent.forget(links.job)
            raise
        if receipts:
            self._open.setdefault(key, []).extend(receipts)
        return all_of(receipts)

    def _record(self, partition: int, record: Record) -> Receipt:
        key = (record.job, record.url_key)
        receipt = self._bus.publish_after(self._open.get(key, ()), RECORDS, partition, record)
        self._open.pop(key, None)
        self._again.discard(key)
        return receipt

    def _put(self, partition: int, links: Outlinks) -> Receipt:
        if len(links.urls) + len(links.anchors) > LARGE_BYTES:
            return self._bus.publish(OUTLINKS, partition, links)
        held = self._held.get(partition)
        if held is None:
            held = self._held[partition] = _Held()
            self._timer.start(HOLD_S)
        receipt = held.add(links)
        if held.links >= LINKS:
            self._send(partition)
        elif self._wanting():
            self._flush()
        return receipt

    def _flush(self) -> None:
        for partition in list(self._held):
            self._send(partition)

    def _send(self, partition: int) -> None:
        for links, receipt in self._held.pop(partition).waiting:
            self._bus.publish(OUTLINKS, partition, links).add_done_callback(receipt.resolve_one)

    # ---- what is known of jobs

    def _on_job(self, delivery: Delivery) -> None:
        job: CrawlJob = delivery.message
        self.recent.job(job)
        if job.deleted:
            self._anchors.pop(job.uid, None)
        delivery.ack()

    def _on_status(self, delivery: Delivery) -> None:
        status: JobStatus = delivery.message
        if not status.deleted and self._anchors.get(status.uid, 0) != status.anchors:
            self._anchors[status.uid] = status.anchors
            self.recent.forget(status.uid)
        delivery.ack()


class _Held:
    """What waits for one partition."""

    __slots__ = ("links", "waiting")

    def __init__(self) -> None:
        self.links = 0
        self.waiting: list[tuple[Outlinks, Receipt]] = []

    def add(self, links: Outlinks) -> Receipt:
        receipt = Receipt()
        self.links += len(links.fingerprints) // 16
        self.waiting.append((links, receipt))
        return receipt


def split(links: Outlinks, chosen: Sequence[int], layout: Layout) -> list[tuple[int, Outlinks]]:
    """(partition, its links) of those at these rising indices. O(chosen); a message that stays whole is not copied."""
    if not chosen:
        return []
    partitions = layout.of_many(links.fingerprints)
    first, count = partitions[chosen[0]], len(partitions)
    if len(chosen) == count and partitions.count(first) == count:
        return [(first, links)]
    groups: dict[int, list[int]] = {}
    for i in chosen:
        groups.setdefault(partitions[i], []).append(i)
    return [(partition, only(links, indices)) for partition, indices in groups.items()]


def with_next_pages(links: Outlinks, parts: list[tuple[int, Outlinks]], layout: Layout) -> list[tuple[int, Outlinks]]:
    """The parts of a page's links, with its next pages on their partition alone. The owner of that partition follows
    them if one of the links there is new. Where all links are of other partitions, they are followed."""
    assert links.next_pages is not None
    target = layout.of(links.next_pages.fingerprints)
    extended = [
        (partition, msgspec.structs.replace(part, next_pages=links.next_pages if partition == target else None))
        for partition, part in parts
    ]
    if all(partition != target for partition, _ in parts) and (parts or links.next_always):
        extended.append((target, msgspec.structs.replace(only(links, ()), next_always=True)))
    return extended
