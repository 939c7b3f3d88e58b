"""What one scheduler hears and says of all jobs: it reports on its partitions and coordinates those jobs that are its.

Pure: messages in, messages out. Whoever runs it reads both topics whole, hands everything over in their order, and
publishes what `say` returns; nothing is said twice as long as nothing has changed, but for a sign of life.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, PartitionStatus
from nephila.native import partition_of
from nephila.scheduler.cluster.jobs.coordinator import Coordinator, Rest
from nephila.scheduler.cluster.jobs.job_view import Told
from nephila.scheduler.cluster.jobs.page_quota import Allowance

REPEAT_S = 30.0
"""A status that has not changed is told again so often: whoever reads it knows that somebody is there."""


class Owned(Protocol):
    """A partition of this scheduler's."""

    number: int
    epoch: int

    def stamp(self, uid: str) -> tuple[int, int]:
        """Generation and activity of a job: what rested is at rest for as long as they are the same."""

    def status(self, uid: str) -> PartitionStatus | None:
        """How a job stands here by now, but for what `Allowance` says; None when it is not known here."""

    def ready(self, uid: str) -> int:
        """Hosts that could be fetched from for it now."""

    @property
    def safe(self) -> bool:
        """Whether a successor would find everything as it is now: all changes are in the log."""

    def allow(self, uid: str, places: int, spent: bool) -> None:
        """Places of the page budget that may be used in all, and whether all of them together are spent."""


def home(uid: str, partitions: int) -> int:
    """The partition whose owner coordinates a job."""
    return partition_of(hashlib.md5(uid.encode(), usedforsecurity=False).digest(), partitions)


