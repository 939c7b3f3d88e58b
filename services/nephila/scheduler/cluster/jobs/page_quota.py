"""The pages of a job's page budget in one partition: what its owner may use, gives back, and asks for.

Invariant, with `coordinator`: over all partitions, pages given less those given back never exceed the budget. The
owner takes a URL only while the pages that it has stored or has on the way are fewer than its pages. What it gives
back is off its own sum before it says so, and its successor begins with what was said: a new owner uses nothing before
it has read its own first word, for until then one before it might still have given something back. All numbers are
counts since the job began and only rise, so that a message read twice, late or not at all does no harm. Pure.
"""

from __future__ import annotations

from nephila.kernel.messages import PartitionStatus
from nephila.scheduler.cluster.jobs.job_view import JobView

FIRST = 32
"""Places asked for at the beginning."""
AHEAD = 4
"""Places asked for ahead, in those taken from one look to the next."""


class PageQuota:
    """Of one job in one partition under one owner."""

    def __init__(self, partition: int, epoch: int) -> None:
        self.partition = partition
        self.epoch = epoch
        self.start_generation = 0
        self.returned = 0
        self.confirmed = False
        """Whether a word of this owner, and with it all that counts of those before, was read back."""
        self._used = 0
        self._ahead = FIRST

    def measure_rate(self, used: int) -> None:
        """Reckon how many pages are taken in the time from one call to the next."""
        self._ahead = max(FIRST, AHEAD * (used - self._used))
        self._used = used

    def usable_pages(self, view: JobView) -> int:
        """Take over what was view by now; returns the pages that may be used in all."""
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
        return max(view.granted(self.partition) - self.returned, 0)

    def fill_request(self, part: PartitionStatus, view: JobView, *, ready: int, committed: bool) -> None:
        """Say what is used, asked for and given back. `ready`: hosts that could be fetched from now; `safe`: `used` is
        what a successor would find, so that nothing given back can turn out to be used."""
        pages = self.usable_pages(view)
        exhausted = view.status.exhausted
        soon = min(part.queued, ready)
        spare = pages - part.used - soon
        if exhausted and committed and spare > 0:
            self.returned += (spare + 1) // 2
        base = self.returned + part.used
        part.start_generation, part.returned, part.confirmed = self.start_generation, self.returned, self.confirmed
        part.needed_now = base + soon
        part.requested = max(part.needed_now, base + min(part.queued, 0 if exhausted else self._ahead))
