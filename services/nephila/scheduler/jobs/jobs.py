"""The jobs of a frontier, by uid and by number. Pure, apart from the files of the seen sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nephila.kernel.messages import CrawlJob
from nephila.native import HostStore
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.seen import Seen


class Jobs(dict[str, Job]):
    """Jobs by uid. Only `add` and `remove` change the mapping."""

    def __init__(
        self, store: HostStore, new_seen: Callable[[int], Seen], page_quota: int | None, partitions: int
    ) -> None:
        """`page_quota` is the share of a new job in its page budget, see `Job`; `partitions`: those of the system."""
        super().__init__()
        self.numbered: dict[int, Job] = {}
        self.changed: set[str] = set()
        """Jobs with an event since `take_changed`: see `Job.note_change`."""
        self.with_domains: dict[str, Job] = {}
        """Jobs with budgets of domains."""
        self.next_number = 0
        self.deleted: dict[str, int] = {}
        """Uid of a deleted job → the highest number of a fetch of it. Its rows remain, so a new job counts on from
        there."""
        self._store = store
        self._new_seen = new_seen
        self._page_quota = page_quota
        self._partitions = partitions

    def restore_counts(self, next_number: int, deleted: Mapping[str, int]) -> None:
        """Set the next job number and the fetch numbers of deleted jobs, from a snapshot or from the table of rows."""
        self.next_number = max(self.next_number, next_number)
        self.deleted.update(deleted)

    def add(self, spec: CrawlJob, number: int = -1) -> Job:
        """A new job; -1: with the next number."""
        if number < 0:
            number = self.next_number
        self.next_number = max(self.next_number, number + 1)
        first_fetch_no = self.deleted.pop(spec.uid, 0) + 1
        job = Job(
            spec,
            number,
            self._store,
            self._new_seen(number),
            first_fetch_no,
            self._page_quota,
            self.changed,
            self._partitions,
        )
        self[spec.uid] = self.numbered[number] = job
        self.note_domains(job)
        return job

    def note_domains(self, job: Job) -> None:
        """A job is new, or its document has changed."""
        self.with_domains.pop(job.uid, None)
        if job.domains is not None:
            self.with_domains[job.uid] = job

    def take_changed(self) -> list[str]:
        """Jobs with an event since the last call."""
        taken = list(self.changed)
        self.changed.clear()
        return taken

    def remove(self, job: Job) -> None:
        """A job is deleted, with its queues."""
        del self[job.uid], self.numbered[job.number]
        self.with_domains.pop(job.uid, None)
        self.deleted[job.uid] = job.fetch_numbers.last
        self._store.drop_job(job.number)
