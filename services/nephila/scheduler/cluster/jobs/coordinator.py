"""The coordinator of one job: sums, places of the page budget, and when there is nothing left to do.

It is whoever owns the partition of the job's uid; it keeps nothing that it could not read again from what was told.

*Places.* See `allowance`. Given are at most half of what is free in one go, shared by who asks: a job spreads from few
hosts to many, and those that come later must find some. When nothing is free and somebody could fetch, the job is
`scarce`: who has places to spare gives half of them back each time, so that the last ones find their way to whoever
can use them.

*Done.* All partitions say that they are at rest; then the logs of seeds and links, as far as they had got by then, are
read to their ends by all of them; then they are asked once more and say that nothing has happened in between. At the
time the ends were asked for nothing was on its way anywhere; a page's links are in the log before its record, and a
redirect's target before the row of the redirect: what could still come lies below those ends. Pure.
"""

from __future__ import annotations

from nephila.kernel.messages import CrawlJob, JobStatus, PartitionStatus, PlacesGiven
from nephila.scheduler.cluster.jobs.job_view import Told

Rest = tuple[tuple[int, int, int, int], ...]
"""(partition, epoch, generation, activity) of all partitions, at rest."""


class Coordinator:
    """See the module. `next` is O(partitions)."""

    def __init__(self, told: Told, partitions: int) -> None:
        self.told = told
        self._partitions = partitions
        self._rest: Rest | None = None
        self._read = False
        self._asked = 0

    @property
    def wants_ends(self) -> Rest | None:
        """For what the ends of the logs have to be known and reached; None when for nothing."""
        return None if self._read else self._rest

    def ends_reached(self, rest: Rest) -> None:
        """The logs were read to the ends that they had after `wants_ends` said this."""
        if rest == self._rest:
            self._read = True

    def somebody_lacks(self, given: list[PlacesGiven]) -> bool:
        """Whether a partition could fetch by now, had it more places than these."""
        had = {one.partition: one.places for one in given}
        return any(part.lacking > had.get(part.partition, 0) for part in self.told.parts.values())

    def next(self, spec: CrawlJob) -> JobStatus:
        """What there is to tell by now."""
        before = self.told.status
        anew = not before.version or (before.deleted and spec.generation > before.generation)
        born = spec.generation if anew else before.born
        status = JobStatus(self.told.uid, version=before.version + 1, born=born, look=before.look)
        if spec.deleted:
            status.generation, status.deleted = spec.generation, True
            return status
        parts = [part for part in self.told.parts.values() if part.generation >= born]
        if len(parts) == self._partitions:
            status.generation = min(spec.generation, *(part.generation for part in parts))
        _sum_up(status, parts)
        status.paused = spec.paused
        budget = spec.scope.max_pages if spec.scope is not None else 0
        if budget:
            status.spent = status.stored >= budget
            self._give(status, budget, {} if anew else {one.partition: one.places for one in before.given})
        self._look(status, spec, parts)
        return status

    # ---- places

    def _give(self, status: JobStatus, budget: int, given: dict[int, int]) -> None:
        parts = {part.partition: part for part in self.told.parts.values() if part.born == status.born}
        for number, part in parts.items():
            # Pages that were stored before there was a budget have their places.
            given[number] = max(given.get(number, 0), part.returned + part.used)
        free = budget - sum(given.values()) + sum(part.returned for part in parts.values())
        asking = sorted(
            (part.wanted > part.lacking, part.used, part.partition)
            for part in parts.values()
            if part.wanted > given.get(part.partition, 0)
        )
        if free > 0 and asking:
            share = max(free // (2 * len(asking)), 1)
            for _, _, number in asking:
                had = given.get(number, 0)
                more = min(parts[number].wanted - had, share, free)
                given[number] = had + more
                free -= more
        lacking = any(part.lacking > given.get(part.partition, 0) for part in parts.values())
        status.scarce = not status.spent and (free < 0 or (free == 0 and lacking))
        status.given = [PlacesGiven(number, given[number]) for number in sorted(given)]

    # ---- the end

    def _look(self, status: JobStatus, spec: CrawlJob, parts: list[PartitionStatus]) -> None:
        rest = _rest(parts, spec.generation) if len(parts) == self._partitions else None
        if rest is None or rest != self._rest:
            self._rest, self._read, self._asked = rest, False, 0
            return
        if self._read and not self._asked:
            self._asked = status.look + 1
        status.look = max(status.look, self._asked)
        status.done = bool(self._asked) and all(part.look >= self._asked for part in parts)


def _sum_up(status: JobStatus, parts: list[PartitionStatus]) -> None:
    for name in ("queued", "on_way", "stored", "denied", "failed", "dropped", "anchors"):
        setattr(status, name, sum(getattr(part, name) for part in parts))


def _rest(parts: list[PartitionStatus], generation: int) -> Rest | None:
    if not all(part.resting and part.generation == generation for part in parts):
        return None
    return tuple(sorted((part.partition, part.epoch, part.generation, part.activity) for part in parts))
