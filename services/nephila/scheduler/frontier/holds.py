"""Holds: jobs that take nothing for a time, because a quota is used up or none of their windows is open. Pure."""

from __future__ import annotations

import math

from nephila.scheduler.frontier.pending_commit import PendingCommit
from nephila.scheduler.frontier.readiness import Readiness
from nephila.scheduler.frontier.turn_time import TurnTime
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.jobs.jobs import Jobs
from nephila.scheduler.tenants.quotas import Quotas


class Holds:
    """Compares the jobs of one frontier with their quotas and windows."""

    def __init__(
        self, jobs: Jobs, quotas: Quotas, pending: PendingCommit, readiness: Readiness, time: TurnTime
    ) -> None:
        self._jobs = jobs
        self._quotas = quotas
        self._pending = pending
        self._readiness = readiness
        self._time = time
        self._next_window = math.inf
        """UTC instant at which the windows of a job open or close next."""

    def count_quotas(self, job: Job, size_bytes: int, browser_s: float) -> None:
        """Count a fetch of a page in the quotas of its job, and its browser time; log the totals."""
        logged = self._pending.of(self._pending.partitions[0]).uses
        uses = self._quotas.count(job.uid, size_bytes, browser_s, self._time.utc_now)
        if browser_s:
            uses.append(self._quotas.count_browser(job.uid, browser_s))
        for use in uses:
            if not any(entry is use for entry in logged):
                logged.append(use)
        if not job.holds.text(Hold.QUOTA) and self._quotas.used_up(job.uid, self._time.utc_now) is not None:
            self.apply_quotas()

    def put(self, job: Job) -> None:
        """A job is new or has changed."""
        if self._quotas.put(job.uid, job.compiled.document):
            self._quotas.renew(job.uid, self._time.utc_now)
        job.note_quotas(self._quotas.rooms(job.uid))
        self._apply_windows(job)

    def apply_quotas(self) -> None:
        """Hold the jobs of which a quota is used up, and release the others. O(jobs with quotas)."""
        self._quotas.checked()
        changed = False
        for uid in self._quotas.jobs():
            job = self._jobs[uid]
            self._quotas.renew(uid, self._time.utc_now)
            used_up = self._quotas.used_up(uid, self._time.utc_now)
            text = used_up.text if used_up is not None else ""
            if used_up is not None:
                self._quotas.check_at(used_up.until)
            changed |= self._set_hold(job, Hold.QUOTA, text)
        if changed:
            self._readiness.reschedule_ready()

    def apply_windows(self) -> None:
        """Hold the jobs of which no window is open, and release the others. O(jobs)."""
        self._next_window = math.inf
        changed = False
        for job in self._jobs.values():
            changed |= self._apply_windows(job)
        if changed:
            self._readiness.reschedule_ready()

    def _apply_windows(self, job: Job) -> bool:
        """Hold or release a job by its windows; returns whether its hold changed."""
        if job.compiled.windows is None:
            return self._set_hold(job, Hold.WINDOW, "")
        state = job.compiled.windows.state(self._time.utc_now)
        self._next_window = min(self._next_window, state.until)
        return self._set_hold(job, Hold.WINDOW, "" if state.is_open else job.compiled.windows.words(state.until))

    def _set_hold(self, job: Job, kind: Hold, text: str) -> bool:
        if text == job.holds.text(kind):
            return False
        job.set_hold(kind, text)
        self._readiness.resume_hosts(job)
        return True

    @property
    def next_check(self) -> float:
        """UTC instant at which a hold of a job may begin or end; infinity for none."""
        return min(self._quotas.next_check, self._next_window)

    def apply(self) -> None:
        """Compare the jobs with their quotas and windows where it is time."""
        if self._quotas.next_check <= self._time.utc_now:
            self.apply_quotas()
        if self._next_window <= self._time.utc_now:
            self.apply_windows()

    def next_opening(self) -> float | None:
        """Monotonic instant at which the first job that waits for its window may fetch; None for none. O(jobs)."""
        waiting = (
            job.compiled.windows.opens_at(self._time.utc_now)
            for job in self._jobs.values()
            if job.compiled.windows is not None
            and job.holds.text(Hold.WINDOW)
            and job.queue.length
            and not job.spec.paused
        )
        opening = min(waiting, default=math.inf)
        return opening - self._time.utc_offset if opening < math.inf else None
