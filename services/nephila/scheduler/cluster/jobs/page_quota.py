"""The places of a job's page budget in one partition: what its owner may use, gives back, and asks for.

Invariant, with `coordinator`: over all partitions, places given less those given back never exceed the budget. The
owner takes a URL only while the pages that it has stored or has on the way are fewer than its places. What it gives
back is off its own sum before it says so, and its successor begins with what was said: a new owner uses nothing before
it has read its own first word, for until then one before it might still have given something back. All numbers are
counts since the job began and only rise, so that a message read twice, late or not at all does no harm. Pure.
"""

from __future__ import annotations

from nephila.kernel.messages import PartitionStatus
from nephila.scheduler.cluster.jobs.job_view import Told

FIRST = 32
"""Places asked for at the beginning."""
AHEAD = 4
"""Places asked for ahead, in those taken from one look to the next."""


class Allowance:
    """Of one job in one partition under one owner."""

    def __init__(self, partition: int, epoch: int) -> None:
        self.partition = partition
        self.epoch = epoch
        self.born = 0
        self.returned = 0
        self.confirmed = False
        """Whether a word of this owner, and with it all that counts of those before, was read back."""
        self._used = 0
        self._ahead = FIRST

    def look_ahead(self, used: int) -> None:
        """Reckon how many places are taken in the time from one call to the next."""
        self._ahead = max(FIRST, AHEAD * (used - self._used))
        self._used = used

    def read(self, told: Told) -> int:
        """Take over what was told by now; returns the places that may be used in all."""
        if told.status.born != self.born:
            self.born = told.status.born
            self.returned = 0
            self.confirmed = False
        part = told.parts.get(self.partition)
        if part is not None and part.born == self.born and part.epoch <= self.epoch:
            self.returned = max(self.returned, part.returned)
            self.confirmed = self.confirmed or (part.epoch == self.epoch and bool(self.born))
        if not self.confirmed or told.status.deleted:
            return 0
        return max(told.given(self.partition) - self.returned, 0)

    def write(self, part: PartitionStatus, told: Told, *, ready: int, safe: bool) -> None:
        """Say what is used, asked for and given back. `ready`: hosts that could be fetched from now; `safe`: `used` is
        what a successor would find, so that nothing given back can turn out to be used."""
        places = self.read(told)
        scarce = told.status.scarce
        soon = min(part.queued, ready)
        spare = places - part.used - soon
        if scarce and safe and spare > 0:
            self.returned += (spare + 1) // 2
        base = self.returned + part.used
        part.born, part.returned, part.sure = self.born, self.returned, self.confirmed
        part.lacking = base + soon
        part.wanted = max(part.lacking, base + min(part.queued, 0 if scarce else self._ahead))
