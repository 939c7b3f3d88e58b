"""Which URLs of a job are open: queued, delayed or outstanding. Pure.

One object per request. Cost: the queue of each host that is asked about is read once, O(its queued URLs).
"""

from __future__ import annotations

from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.jobs.job import Job


class OpenUrls:
    """The open URLs of one job, as of the first question about each host."""

    def __init__(self, dispatcher: Dispatcher, job: Job) -> None:
        self._frontier = dispatcher.frontier
        self._job = job
        self._delayed = {packed[:16] for _, _, uid, packed in dispatcher.frontier.delayed.items() if uid == job.uid}
        self._queued: dict[int, set[bytes]] = {}

    def add(self, host_key: str, key: bytes) -> None:
        """The caller has queued this URL, after a question about its host."""
        self._queued[self._frontier.store.host(host_key)].add(key)

    def contains(self, host_key: str, key: bytes) -> bool:
        frontier, job = self._frontier, self._job
        number = frontier.store.host(host_key)
        queued = self._queued.get(number)
        if queued is None:
            queued = self._queued[number] = {packed[:16] for _, packed in frontier.store.items(number, job.number)}
        if key in queued or key in self._delayed or job.due_table.is_checked_out(key):
            return True
        return (job.uid, key) in frontier.in_flight.urls
