"""Leases that end with the program: their URLs go back to the head of their host's queue, each try counted. Pure.

A fetch of the program before ended at an unknown time before this start, so its host waits for one delay from now.
"""

from __future__ import annotations

from collections.abc import Callable

from nephila.kernel.messages import LeasedUrl, Outcome
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.frontier.in_flight import Key
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import pack, unpack
from nephila.scheduler.jobs.strategies import HEAD


class InterruptedLeases:
    def __init__(
        self, dispatcher: Dispatcher, restored: Restored, take: Callable[[Key, str], tuple[int, bytes] | None]
    ) -> None:
        self._frontier = dispatcher.frontier
        self._found = restored
        self._take = take

    def snapshot(self, leased: LeasedUrl) -> None:
        if leased.job:
            self._found.attempts[leased.job, leased.url_key] = leased.attempt
        else:
            self._found.robots_pending[leased.host] = None

    def commit(self, leased: LeasedUrl) -> None:
        if not leased.job:
            self._found.robots_pending[leased.host] = None
            return
        key = (leased.job, leased.url_key)
        taken = self._take(key, leased.host)
        if taken is not None:
            self._found.outstanding[key] = taken
            self._found.attempts[key] = leased.attempt

    def finish(self, now: float) -> TurnOutput:
        frontier, restored = self._frontier, self._found
        groups: dict[tuple[int, str], list[tuple[bytes, bytes]]] = {}
        for (uid, url_key), (number, packed) in restored.outstanding.items():
            groups.setdefault((number, uid), []).append((url_key, packed))
        for (number, uid), urls in groups.items():
            _requeue_host(frontier, frontier.jobs[uid], number, urls, restored, now)
        return TurnOutput()


def _requeue_host(
    frontier: Frontier, job: Job, number: int, urls: list[tuple[bytes, bytes]], restored: Restored, now: float
) -> None:
    """Put the URLs that were outstanding at the front of their host's queue, before its other head entries."""
    store = frontier.store
    heads = []
    while (job.number, HEAD) in store.head(number):
        packed = store.pop(number, job.number)
        assert packed is not None
        heads.append(packed)
    host = frontier.hosts.get(number)
    for url_key, packed in urls:
        attempt = restored.attempts.get((job.uid, url_key))
        if attempt is not None:
            packed = pack(unpack(packed)._replace(attempts=min(attempt, frontier.config.tries - 1)))
            state = job.due_table.get(url_key)
            if state is not None and state.outcome is Outcome.STORED:
                job.budget.reserve(url_key)
            else:
                job.budget.priority_refetch.add(url_key)
            host.pace.after_fetch(now, frontier.hosts.delay_s(host, job))
            host.changed = True
        store.push(number, job.number, HEAD, packed)
    for packed in heads:
        store.push(number, job.number, HEAD, packed)
