"""Buffers messages of jobs that are not known yet: the topics of jobs and of URLs are not ordered with each other.

A message waits UNKNOWN_JOB_WAIT_S and is then dropped. Time in which the topic of jobs cannot be read does not count:
the job may be in it. Messages of a lost partition are delivered again to its next owner.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from nephila.kernel.bus.contract import Delivery
from nephila.kernel.runtime.clock import Clock

log = logging.getLogger(__name__)

UNKNOWN_JOB_WAIT_S = 10.0
"""How long a message of an unknown job is kept."""


class UnknownJobBuffer:
    """Deliveries by job, the oldest first. One timer per job."""

    def __init__(self, clock: Clock, answering_since: Callable[[], float]) -> None:
        """`answering_since`: see `LogReader.answering_since`."""
        self._clock = clock
        self._answering_since = answering_since
        self._waiting: dict[str, list[tuple[float, Delivery, Callable[[Delivery], None]]]] = {}
        """Job → (deadline, delivery, handler)."""

    def wait(self, uid: str, delivery: Delivery, handler: Callable[[Delivery], None]) -> None:
        """Keep the delivery; `handler` gets it when the job becomes known."""
        until = self._clock.monotonic() + UNKNOWN_JOB_WAIT_S
        if uid not in self._waiting:
            self._clock.call_at(until, lambda: self._give_up(uid))
        self._waiting.setdefault(uid, []).append((until, delivery, handler))

    def on_job_known(self, uid: str) -> None:
        """Deliver the messages of a job."""
        if uid in self._waiting:
            waiting, self._waiting[uid] = self._waiting[uid], []
            for _, delivery, handler in waiting:
                handler(delivery)

    def drop(self, partitions: frozenset[int]) -> None:
        """Forget the messages of partitions that moved to other members."""
        for uid, waiting in self._waiting.items():
            self._waiting[uid] = [entry for entry in waiting if entry[1].partition not in partitions]

    def _give_up(self, uid: str) -> None:
        """Drop the messages that have waited long enough."""
        now, readable_for = self._clock.monotonic(), self._answering_since() + UNKNOWN_JOB_WAIT_S
        if now < readable_for:
            self._clock.call_at(readable_for, lambda: self._give_up(uid))
            return
        waiting = self._waiting.pop(uid)
        left = [entry for entry in waiting if entry[0] > now]
        if left:
            self._waiting[uid] = left
            self._clock.call_at(left[0][0], lambda: self._give_up(uid))
        if len(left) < len(waiting):
            log.warning("%d messages are dropped: job %r is not known", len(waiting) - len(left), uid)
        for _, delivery, _ in waiting[: len(waiting) - len(left)]:
            delivery.ack()