class Desk:
    """See the module."""

    def __init__(self, member: str, partitions: int, jobs: Mapping[str, CrawlJob]) -> None:
        """`jobs`: as they were told last, deleted ones too; whoever has them changes them."""
        self.told: dict[str, Told] = {}
        self._member = member
        self._partitions = partitions
        self._jobs = jobs
        self._coordinators: dict[str, Coordinator] = {}
        self._allowances: dict[tuple[str, int], Allowance] = {}
        self._progress: dict[str, JobProgress] = {}
        """Id → what was said under it last."""
        self._said: dict[str, JobStatus] = {}
        self._resting: dict[tuple[str, int], tuple[PartitionStatus, int, int, tuple[int, int]]] = {}
        """(job, partition) → what was said when it was at rest; then epoch, messages heard and stamp at that time."""
        self._looked: dict[str, tuple[int, CrawlJob]] = {}
        """Messages heard of a job, and its desired state, when its coordinator had nothing to say."""

    # ---- what is heard

    def on_status(self, status: JobStatus) -> None:
        """The next on `job-status`."""
        self._of(status.uid).take_status(status)

    def on_progress(self, progress: JobProgress) -> None:
        """The next on `progress`."""
        told = self._of(progress.job)
        for part in progress.parts:
            told.take_part(part)

    def ends_reached(self, uid: str, rest: Rest) -> None:
        """See `Coordinator.ends_reached`."""
        if uid in self._coordinators:
            self._coordinators[uid].ends_reached(rest)

    def wants_ends(self) -> dict[str, Rest]:
        """Jobs for which the ends of the logs have to be known and reached."""
        found = {uid: one.wants_ends for uid, one in self._coordinators.items()}
        return {uid: rest for uid, rest in found.items() if rest is not None}

    def _of(self, uid: str) -> Told:
        told = self.told.get(uid)
        if told is None:
            told = self.told[uid] = Told(uid)
        return told

    # ---- what is said

    def say(
        self, owned: Iterable[Owned], now: float, stirred: Iterable[str] | None = None
    ) -> list[JobStatus | JobProgress]:
        """What to publish, in this order; of the jobs `stirred`, where these are named, what somebody waits for. `now`:
        UTC."""
        mine = {one.number: one for one in owned}
        said: list[JobStatus | JobProgress] = []
        for key in [key for key in self._allowances if key[1] not in mine or self._jobs[key[0]].deleted]:
            del self._allowances[key]
            self._resting.pop(key, None)
        all = stirred is None
        for uid in list(self._jobs) if stirred is None else stirred:
            job = self._jobs.get(uid)
            if job is None:
                continue
            said += self._report(self._of(uid), () if job.deleted else mine.values(), all)
            if home(uid, self._partitions) in mine:
                said += self._coordinate(job, now, all)
            else:
                self._coordinators.pop(uid, None)
        return said

    def _report(self, told: Told, owned: Iterable[Owned], all: bool) -> list[JobProgress]:
        parts = []
        for one in owned:
            rests = self._resting.get((told.uid, one.number))
            if rests is not None and rests[1:] == (one.epoch, told.heard, one.stamp(told.uid)):
                parts.append(rests[0])
                continue
            part = one.status(told.uid)
            if part is None:
                continue
            allowance = self._allowance(told.uid, one)
            part.partition, part.epoch, part.look = one.number, one.epoch, told.status.look
            part.resting = part.resting and one.safe
            if all:
                allowance.look_ahead(part.used)
            allowance.write(part, told, ready=one.ready(told.uid), safe=one.safe)
            one.allow(told.uid, allowance.read(told), told.status.spent)
            parts.append(part)
            if part.resting:
                self._resting[told.uid, one.number] = (part, one.epoch, told.heard, one.stamp(told.uid))
        progress = JobProgress(f"{told.uid}@{self._member}", told.uid, parts)
        before = self._progress.get(progress.id)
        if progress == (before or JobProgress(progress.id, told.uid)) or not (all or _urgent(progress, before, told)):
            return []
        self._progress[progress.id] = progress
        return [progress]

    def _allowance(self, uid: str, one: Owned) -> Allowance:
        known = self._allowances.get((uid, one.number))
        if known is None or known.epoch != one.epoch:
            known = self._allowances[uid, one.number] = Allowance(one.number, one.epoch)
        return known

    def _coordinate(self, job: CrawlJob, now: float, all: bool) -> list[JobStatus]:
        told = self._of(job.uid)
        coordinator = self._coordinators.get(job.uid)
        if coordinator is None:
            coordinator = self._coordinators[job.uid] = Coordinator(told, self._partitions)
        said = self._said.get(job.uid)
        if said is not None and said.version > told.status.version:
            return []  # it is on its way, and comes first or not at all
        before = told.status
        alive = before.deleted or now - before.at < REPEAT_S
        if alive and self._looked.get(job.uid) == (told.heard, job):
            return []
        status = coordinator.next(job)
        quiet = _decided(status) == _decided(before)
        if all or (status.given != before.given and coordinator.somebody_lacks(before.given)):
            quiet = quiet and status.given == before.given and _counted(status) == _counted(before)
        if quiet and alive:
            if all and coordinator.wants_ends is None:
                self._looked[job.uid] = (told.heard, job)
            return []
        status.at = now
        self._said[job.uid] = status
        return [status]


def _urgent(progress: JobProgress, before: JobProgress | None, told: Told) -> bool:
    """Whether the coordinator waits for this, or somebody for it."""
    if before is None or len(before.parts) != len(progress.parts):
        return True
    return any(
        _waited_for(part, told) != _waited_for(was, told)
        for part, was in zip(progress.parts, before.parts, strict=True)
    )


def _waited_for(part: PartitionStatus, told: Told) -> tuple[object, ...]:
    lacking = part.lacking > told.given(part.partition)
    return (part.partition, part.epoch, part.generation, part.born, part.resting, part.look, part.returned, lacking)


def _decided(status: JobStatus) -> tuple[object, ...]:
    """What others act upon."""
    flags = (status.done, status.spent, status.paused, status.deleted, status.scarce)
    return (status.generation, status.born, status.look, flags)


def _counted(status: JobStatus) -> tuple[int, ...]:
    ended = (status.stored, status.denied, status.failed, status.dropped)
    return (status.queued, status.on_way, status.anchors, *ended)
