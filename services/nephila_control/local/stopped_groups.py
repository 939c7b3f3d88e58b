"""The frontier of a stopped crawl by groups for the control API: all its partitions in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from nephila.kernel.layout import layout_of
from nephila.kernel.messages import CrawlJob, JobStatus
from nephila.programs.groups.job_status import counts_of, job_status
from nephila.scheduler.group.partition_logs import PARTITIONS
from nephila.scheduler.group.scheduler import GroupScheduler

from nephila_control.local.group_questions import GroupAnswers


class StoppedGroups:
    """`FrontierOfGroups` of a scheduler that has all partitions and is held."""

    def __init__(self, scheduler: GroupScheduler) -> None:
        self.layout = layout_of(PARTITIONS)
        self.errors: Counter[str] = Counter()
        self.in_flight = 0
        self.wire_bytes = 0
        self._scheduler = scheduler
        self._answers = GroupAnswers(scheduler, scheduler.clock)

    def spec(self, uid: str) -> CrawlJob | None:
        return self.jobs().get(uid)

    def jobs(self) -> Mapping[str, CrawlJob]:
        return {uid: job for uid, job in self._scheduler.jobs().items() if not job.deleted}

    def status(self, job: CrawlJob) -> JobStatus:
        return job_status(job.uid, [self._scheduler.job_report(job.uid)], self._scheduler.max_pages(job.uid))

    def counts(self) -> dict[str, tuple[int, ...]]:
        return {job.uid: counts_of(self.status(job)) for job in self.jobs().values()}

    def hosts_waiting(self) -> int:
        return sum(frontier.store.waiting() for frontier in self._scheduler.frontiers)

    def hold(self, held: bool) -> None:
        """Nothing is fetched anyway."""

    def take_refused_seeds(self) -> list[tuple[str, str]]:
        refused = list(self._scheduler.counts.refused_seeds)
        self._scheduler.counts.refused_seeds.clear()
        return refused

    async def durable(self) -> None:
        await self._scheduler.durable()

    async def ask(self, partitions: Sequence[int] | None, question: bytes) -> list[bytes]:
        return [await self._answers.answer(question)]
