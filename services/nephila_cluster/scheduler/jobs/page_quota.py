"""The share of a job's page budget in one partition: pages it may use, returns and requests.

Invariant, together with `coordinator`: over all partitions, pages granted minus pages returned never exceed the
budget. An owner dispatches a URL only while its stored and in-flight pages are fewer than its quota. It subtracts what
it returns before it publishes it, and its successor starts with the published value. A new owner uses nothing until it
has read its own first report, because before that the previous owner might still have returned pages. All numbers are
counts since the job started and only rise, so a message that is read twice, late or never does no harm. When a
partition splits, the pages that its parts have in use are added to the one and subtracted from the other
(`split_pages`), so their sum stays. Pure.
"""

from __future__ import annotations

from nephila.kernel.messages import PartitionStatus

from nephila_cluster.scheduler.jobs.job_view import JobView

FIRST = 32
"""Pages requested at the start."""
AHEAD = 4
"""Pages requested in advance: this many times the use per interval."""


class PageQuota:
    """The quota of one job in one partition under one owner."""

    def __init__(self, partition: int, epoch: int) -> None:
        self.partition = partition
        self.epoch = epoch
        self.start_generation = 0
        self.returned = 0
        self.confirmed = False
        """Whether a report of this owner was read back, and with it all earlier reports that count."""
        self._used = 0
        self._ahead = FIRST

    def measure_rate(self, used: int) -> None:
        """Measure the pages used between two calls."""
        self._ahead = max(FIRST, AHEAD * (used - self._used))
        self._used = used

    def usable_pages(self, view: JobView, split_pages: int) -> int:
        """Take over the view; returns the pages that may be used in all. `split_pages`: grants that came with a split,
        or went with it (below 0)."""
        if view.status.start_generation != self.start_generation:
            self.start_generation = view.status.start_generation
            self.returned = 0
            self.confirmed = False
        part = view.parts.get(self.partition)
        if part is not None and part.start_generation == self.start_generation and part.epoch <= self.epoch:
            self.returned = max(self.returned, part.returned)
            self.confirmed = self.confirmed or (part.epoch == self.epoch and bool(self.start_generation))
        if not self.confirmed or view.status.deleted:
            return 0
        return max(view.granted(self.partition) + split_pages - self.returned, 0)

    def fill_request(self, part: PartitionStatus, view: JobView, *, ready: int, committed: bool) -> None:
        """Report what is used, requested and returned. `ready`: hosts that can be fetched from now; `committed`: a
        successor would find the same `used`, so returned pages cannot turn out to be used."""
        pages = self.usable_pages(view, part.split_pages)
        exhausted = view.status.exhausted
        soon = min(part.queued, ready)
        spare = pages - part.used - soon
        if exhausted and committed and spare > 0:
            self.returned += (spare + 1) // 2
        base = self.returned + part.used - part.split_pages
        part.start_generation, part.returned, part.confirmed = self.start_generation, self.returned, self.confirmed
        part.needed_now = max(base + soon, 0)
        part.requested = max(part.needed_now, base + min(part.queued, 0 if exhausted else self._ahead))
