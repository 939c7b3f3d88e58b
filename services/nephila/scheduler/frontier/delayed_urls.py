"""Delayed URLs: they wait outside the queues for an instant, and then go to the head of their host's queue. Pure."""

from __future__ import annotations

import heapq
import itertools

from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.jobs import Jobs


class DelayedUrls:
    """A heap. Operations are O(log URLs). URLs of a deleted job are removed at their instant."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._heap: list[tuple[float, int, int, int, bytes]] = []
        """(when, order, host, job number, packed URL). By number, because a uid may be deleted and used again."""
        self._order = itertools.count()

    def add(self, host: int, job: Job, packed: bytes, when: float) -> None:
        """Delay a URL until `when`, monotonic."""
        job.queue.delayed += 1
        heapq.heappush(self._heap, (when, next(self._order), host, job.number, packed))

    def first(self) -> float | None:
        """When the first URL is due; None without any."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> tuple[int, Job, bytes] | None:
        """Remove and return (host, job, packed URL) of a URL that is due; None for none."""
        while self._heap and self._heap[0][0] <= now:
            _, _, host, number, packed = heapq.heappop(self._heap)
            job = self._jobs.numbered.get(number)
            if job is not None:
                job.queue.delayed -= 1
                return host, job, packed
        return None

    def items(self) -> list[tuple[float, int, str, bytes]]:
        """(when, host, job, packed URL) of all."""
        jobs = self._jobs.numbered
        return [(when, host, jobs[job].uid, packed) for when, _, host, job, packed in self._heap if job in jobs]

    def __len__(self) -> int:
        """URLs of all jobs."""
        return len(self._heap)

    def part(self, job: int, start: int, limit: int) -> list[tuple[int, bytes]]:
        """(host, packed URL) of a job, by its number, among `limit` places of the heap from `start` on. O(limit)."""
        return [(host, packed) for _, _, host, number, packed in self._heap[start : start + limit] if number == job]

    def hosts(self) -> set[int]:
        """Hosts of delayed URLs, which hold the number of their host."""
        return {host for _, _, host, _, _ in self._heap}
