"""A subscription that counts the messages in handlers per lane, for rebalances: a lane moves as a whole.

A message of a leased topic counts as processed when it is delivered: its lease brings it back if this member dies.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from nephila.kernel.bus.contract import DeadHandler, Handler, Receipt
from nephila.kernel.bus.subscription import Deliverer, Subscription
from nephila.kernel.topics import Topic


class Routed(NamedTuple):
    """A message and its partition, while it waits for credit in a lane."""

    partition: int
    message: Any


class KafkaSubscription(Subscription):
    """A subscription of a consumer group. `on_ended`: called when a message has been processed."""

    __slots__ = ("_on_ended", "held_bytes", "in_handlers", "paused")

    def __init__(
        self,
        bus: Deliverer,
        topic: Topic,
        group: str,
        handler: Handler,
        credit: int,
        on_dead: DeadHandler | None,
        on_ended: Callable[[], None],
    ) -> None:
        super().__init__(bus, topic, group, handler, credit, on_dead)
        self.in_handlers: Counter[int] = Counter()
        """Messages in handlers, by lane."""
        self.held_bytes = 0
        """Bytes of records that were taken and not processed."""
        self.paused = False
        """Its partitions are not read at present: too much waits."""
        self._on_ended = on_ended

    def _begin(self, lane: int, routed: Routed, receipt: Receipt, attempts: int = 1) -> None:
        self.in_handlers[lane] += 1
        ended = Receipt()
        ended.add_done_callback(lambda: self._ended(lane, receipt))
        if self.topic.leased:
            receipt.resolve_one()
        super()._begin(routed.partition, routed.message, ended, attempts)

    def force_deliver(self, lanes: frozenset[int]) -> None:
        """Deliver the waiting messages of these lanes without regard to credit."""
        forced = [item for item in self.waiting if item[0] in lanes]
        self.waiting = deque(item for item in self.waiting if item[0] not in lanes)
        for item in forced:
            self.credit -= 1
            self._begin(*item)

    def _ended(self, lane: int, outer: Receipt) -> None:
        self.in_handlers[lane] -= 1
        if not self.topic.leased:
            outer.resolve_one()
        self._on_ended()
