"""One scheduler's part in the coordination of all jobs: it reports its partitions, and coordinates some of the jobs.

Pure: messages in, messages out. The caller reads both topics from their beginning, hands over all messages in order,
and publishes what `messages_to_send` returns. An unchanged message is repeated only as a heartbeat.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec
from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, PartitionStatus, QuotaUse
from nephila.scheduler.tenants.quota_uses import quota_uses

from nephila_cluster.scheduler.jobs.coordinator import Coordinator, IdleSnapshot
from nephila_cluster.scheduler.jobs.job_view import JobView
from nephila_cluster.scheduler.jobs.page_quota import PageQuota

REPEAT_S = 30.0
"""An unchanged status is published this often, so that readers know that a coordinator is alive."""
SHARED_BYTES_S = 1e6
"""What the counters of all running jobs may take of the topic `progress`, which each scheduler reads: with more jobs
and partitions counters are published less often. Reports that another member waits for are not counted."""
PART_BYTES = 25
"""Bytes of one partition in a report."""


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

    def take_changed(self) -> Iterable[str]:
        """Jobs whose state version has changed since the last call."""

    @property
    def committed(self) -> bool:
        """Whether all changes are in the log: a successor would find the same state."""

    def set_quota(self, uid: str, pages: int, spent: bool) -> None:
        """Pages of the budget that may be used in all, and whether the whole budget is spent."""


def coordinating_partition(uid: str, layout: Layout) -> int:
    """The partition whose owner coordinates a job."""
    return layout.of(hashlib.md5(uid.encode(), usedforsecurity=False).digest())


class JobProtocol:
    """Reads and writes the messages of all jobs.

    A job is active until all its partitions here report it idle and nothing about it is left to publish; a message, a
    change of the desired state or of a partition makes it active again. A round is O(active jobs × own partitions).
    """

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
        self._active: set[str] = set(jobs)
        self._repeats: list[tuple[float, str]] = []
        """Heap of (UTC instant, job): when the status of an inactive job is published again."""
        self._mine: dict[int, int] = {}
        """Partition → epoch in the last round."""
        self._progress_at: dict[str, float] = {}
        """Job → when its counters were published."""

    # ---- messages read

    def on_job(self, uid: str) -> None:
        """The desired state of a job has changed."""
        self._active.add(uid)

    def on_status(self, status: JobStatus) -> None:
        """The next message of `job-status`."""
        view = self._of(status.uid)
        before = view.accepted
        view.take_status(status)
        if view.accepted != before:
            self._active.add(status.uid)
        elif status.uid not in self._active:
            self._rest(status.uid)

    def on_progress(self, progress: JobProgress) -> bool:
        """The next message of `progress`; whether it has more than new counters."""
        view = self._of(progress.job)
        self._active.add(progress.job)
        awaited = False
        for part in progress.parts:
            part_before = view.parts.get(part.partition)
            awaited = awaited or part_before is None or _is_awaited(part, part_before, view)
            view.take_part(part)
            if part.uses:
                self.jobs_with_quotas.add(progress.job)
        return awaited

    def on_ends_reached(self, uid: str, rest: IdleSnapshot) -> None:
        if uid in self._coordinators:
            self._coordinators[uid].on_ends_reached(rest)

    def pending_end_check(self) -> dict[str, IdleSnapshot]:
        """Jobs for which the ends of the topics must be reached."""
        checks = {uid: self._coordinators[uid].pending_end_check for uid in self._active & self._coordinators.keys()}
        return {uid: rest for uid, rest in checks.items() if rest is not None}

    def quota_uses(self, mine: Mapping[int, Iterable[QuotaUse]]) -> dict[int, dict[str, QuotaUse]]:
        """Quota uses of all partitions. O(jobs with quotas × partitions)."""
        views = [self.views[uid] for uid in self.jobs_with_quotas]
        reported = ((number, part.uses) for view in views for number, part in view.parts.items() if number not in mine)
        return quota_uses(reported, mine)

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
        mine = {partition.number: partition for partition in owned}
        for partition in mine.values():
            self._active.update(partition.take_changed())
        self._on_owned({number: partition.epoch for number, partition in mine.items()})
        full = changed is None
        unsent: list[JobStatus | JobProgress] = self._repeat_due(now) if full else []
        for uid in list(self._active) if changed is None else changed:
            job = self._jobs.get(uid)
            if job is None:
                self._active.discard(uid)
                continue
            messages: list[JobStatus | JobProgress] = []
            idle = self._report(self._of(uid), () if job.deleted else mine.values(), now, full, messages)
            if coordinating_partition(uid, self._layout()) in mine:
                idle = self._coordinate(job, now, full, messages) and idle
            else:
                self._coordinators.pop(uid, None)
            if full and idle and not messages:
                self._rest(uid)
            unsent += messages
        return unsent

    def _rest(self, uid: str) -> None:
        """The job is inactive from now on."""
        self._active.discard(uid)
        if uid in self._coordinators:
            heapq.heappush(self._repeats, (self._of(uid).status.at + REPEAT_S, uid))

    def _on_owned(self, mine: dict[int, int]) -> None:
        """Every job is active after a change of the partitions here."""
        if mine != self._mine:
            self._mine = mine
            self._active.update(self._jobs)
            for key in [key for key in self._quotas if key[1] not in mine]:
                del self._quotas[key]
                self._idle_reports.pop(key, None)

    def _repeat_due(self, now: float) -> list[JobStatus | JobProgress]:
        """The statuses of inactive jobs, as signs of life."""
        statuses: list[JobStatus | JobProgress] = []
        while self._repeats and self._repeats[0][0] <= now:
            uid = heapq.heappop(self._repeats)[1]
            job, before = self._jobs.get(uid), self._of(uid).status
            if job is None or uid in self._active or uid not in self._coordinators or before.deleted:
                continue
            if now >= before.at + REPEAT_S:
                status = msgspec.structs.replace(before, version=before.version + 1, at=now)
                self._sent[uid] = status
                statuses.append(status)
        return statuses

    def _counters_due(self, since: float, now: float) -> bool:
        """Whether counters that were published at `since` may be published again."""
        return now < since or now >= since + len(self._active) * self._layout().count * PART_BYTES / SHARED_BYTES_S

    def _report(
        self,
        view: JobView,
        owned: Iterable[OwnedPartition],
        now: float,
        full: bool,
        messages: list[JobStatus | JobProgress],
    ) -> bool:
        """Add the report on a job's partitions; returns whether all are idle and nothing is left to publish."""
        parts = []
        if not owned:
            for number in self._mine:
                self._quotas.pop((view.uid, number), None)
                self._idle_reports.pop((view.uid, number), None)
        for partition in owned:
            rests = self._idle_reports.get((view.uid, partition.number))
            if rests is not None and rests[1:] == (partition.epoch, view.accepted, partition.state_version(view.uid)):
                parts.append(rests[0])
                continue
            part = partition.status(view.uid)
            if part is None:
                continue
            quota = self._quota(view.uid, partition)
            part.partition, part.epoch, part.idle_check = partition.number, partition.epoch, view.status.idle_check
            part.idle = part.idle and partition.committed
            if full:
                quota.measure_rate(part.used)
            quota.fill_request(part, view, ready=partition.ready(view.uid), committed=partition.committed)
            partition.set_quota(view.uid, quota.usable_pages(view, part.split_pages), view.status.spent)
            parts.append(part)
            if part.idle:
                self._idle_reports[view.uid, partition.number] = (
                    part,
                    partition.epoch,
                    view.accepted,
                    partition.state_version(view.uid),
                )
        idle = all(part.idle for part in parts)
        progress = JobProgress(f"{view.uid}@{self._member}", view.uid, parts)
        before = self._progress.get(progress.id)
        if progress == (before or JobProgress(progress.id, view.uid)):
            return idle
        due = full and self._counters_due(self._progress_at.get(view.uid, -math.inf), now)
        if due or _urgent(progress, before, view):
            self._progress_at[view.uid] = now
            self._progress[progress.id] = progress
            messages.append(progress)
        return False

    def _quota(self, uid: str, partition: OwnedPartition) -> PageQuota:
        quota = self._quotas.get((uid, partition.number))
        if quota is None or quota.epoch != partition.epoch:
            quota = self._quotas[uid, partition.number] = PageQuota(partition.number, partition.epoch)
        return quota

    def _coordinate(self, job: CrawlJob, now: float, full: bool, messages: list[JobStatus | JobProgress]) -> bool:
        """Add the status of a job; returns whether nothing changes until something is read."""
        view = self._of(job.uid)
        coordinator = self._coordinators.get(job.uid)
        if coordinator is None:
            coordinator = self._coordinators[job.uid] = Coordinator(view, lambda: self._layout().count)
        sent = self._sent.get(job.uid)
        if sent is not None and sent.version > view.status.version:
            return False  # the last one is still in flight
        before = view.status
        alive = before.deleted or now - before.at < REPEAT_S
        if alive and self._settled.get(job.uid) == (view.accepted, job):
            return True
        status = coordinator.next(job)
        due = full and self._counters_due(before.at, now)
        quiet = _decision_fields(status) == _decision_fields(before)
        if due or (status.granted != before.granted and coordinator.is_quota_needed(before.granted)):
            quiet = quiet and status.granted == before.granted and _count_fields(status) == _count_fields(before)
        if quiet and alive:
            settled = due and coordinator.pending_end_check is None
            if settled:
                self._settled[job.uid] = (view.accepted, job)
            return settled
        status.at = now
        self._sent[job.uid] = status
        messages.append(status)
        return False


