"""How a job stands over all partitions of a program: the sums that are told on `job-status`.

A partition that has nothing of a job says nothing of it. Reading costs one look at each partition that has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nephila.kernel.messages import CrawlJob, Outcome

if TYPE_CHECKING:
    from nephila.scheduler.frontier import Partition
    from nephila.scheduler.job import Job
    from nephila.scheduler.shards import Shards


class Standing:
    """One job over some partitions, as the reporter asks for it."""

    def __init__(self, spec: CrawlJob, parts: list[Job]) -> None:
        self.uid = spec.uid
        self.spec = spec
        self.ended: Counter[Outcome] = Counter()
        for part in parts:
            self.ended.update(part.ended)
        self.queued = sum(part.queued for part in parts)
        self.waiting = sum(part.waiting for part in parts)
        self.seen = range(sum(len(part.seen) for part in parts))

    @property
    def budget_spent(self) -> bool:
        """Whether max_pages pages are stored."""
        pages = self.spec.scope.max_pages if self.spec.scope is not None else 0
        return bool(pages) and self.ended[Outcome.STORED] >= pages


class Standings:
    """What all shards of a program say together."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    @property
    def jobs(self) -> dict[str, Standing]:
        """Every job that is told and not deleted. O(jobs + jobs of each partition)."""
        parts: dict[str, list[Job]] = {uid: [] for uid, spec in self._shards.jobs.items() if not spec.deleted}
        for job in self._shards.jobs_here():
            if job.uid in parts:
                parts[job.uid].append(job)
        return {uid: Standing(self._shards.jobs[uid], found) for uid, found in parts.items()}

    @property
    def partitions(self) -> list[Partition]:
        """Those of all shards."""
        return [shard.frontier.partitions[0] for shard in self._shards.shards.values()]

    def anchors(self, uid: str) -> Iterable[str]:
        """Places that a job's scope is anchored at, in any partition here."""
        parts = (shard.frontier.jobs.get(uid) for shard in self._shards.shards.values())
        return set().union(*(part.scope.anchors for part in parts if part is not None))
