"""What the scheduler tells of its jobs, on `job-status`: how each stands, and when there is nothing left to do.

A job is done when nothing of it is queued or on its way, and after that was seen the logs of seeds and links, as far
as they had got by then, have been read to their ends with nothing of the job coming up: a page's links are in the log
before its record, so what an ended page leads to lies below those ends. Invariant: `done` is never told of a generation
that was not seen before the ends were asked for.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

import msgspec

from nephila.kernel.bus.base import Bus
from nephila.kernel.clock import Clock, Timer
from nephila.kernel.messages import JobStatus, Outcome
from nephila.kernel.topics import JOB_STATUS, OUTLINKS, SEEDS
from nephila.scheduler.frontier import Frontier
from nephila.scheduler.job import Job

log = logging.getLogger(__name__)

REPEAT_S = 30.0
"""A status that has not changed is told again so often: whoever reads it knows that somebody is there."""


class Activity(NamedTuple):
    """Whether anything has happened to a job."""

    generation: int
    seen: int
    ended: int


class Reporter:
    """Looks at all jobs each `interval_s`. O(jobs + URLs on their way)."""

    def __init__(self, frontier: Frontier, bus: Bus, clock: Clock, interval_s: float) -> None:
        self._frontier = frontier
        self._bus = bus
        self._clock = clock
        self._interval_s = interval_s
        self._told: dict[str, JobStatus] = {}
        self._done: dict[str, Activity] = {}
        self._timer: Timer | None = None
        self._check: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._timer = self._clock.call_at(self._clock.monotonic() + self._interval_s, self._tick)

    async def close(self) -> None:
        """Tell nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._check is not None:
            self._check.cancel()
            await asyncio.wait([self._check])

    def _tick(self) -> None:
        jobs = self._frontier.jobs
        for job in jobs.values():
            self._tell(self._status(job))
        for uid in [uid for uid in self._told if uid not in jobs]:
            self._tell(JobStatus(uid, self._told[uid].generation, deleted=True))
            del self._told[uid]
            self._done.pop(uid, None)
        resting = [job for job in jobs.values() if self._rests(job) and self._done.get(job.uid) != _activity(job)]
        if resting and self._check is None:
            self._check = asyncio.get_running_loop().create_task(self._look(resting))
        self.start()

    def _status(self, job: Job) -> JobStatus:
        ended = job.ended
        return JobStatus(
            uid=job.uid,
            generation=job.spec.generation,
            queued=job.queued,
            on_way=self._on_way(job),
            stored=ended[Outcome.STORED],
            denied=ended[Outcome.DENIED],
            failed=ended[Outcome.FAILED],
            dropped=ended[Outcome.DROPPED],
            done=self._done.get(job.uid) == _activity(job) and self._rests(job),
            spent=job.budget_spent,
            paused=job.spec.paused,
            anchors=len(job.scope.anchors),
        )

    def _tell(self, status: JobStatus) -> None:
        now = self._clock.now()
        before = self._told.get(status.uid)
        if before is not None and now - before.at < REPEAT_S and msgspec.structs.replace(before, at=0.0) == status:
            return
        status.at = now
        self._told[status.uid] = status
        self._bus.publish(JOB_STATUS, 0, status)

    def _on_way(self, job: Job) -> int:
        partitions = self._frontier.partitions
        return sum(waiting.job == job.uid for one in partitions for waiting in one.outstanding.values())

    def _rests(self, job: Job) -> bool:
        """Nothing on its way, and nothing queued that anybody would take."""
        return (job.waiting == 0 or job.budget_spent) and not self._on_way(job)

    async def _look(self, resting: list[Job]) -> None:
        before = {job.uid: _activity(job) for job in resting}
        try:
            behind = await self._bus.behind("scheduler", (SEEDS, OUTLINKS))
        except Exception as error:  # no answer is an answer for later
            log.debug("how far the logs go is not known: %s", error)
            return
        finally:
            self._check = None
        if behind:
            return
        for job in resting:
            if self._frontier.jobs.get(job.uid) is job and _activity(job) == before[job.uid] and self._rests(job):
                self._done[job.uid] = before[job.uid]
                self._tell(self._status(job))


def _activity(job: Job) -> Activity:
    return Activity(job.spec.generation, len(job.seen), sum(job.ended.values()))
