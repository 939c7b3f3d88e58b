"""The coordinator of one job: sums of all partitions, shares of the page budget, and the decision that the job is
done.

The owner of the partition of the job's uid coordinates it. All its state can be read again from the topics.

*Page budget* (page_quota.py). At most half of what is free is granted at a time, divided among the partitions that
request pages: a job spreads from few hosts to many, and later hosts must find pages left. When nothing is free and a
partition could fetch now, the budget is `exhausted`: every partition returns half of its spare pages each time, until
the last ones reach a partition that can use them.

*Done* takes three steps. All partitions report that they are idle. Then the topics of seeds and links are read by all
partitions up to the ends that they had at that time. Then all partitions report once more that nothing has happened
since. When the ends were read nothing was in flight anywhere. A page's links are in the log before its record, and a
redirect's target before the row of the redirect, so anything that could still arrive lies below those ends. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob, JobStatus, PartitionStatus, QuotaGrant

from nephila_cluster.scheduler.jobs.job_view import JobView

IdleSnapshot = tuple[tuple[int, int, int, int], ...]
"""(partition, epoch, generation, activity) of all partitions while all are idle."""


class Coordinator:
    """Coordinates one job. `next` is O(partitions)."""

    def __init__(self, view: JobView, partitions: Callable[[], int]) -> None:
        """`partitions`: the present number of partitions."""
        self.view = view
        self._known_partitions = partitions
        self._idle_snapshot: IdleSnapshot | None = None
        self._read = False
        self._asked = 0
        self._generation, self._max_pages = -1, 0
        """The page budget of the job, and the generation that it is of."""

    @property
    def _partitions(self) -> int:
        """The number of partitions; reports of a grown system may be here before its setting."""
        return max(self._known_partitions(), *(part.partitions for part in self.view.parts.values()), 0)

    @property
    def pending_end_check(self) -> IdleSnapshot | None:
        """The idle state for which the ends of the topics must be reached; None when there is none."""
        return None if self._read else self._idle_snapshot

    def on_ends_reached(self, rest: IdleSnapshot) -> None:
        """All partitions have read the topics to the ends that these had after `pending_end_check` returned this."""
        if rest == self._idle_snapshot:
            self._read = True

    def is_quota_needed(self, grants: list[QuotaGrant]) -> bool:
        """Whether a partition could fetch now if it had more pages than these."""
        had = {grant.partition: grant.pages for grant in grants}
        return any(part.needed_now > had.get(part.partition, 0) for part in self.view.parts.values())

    def next(self, spec: CrawlJob) -> JobStatus:
        """The status to publish now."""
        before = self.view.status
        restarted = not before.version or (before.deleted and spec.generation > before.generation)
        start_generation = spec.generation if restarted else before.start_generation
        status = JobStatus(
            self.view.uid, version=before.version + 1, start_generation=start_generation, idle_check=before.idle_check
        )
        if spec.deleted:
            status.generation, status.deleted = spec.generation, True
            return status
        parts = [part for part in self.view.parts.values() if part.generation >= start_generation]
        if len(parts) == self._partitions:
            status.generation = min(spec.generation, *(part.generation for part in parts))
        _sum_up(status, parts)
        status.paused = spec.paused
        status.quota = max((part.quota for part in parts), default="")
        status.window = max((part.window for part in parts), default="")
        if spec.generation != self._generation:
            self._generation, self._max_pages = spec.generation, spec_of(spec).scope.max_pages
        if budget := self._max_pages:
            status.spent = status.stored >= budget
            self._grant(status, budget, {} if restarted else {grant.partition: grant.pages for grant in before.granted})
        self._check_done(status, spec, parts)
        return status

    # ---- pages

    def _grant(self, status: JobStatus, budget: int, granted: dict[int, int]) -> None:
        parts = {
            part.partition: part
            for part in self.view.parts.values()
            if part.start_generation == status.start_generation
        }
        for number, part in parts.items():
            # Pages stored before the job had a budget count as granted.
            granted[number] = max(granted.get(number, 0), part.returned + part.used - part.split_pages)
        free = budget - sum(granted.values()) + sum(part.returned for part in parts.values())
        asking = sorted(
            (part.requested > part.needed_now, part.used, part.partition)
            for part in parts.values()
            if part.requested > granted.get(part.partition, 0)
        )
        if free > 0 and asking:
            share = max(free // (2 * len(asking)), 1)
            for _, _, number in asking:
                had = granted.get(number, 0)
                more = min(parts[number].requested - had, share, free)
                granted[number] = had + more
                free -= more
        needed_now = any(part.needed_now > granted.get(part.partition, 0) for part in parts.values())
        status.exhausted = not status.spent and (free < 0 or (free == 0 and needed_now))
        status.granted = [QuotaGrant(number, granted[number]) for number in sorted(granted)]

    # ---- the end

    def _check_done(self, status: JobStatus, spec: CrawlJob, parts: list[PartitionStatus]) -> None:
        rest = _idle_snapshot(parts, spec.generation) if len(parts) == self._partitions else None
        if rest is None or rest != self._idle_snapshot:
            self._idle_snapshot, self._read, self._asked = rest, False, 0
            return
        if self._read and not self._asked:
            self._asked = status.idle_check + 1
        status.idle_check = max(status.idle_check, self._asked)
        status.done = bool(self._asked) and all(part.idle_check >= self._asked for part in parts)


_SUMS = ("queued", "in_flight", "stored", "denied", "failed", "dropped", "anchors", "links_held", "links_lost")


def _sum_up(status: JobStatus, parts: list[PartitionStatus]) -> None:
    for name in _SUMS:
        setattr(status, name, sum(getattr(part, name) for part in parts))


def _idle_snapshot(parts: list[PartitionStatus], generation: int) -> IdleSnapshot | None:
    if not all(part.idle and part.generation == generation for part in parts):
        return None
    return tuple(sorted((part.partition, part.epoch, part.generation, part.activity) for part in parts))
