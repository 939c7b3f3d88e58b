"""Messages of jobs that nobody has told yet: jobs and what belongs to them are different topics and have no order.

They wait for STRANGER_S and are dropped then. What belongs to partitions that were lost comes again where they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from nephila.kernel.bus.base import Delivery
from nephila.kernel.clock import Clock

log = logging.getLogger(__name__)

STRANGER_S = 10.0
"""How long a message of a job that nobody has told may wait for it."""


class Strangers:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, list[tuple[Delivery, Callable[[Delivery], None]]]] = {}

    def wait(self, uid: str, delivery: Delivery, handler: Callable[[Delivery], None]) -> None:
        """Hand the delivery to `handler` once more when its job is told."""
        waiting = self._waiting.setdefault(uid, [])
        waiting.append((delivery, handler))
        if len(waiting) == 1:
            self._clock.call_at(self._clock.monotonic() + STRANGER_S, lambda: self._give_up(uid))

    def told(self, uid: str) -> None:
        """The job is known now."""
        for delivery, handler in self._waiting.pop(uid, ()):
            handler(delivery)

    def lost(self, partitions: frozenset[int]) -> None:
        """These are another's."""
        for uid, waiting in list(self._waiting.items()):
            self._waiting[uid] = [one for one in waiting if one[0].partition not in partitions]

    def _give_up(self, uid: str) -> None:
        waiting = self._waiting.pop(uid, ())
        if waiting:
            log.warning("%d messages of job %r are dropped: nobody has told it", len(waiting), uid)
        for delivery, _ in waiting:
            delivery.ack()
