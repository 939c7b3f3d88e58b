"""What a scheduler tells of its jobs and hears of them from the others: the protocol's messages to and from the topics.

Everything that changes counts only is view each `interval_s`; what somebody waits for within SOON_S. Whether the logs
of seeds and links were read to their ends is asked of the broker, for all partitions: others read them, too.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from nephila.kernel.bus.contract import Bus, Delivery, EndOffsets, LogReader
from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, Outcome, PartitionStatus
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import JOB_STATUS, OUTLINKS, PROGRESS, SEEDS
from nephila.scheduler.cluster.jobs.coordinator import IdleSnapshot
from nephila.scheduler.cluster.jobs.job_protocol import JobProtocol
from nephila.scheduler.cluster.partition import PartitionOwner
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.job_state import Job

log = logging.getLogger(__name__)

INTERVAL_S = 1.0
"""Where the settings do not say it."""
SOON_S = 0.05
"""How long an answer that somebody waits for may wait for others."""


class Logs(Bus, LogReader, Protocol):
    """What is asked of the bus."""


class JobPartitions(Protocol):
    """Whose owners are view of."""

    config: SchedulerConfig
    jobs: dict[str, CrawlJob]
    owners: dict[int, PartitionOwner]


class StatusReporter:
    """See the module. Telling is O(jobs x partitions + URLs on their way)."""

    def __init__(self, owners: JobPartitions, bus: Logs, clock: Clock, interval_s: float) -> None:
        self._owners = owners
        self._bus = bus
        self._clock = clock
        self._interval_s = interval_s or INTERVAL_S
        self.protocol = JobProtocol(bus.member, owners.config.partitions, owners.jobs)
        self._timer: Timer | None = None
        self._soon: Timer | None = None
        self._changed: set[str] = set()
        """Jobs of which something was heard."""
        self._look: asyncio.Task[None] | None = None
        self._looked_at = -math.inf
        self._wanted: dict[str, IdleSnapshot] = {}
        """For whose sake it is looked how far the logs were read."""
        self._ends: EndOffsets = None

    def start(self) -> None:
        """Begin; the topics are read whole before any partition comes."""
        self._bus.subscribe(JOB_STATUS, "scheduler", self._on_status, credits=1000)
        self._bus.subscribe(PROGRESS, "scheduler", self._on_progress, credits=1000)
        self._tick()

    async def close(self) -> None:
        """Tell nothing more."""
        for timer in (self._timer, self._soon):
            if timer is not None:
                timer.cancel()
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])

    # ---- in

    def _on_status(self, delivery: Delivery) -> None:
        status: JobStatus = delivery.message
        self.protocol.on_status(status)
        delivery.ack()
        self.soon(status.uid)

    def _on_progress(self, delivery: Delivery) -> None:
        progress: JobProgress = delivery.message
        self.protocol.on_progress(progress)
        delivery.ack()
        self.soon(progress.job)

    # ---- out

    def soon(self, *uids: str) -> None:
        """Somebody may wait for what there is to say of these jobs."""
        self._changed.update(uids)
        if self._soon is None and self._timer is not None:
            self._soon = self._clock.call_at(self._clock.monotonic() + SOON_S, self._say_soon)

    def _say_soon(self) -> None:
        self._soon = None
        changed, self._changed = self._changed, set()
        self._say(changed)

    def _tick(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + self._interval_s, self._tick)
        self._say(None)

    def _say(self, changed: set[str] | None) -> None:
        owned = [PartitionJobs(owner, self._owners.jobs) for owner in self._owners.owners.values()]
        for message in self.protocol.messages_to_send(owned, self._clock.now(), changed):
            self._bus.publish(JOB_STATUS if isinstance(message, JobStatus) else PROGRESS, 0, message)
        now = self._clock.monotonic()
        if self._look is None and now >= self._looked_at + SOON_S and self.protocol.pending_end_check():
            self._looked_at = now
            self._look = asyncio.ensure_future(self._look_at_ends())

    async def _look_at_ends(self) -> None:
        """Ask where the logs end, or whether they were read to where they ended then."""
        wanted = self.protocol.pending_end_check()
        try:
            if not any(wanted.get(uid) == rest for uid, rest in self._wanted.items()):
                self._ends, self._wanted = await self._bus.end_offsets((SEEDS, OUTLINKS)), wanted
            if await self._bus.has_read_to("scheduler", self._ends):
                for uid, rest in self._wanted.items():
                    self.protocol.on_ends_reached(uid, rest)
                self._wanted = {}
        except TemporaryError as error:  # no answer is an answer for later
            log.debug("how far the logs go is not known: %s", error)
        self._look = None
        self.soon(*wanted)


class PartitionJobs:
    """How jobs stand in one partition by now: see `protocol.OwnedPartition`."""

    def __init__(self, owner: PartitionOwner, specs: Mapping[str, CrawlJob]) -> None:
        self._owner = owner
        self._specs = specs
        self._on_way = Counter(waiting.job for waiting in owner.frontier.partitions[0].outstanding.values())
        self.number = owner.number
        self.epoch = owner.epoch

    @property
    def committed(self) -> bool:
        """See `OwnedPartition`."""
        return self._owner.quiet

    def state_version(self, uid: str) -> tuple[int, int]:
        """See `OwnedPartition`."""
        job = self._owner.frontier.jobs.get(uid)
        return (self._specs[uid].generation, 0) if job is None else (job.spec.generation, _activity(job))

    def status(self, uid: str) -> PartitionStatus | None:
        """See `OwnedPartition`. A job that has nothing here is at rest."""
        job = self._owner.frontier.jobs.get(uid)
        if job is None:
            return PartitionStatus(generation=self._specs[uid].generation, idle=True)
        ended = job.ended
        return PartitionStatus(
            generation=job.spec.generation,
            queued=job.queued,
            in_flight=self._on_way[uid],
            stored=ended[Outcome.STORED],
            denied=ended[Outcome.DENIED],
            failed=ended[Outcome.FAILED],
            dropped=ended[Outcome.DROPPED],
            idle=not self._on_way[uid] and (job.waiting == 0 or job.is_blocked),
            activity=_activity(job),
            used=job.pages_claimed,
            anchors=len(job.scope.anchors),
        )

    def ready(self, uid: str) -> int:
        """See `OwnedPartition`."""
        frontier = self._owner.frontier
        job = frontier.jobs.get(uid)
        if job is None or not job.max_pages or job.is_blocked:
            return 0
        return len(job.waiting_hosts) + frontier.ready.count(job.number)

    def set_quota(self, uid: str, pages: int, spent: bool) -> None:
        """See `OwnedPartition`."""
        job = self._owner.frontier.jobs.get(uid)
        if job is None or (job.page_quota, job.spent_elsewhere) == (pages, spent):
            return
        more = pages > (job.page_quota or 0) or job.spent_elsewhere != spent
        job.page_quota, job.spent_elsewhere = pages, spent
        if more and job.max_pages:
            self._owner.go_on(job)


def _activity(job: Job) -> int:
    return len(job.seen) + len(job.scope.anchors) + job.dispatched
