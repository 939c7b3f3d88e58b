"""Connects the job protocol of a scheduler to the topics `job-status` and `progress`.

Changes of counters are published every `interval_s`, changes that another member waits for within SOON_S. Whether the
topics of seeds and links were read to their ends is read from the broker, for all partitions of the system.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from nephila.kernel.bus.contract import Delivery, EndOffsets, LogBus
from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, Outcome, PartitionStatus
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import JOB_STATUS, OUTLINKS, PROGRESS, SEEDS
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.partition.owner import PartitionOwner

from nephila_cluster.scheduler.jobs.coordinator import IdleSnapshot
from nephila_cluster.scheduler.jobs.job_protocol import JobProtocol

log = logging.getLogger(__name__)

INTERVAL_S = 1.0
"""Default of `status_interval_s`."""
SOON_S = 0.05
"""How long an urgent report may wait for others."""


class JobPartitions(Protocol):
    """Jobs and partitions of a scheduler."""

    jobs: dict[str, CrawlJob]
    owners: dict[int, PartitionOwner]


class StatusReporter:
    """Publishes and reads reports. A round is O(active jobs × partitions of this member + URLs in flight)."""

    def __init__(self, owners: JobPartitions, bus: LogBus, clock: Clock, interval_s: float) -> None:
        self._owners = owners
        self._bus = bus
        self._clock = clock
        self._interval_s = interval_s or INTERVAL_S
        self.protocol = JobProtocol(bus.member, lambda: bus.layout, owners.jobs)
        self._timer: Timer | None = None
        self._soon_timer: Timer | None = None
        self._changed: set[str] = set()
        """Jobs with news."""
        self._end_check: asyncio.Task[None] | None = None
        self._checked_at = -math.inf
        self._wanted: dict[str, IdleSnapshot] = {}
        """Jobs for which the ends of the topics are being checked."""
        self._ends: EndOffsets = None

    def start(self) -> None:
        """Subscribe; both topics are read completely before any partition is assigned."""
        self._bus.subscribe(JOB_STATUS, "scheduler", self._on_status, credits=1000)
        self._bus.subscribe(PROGRESS, "scheduler", self._on_progress, credits=1000)
        self._tick()

    async def close(self) -> None:
        """Publish nothing more."""
        for timer in (self._timer, self._soon_timer):
            if timer is not None:
                timer.cancel()
        if self._end_check is not None:
            self._end_check.cancel()
            await asyncio.wait([self._end_check])

    # ---- in

    def on_job(self, uid: str) -> None:
        """The desired state of a job has changed."""
        self.protocol.on_job(uid)

    def _on_status(self, delivery: Delivery) -> None:
        status: JobStatus = delivery.message
        self.protocol.on_status(status)
        delivery.ack()
        self.soon(status.uid)

    def _on_progress(self, delivery: Delivery) -> None:
        progress: JobProgress = delivery.message
        awaited = self.protocol.on_progress(progress)
        delivery.ack()
        if awaited:
            self.soon(progress.job)

    # ---- out

    def soon(self, *uids: str) -> None:
        """Another member may wait for the report of these jobs."""
        self._changed.update(uids)
        if self._soon_timer is None and self._timer is not None:
            self._soon_timer = self._clock.call_at(self._clock.monotonic() + SOON_S, self._publish_soon)

    def _publish_soon(self) -> None:
        self._soon_timer = None
        changed, self._changed = self._changed, set()
        self._publish(changed)

    def _tick(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + self._interval_s, self._tick)
        self._publish(None)

    def share_quotas(self) -> None:
        """Hand to each partition what all others have spent of the quotas, as far as it is known here."""
        if self.protocol.jobs_with_quotas:
            mine = {number: owner.frontier.quotas.report() for number, owner in self._owners.owners.items()}
            for number, uses in self.protocol.quota_uses(mine).items():
                self._owners.owners[number].share_quotas(uses)

    def _publish(self, changed: set[str] | None) -> None:
        self.share_quotas()
        owned = [PartitionJobs(owner, self._owners.jobs) for owner in self._owners.owners.values()]
        for message in self.protocol.messages_to_send(owned, self._clock.now(), changed):
            self._bus.publish(JOB_STATUS if isinstance(message, JobStatus) else PROGRESS, 0, message)
        now = self._clock.monotonic()
        if self._end_check is None and now >= self._checked_at + SOON_S and self.protocol.pending_end_check():
            self._checked_at = now
            self._end_check = asyncio.ensure_future(self._check_ends())

    async def _check_ends(self) -> None:
        """Read where the topics end, or check whether they were read to those ends."""
        ends_to_check = self.protocol.pending_end_check()
        try:
            if not any(ends_to_check.get(uid) == rest for uid, rest in self._wanted.items()):
                self._ends, self._wanted = await self._bus.end_offsets((SEEDS, OUTLINKS)), ends_to_check
            if await self._bus.has_read_to("scheduler", self._ends):
                for uid, rest in self._wanted.items():
                    self.protocol.on_ends_reached(uid, rest)
                self._wanted = {}
        except TemporaryError as error:  # repeated in the next round
            log.debug("the ends of the topics cannot be read: %s", error)
        self._end_check = None
        self.soon(*ends_to_check)


class PartitionJobs:
    """The jobs of one partition now: an `OwnedPartition`."""

    def __init__(self, owner: PartitionOwner, specs: Mapping[str, CrawlJob]) -> None:
        self._owner = owner
        self._specs = specs
        self.number = owner.number
        self.epoch = owner.epoch

    @cached_property
    def _in_flight(self) -> Counter[str]:
        """Job → its URLs in flight."""
        return Counter(waiting.job for waiting in self._owner.frontier.in_flight.urls.values())

    def take_changed(self) -> list[str]:
        return self._owner.frontier.jobs.take_changed()

    @property
    def committed(self) -> bool:
        return self._owner.quiet

    def state_version(self, uid: str) -> tuple[int, int]:
        job = self._owner.frontier.jobs.get(uid)
        return (self._specs[uid].generation, 0) if job is None else (job.spec.generation, _activity(job))

    def status(self, uid: str) -> PartitionStatus | None:
        """A job that has nothing here is idle."""
        job = self._owner.frontier.jobs.get(uid)
        if job is None:
            return PartitionStatus(
                generation=self._specs[uid].generation, idle=True, partitions=self._owner.layout.count
            )
        ended = job.counts.ended
        return PartitionStatus(
            generation=job.spec.generation,
            queued=job.queue.length,
            in_flight=self._in_flight[uid],
            stored=ended[Outcome.STORED],
            denied=ended[Outcome.DENIED],
            failed=ended[Outcome.FAILED],
            dropped=ended[Outcome.DROPPED],
            idle=not self._in_flight[uid] and (job.queue.waiting == 0 or job.is_blocked),
            activity=_activity(job),
            used=job.budget.claimed,
            anchors=len(job.scope.anchors),
            uses=self._owner.frontier.quotas.uses(uid, self._owner.frontier.time.utc_now) if job.holds.rooms else [],
            quota=job.holds.text(Hold.QUOTA),
            window=job.holds.text(Hold.WINDOW),
            links_held=len(job.refused.held),
            links_lost=job.refused.held.lost,
            split_pages=job.counts.split_pages,
            partitions=self._owner.layout.count,
        )

    def ready(self, uid: str) -> int:
        frontier = self._owner.frontier
        job = frontier.jobs.get(uid)
        if job is None or not job.budget.max_pages or job.is_blocked:
            return 0
        return len(job.queue.waiting_hosts) + frontier.readiness.ready.count(job.number)

    def set_quota(self, uid: str, pages: int, spent: bool) -> None:
        job = self._owner.frontier.jobs.get(uid)
        if job is None or (job.budget.quota, job.budget.is_spent_elsewhere) == (pages, spent):
            return
        more = pages > (job.budget.quota or 0) or job.budget.is_spent_elsewhere != spent
        job.budget.set_quota(pages, spent)
        if more and job.budget.max_pages:
            self._owner.resume_job(job)


def _activity(job: Job) -> int:
    return len(job.seen) + len(job.scope.anchors) + job.counts.dispatched + job.counts.forwarded + job.holds.changes
