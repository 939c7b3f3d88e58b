"""Jobs that are paused until the schedulers have read their seeds.

After the seeds the job is published once more: a scheduler that reports that generation as done has read every seed.
A restart leaves such a job paused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from nephila.kernel.messages import CrawlJob, JobStatus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError

from nephila_control.backend import next_generation

GONE_S = 180.0
"""A broker that has not answered for so long is given up by a request that waits for the schedulers."""
LOOK_S = 5.0
"""Time between two looks whether the broker answers."""
RELEASE_S = 20.0
"""Longest wait of one request for the schedulers to read all seeds."""


class HeldJobs:
    """Runs one task for each held job."""

    def __init__(
        self,
        clock: Clock,
        jobs: Mapping[str, CrawlJob],
        status_of: Callable[[str], JobStatus],
        put: Callable[[CrawlJob], Awaitable[None]],
        broker_problems: Callable[[], Awaitable[list[str]]],
    ) -> None:
        """`jobs` returns the newest desired states. `put` publishes one. `broker_problems` says in one line each why
        the broker does not answer."""
        self._clock = clock
        self._jobs = jobs
        self._status_of = status_of
        self._put = put
        self._broker_problems = broker_problems
        self._changed = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def waiting(self) -> list[str]:
        """Jobs whose seeds are not read yet."""
        return sorted(self._tasks)

    def note(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def resume(self, job: CrawlJob) -> bool:
        """Continues a job once its seeds are read. Returns False if that takes longer than RELEASE_S; the job continues
        later then."""
        if job.uid not in self._tasks:
            job = next_generation(job)
            await self._put(job)
            task = asyncio.ensure_future(self._resume_when_read(job.uid, job.generation))
            self._tasks[job.uid] = task
            task.add_done_callback(lambda done: self._tasks.pop(job.uid, None))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._tasks[job.uid]), RELEASE_S)
            return True
        return False

    async def _resume_when_read(self, uid: str, generation: int) -> None:
        while True:
            job, changed = self._jobs[uid], self._changed
            if job.generation != generation:
                return
            status = self._status_of(uid)
            if status.generation >= generation and status.done:
                await self._put(next_generation(job, paused=False))
                return
            await changed.wait()

    async def finish(self) -> None:
        """Returns when no job is held. Raises `NotReadyError` if the broker is gone: the jobs stay paused."""
        answered = self._clock.monotonic()
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=LOOK_S)
            if not self._tasks or not (problems := await self._broker_problems()):
                answered = self._clock.monotonic()
            elif self._clock.monotonic() - answered > GONE_S:
                raise NotReadyError(
                    f"{'; '.join(problems)}, for {GONE_S:g} s: {', '.join(self.waiting)} stays paused until the seeds "
                    "are read; when it answers again, nephila jobs resume"
                )

    def close(self) -> None:
        """Leaves held jobs paused."""
        for task in list(self._tasks.values()):
            task.cancel()