def _urgent(progress: JobProgress, before: JobProgress | None, view: JobView) -> bool:
    """Whether the coordinator, or a partition, waits for this report."""
    if before is None or len(before.parts) != len(progress.parts):
        return True
    return any(_is_awaited(part, was, view) for part, was in zip(progress.parts, before.parts, strict=True))


def _is_awaited(part: PartitionStatus, was: PartitionStatus, view: JobView) -> bool:
    """Whether a report has more than new counters. Without tuples: it is asked of every report of all members."""
    if (
        part.partition != was.partition
        or part.epoch != was.epoch
        or part.generation != was.generation
        or part.start_generation != was.start_generation
        or part.idle is not was.idle
        or part.idle_check != was.idle_check
        or part.returned != was.returned
    ):
        return True
    if not part.needed_now and not was.needed_now:
        return False
    granted = view.granted(part.partition)
    return (part.needed_now > granted) is not (was.needed_now > granted)


def _decision_fields(status: JobStatus) -> tuple[object, ...]:
    """Fields that others act upon."""
    holds = (status.quota, status.window)
    flags = (status.done, status.spent, status.paused, status.deleted, status.exhausted, *holds)
    return (status.generation, status.start_generation, status.idle_check, flags)


def _count_fields(status: JobStatus) -> tuple[int, ...]:
    ended = (status.stored, status.denied, status.failed, status.dropped)
    return (status.queued, status.in_flight, status.anchors, *ended)
