"""One scheduler's part in the coordination of all jobs: it reports its partitions, and coordinates some of the jobs.

Pure: messages in, messages out. The caller reads both topics from their beginning, hands over all messages in order,
and publishes what `messages_to_send` returns. An unchanged message is repeated only as a heartbeat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, PartitionStatus, QuotaUse
from nephila.scheduler.cluster.jobs.coordinator import Coordinator, IdleSnapshot
from nephila.scheduler.cluster.jobs.job_view import JobView
from nephila.scheduler.cluster.jobs.page_quota import PageQuota
from nephila.scheduler.cluster.jobs.quota_uses import quota_uses

REPEAT_S = 30.0
"""An unchanged status is published this often, so that readers know that a coordinator is alive."""


class OwnedPartition(Protocol):
    """A partition of this scheduler."""

    number: int
    epoch: int

    def state_version(self, uid: str) -> tuple[int, int]:
        """Generation and activity of a job: an idle job stays idle while both are the same."""

    def status(self, uid: str) -> PartitionStatus | None:
        """State of a job in the partition, without the fields of `PageQuota`; None when the job is unknown here."""

    def ready(self, uid: str) -> int:
        """Hosts from which the job could fetch now."""

    @property
    def committed(self) -> bool:
        """Whether all changes are in the log: a successor would find the same state."""

    def set_quota(self, uid: str, pages: int, spent: bool) -> None:
        """Pages of the budget that may be used in all, and whether the whole budget is spent."""


def coordinating_partition(uid: str, layout: Layout) -> int:
    """The partition whose owner coordinates a job."""
    return layout.of(hashlib.md5(uid.encode(), usedforsecurity=False).digest())


class JobProtocol:
    """Reads and writes the messages of all jobs. O(jobs × partitions) per full round."""

    def __init__(self, member: str, layout: Callable[[], Layout], jobs: Mapping[str, CrawlJob]) -> None:
        """`layout`: the present one. `jobs`: the latest desired states, deleted jobs included; the caller changes the
        mapping."""
        self.views: dict[str, JobView] = {}
        self._member = member
        self._layout = layout
        self._jobs = jobs
        self._coordinators: dict[str, Coordinator] = {}
        self._quotas: dict[tuple[str, int], PageQuota] = {}
        self._progress: dict[str, JobProgress] = {}
        """Id → last message published under it."""
        self._sent: dict[str, JobStatus] = {}
        self.jobs_with_quotas: set[str] = set()
        """Jobs that a partition has reported quotas of."""
        self._idle_reports: dict[tuple[str, int], tuple[PartitionStatus, int, int, tuple[int, int]]] = {}
        """(job, partition) → last idle report, with the epoch, accepted messages and state version at that time."""
        self._settled: dict[str, tuple[int, CrawlJob]] = {}
        """Job → accepted messages and desired state when its coordinator had nothing to publish."""

    # ---- messages read

    def on_status(self, status: JobStatus) -> None:
        """The next message of `job-status`."""
        self._of(status.uid).take_status(status)

    def on_progress(self, progress: JobProgress) -> None:
        """The next message of `progress`."""
        view = self._of(progress.job)
        for part in progress.parts:
            view.take_part(part)
            if part.uses:
                self.jobs_with_quotas.add(progress.job)

    def on_ends_reached(self, uid: str, rest: IdleSnapshot) -> None:
        """See `Coordinator.on_ends_reached`."""
        if uid in self._coordinators:
            self._coordinators[uid].on_ends_reached(rest)

    def pending_end_check(self) -> dict[str, IdleSnapshot]:
        """Jobs for which the ends of the topics must be reached."""
        found = {uid: one.pending_end_check for uid, one in self._coordinators.items()}
        return {uid: rest for uid, rest in found.items() if rest is not None}

    def quota_uses(self, mine: Mapping[int, Iterable[QuotaUse]]) -> dict[int, dict[str, QuotaUse]]:
        """See `quota_uses.quota_uses`. O(jobs with quotas × partitions)."""
        return quota_uses([self.views[uid] for uid in self.jobs_with_quotas], mine)

    def _of(self, uid: str) -> JobView:
        view = self.views.get(uid)
        if view is None:
            view = self.views[uid] = JobView(uid)
        return view

    # ---- messages to publish

    def messages_to_send(
        self, owned: Iterable[OwnedPartition], now: float, changed: Iterable[str] | None = None
    ) -> list[JobStatus | JobProgress]:
        """What to publish, in this order. With `changed`, only these jobs, and only what another member waits for.
        `now`: UTC."""
        mine = {one.number: one for one in owned}
        said: list[JobStatus | JobProgress] = []
        for key in [key for key in self._quotas if key[1] not in mine or self._jobs[key[0]].deleted]:
            del self._quotas[key]
            self._idle_reports.pop(key, None)
        all = changed is None
        for uid in list(self._jobs) if changed is None else changed:
            job = self._jobs.get(uid)
            if job is None:
                continue
            said += self._report(self._of(uid), () if job.deleted else mine.values(), all)
            if coordinating_partition(uid, self._layout()) in mine:
                said += self._coordinate(job, now, all)
            else:
                self._coordinators.pop(uid, None)
        return said

    def _report(self, view: JobView, owned: Iterable[OwnedPartition], all: bool) -> list[JobProgress]:
        parts = []
        for one in owned:
            rests = self._idle_reports.get((view.uid, one.number))
            if rests is not None and rests[1:] == (one.epoch, view.accepted, one.state_version(view.uid)):
                parts.append(rests[0])
                continue
            part = one.status(view.uid)
            if part is None:
                continue
            quota = self._quota(view.uid, one)
            part.partition, part.epoch, part.idle_check = one.number, one.epoch, view.status.idle_check
            part.idle = part.idle and one.committed
            if all:
                quota.measure_rate(part.used)
            quota.fill_request(part, view, ready=one.ready(view.uid), committed=one.committed)
            one.set_quota(view.uid, quota.usable_pages(view, part.split_pages), view.status.spent)
            parts.append(part)
            if part.idle:
                self._idle_reports[view.uid, one.number] = (part, one.epoch, view.accepted, one.state_version(view.uid))
        progress = JobProgress(f"{view.uid}@{self._member}", view.uid, parts)
        before = self._progress.get(progress.id)
        if progress == (before or JobProgress(progress.id, view.uid)) or not (all or _urgent(progress, before, view)):
            return []
        self._progress[progress.id] = progress
        return [progress]

    def _quota(self, uid: str, one: OwnedPartition) -> PageQuota:
        known = self._quotas.get((uid, one.number))
        if known is None or known.epoch != one.epoch:
            known = self._quotas[uid, one.number] = PageQuota(one.number, one.epoch)
        return known

    def _coordinate(self, job: CrawlJob, now: float, all: bool) -> list[JobStatus]:
        view = self._of(job.uid)
        coordinator = self._coordinators.get(job.uid)
        if coordinator is None:
            coordinator = self._coordinators[job.uid] = Coordinator(view, lambda: self._layout().count)
        said = self._sent.get(job.uid)
        if said is not None and said.version > view.status.version:
            return []  # the last one is still in flight
        before = view.status
        alive = before.deleted or now - before.at < REPEAT_S
        if alive and self._settled.get(job.uid) == (view.accepted, job):
            return []
        status = coordinator.next(job)
        quiet = _decision_fields(status) == _decision_fields(before)
        if all or (status.granted != before.granted and coordinator.is_quota_needed(before.granted)):
            quiet = quiet and status.granted == before.granted and _count_fields(status) == _count_fields(before)
        if quiet and alive:
            if all and coordinator.pending_end_check is None:
                self._settled[job.uid] = (view.accepted, job)
            return []
        status.at = now
        self._sent[job.uid] = status
        return [status]


def _urgent(progress: JobProgress, before: JobProgress | None, view: JobView) -> bool:
    """Whether the coordinator, or a partition, waits for this report."""
    if before is None or len(before.parts) != len(progress.parts):
        return True
    return any(
        _awaited_fields(part, view) != _awaited_fields(was, view)
        for part, was in zip(progress.parts, before.parts, strict=True)
    )


def _awaited_fields(part: PartitionStatus, view: JobView) -> tuple[object, ...]:
    needed_now = part.needed_now > view.granted(part.partition)
    return (
        part.partition,
        part.epoch,
        part.generation,
        part.start_generation,
        part.idle,
        part.idle_check,
        part.returned,
        needed_now,
    )


def _decision_fields(status: JobStatus) -> tuple[object, ...]:
    """Fields that others act upon."""
    holds = (status.quota, status.window)
    flags = (status.done, status.spent, status.paused, status.deleted, status.exhausted, *holds)
    return (status.generation, status.start_generation, status.idle_check, flags)


def _count_fields(status: JobStatus) -> tuple[int, ...]:
    ended = (status.stored, status.denied, status.failed, status.dropped)
    return (status.queued, status.in_flight, status.anchors, *ended)
