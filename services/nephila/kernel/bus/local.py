"""The in-process bus: objects handed over by reference, nothing serialised, credits bound what is unacked.

Delivery is a direct call when the reader has credit, so a page passes parser and storage while it is warm in the cache.
Nothing here is durable: after a crash the frontier log says what has to be done again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from nephila.kernel.bus.base import DeadHandler, Delivery, Handler, Receipt
from nephila.kernel.clock import Clock
from nephila.kernel.errors import TemporaryError
from nephila.kernel.messages import DeadLetter
from nephila.kernel.topics import DEAD, Topic

log = logging.getLogger(__name__)


class _Subscription:
    """One group's place on one topic: its credit and what waits for it."""

    __slots__ = ("bus", "credit", "draining", "group", "handler", "on_dead", "topic", "waiting")

    def __init__(
        self, bus: LocalBus, topic: Topic, group: str, handler: Handler, credit: int, on_dead: DeadHandler | None
    ) -> None:
        self.bus = bus
        self.topic = topic
        self.group = group
        self.handler = handler
        self.credit = credit
        self.on_dead = on_dead
        self.draining = False
        self.waiting: deque[tuple[int, Any, Receipt]] = deque()

    def offer(self, partition: int, message: Any, receipt: Receipt) -> None:
        """Deliver now, or keep the order behind what already waits."""
        if self.credit <= 0 or self.waiting:
            self.waiting.append((partition, message, receipt))
            return
        self.credit -= 1
        self._deliver(partition, message, receipt, 1)

    def _deliver(self, partition: int, message: Any, receipt: Receipt, attempts: int) -> None:
        def acked() -> None:
            self.credit += 1
            self.bus.unacked -= 1
            receipt.resolve_one()
            if self.waiting:
                self._drain()
            if not self.bus.unacked and self.bus.on_quiet is not None:
                self.bus.on_quiet()

        delivery = Delivery(message, partition, acked, attempts)
        try:
            self.handler(delivery)
        except TemporaryError as error:
            if attempts < self.bus.max_attempts:
                self._later(partition, message, receipt, attempts, error.delay_s)
            else:
                self._bury(message, error, attempts, delivery)
        except Exception as error:
            self._bury(message, error, attempts, delivery)

    def _later(self, partition: int, message: Any, receipt: Receipt, attempts: int, delay_s: float) -> None:
        clock = self.bus.clock
        clock.call_at(clock.monotonic() + delay_s, lambda: self._deliver(partition, message, receipt, attempts + 1))

    def _bury(self, message: Any, error: BaseException, attempts: int, delivery: Delivery) -> None:
        # What an error quotes may come from a hostile page: no control characters, no lone surrogates.
        text = f"{type(error).__name__}: {ascii(str(error))[1:-1]}"[:500]
        log.error("%s: dead letter on %s: %s", self.group, self.topic.name, text)
        letter = DeadLetter(
            topic=self.topic.name,
            service=self.group,
            error=text,
            attempts=attempts,
            job=getattr(message, "job", ""),
            url_key=getattr(message, "url_key", b""),
            url=getattr(message, "url", ""),
        )
        receipts = [self.bus.publish(DEAD, delivery.partition, letter)]
        if self.on_dead is not None:
            receipts.extend(self.on_dead(message, error))
        delivery.ack_after(receipts)

    def _drain(self) -> None:
        """Deliver what waits while there is credit. An ack from within only gives its credit: else the stack would grow
        with every message of a handler that acks at once."""
        if self.draining:
            return
        self.draining = True
        try:
            while self.credit > 0 and self.waiting:
                self.credit -= 1
                partition, message, receipt = self.waiting.popleft()
                self._deliver(partition, message, receipt, 1)
        finally:
            self.draining = False


class LocalBus:
    """See `nephila.kernel.bus.base.Bus`."""

    def __init__(self, clock: Clock, max_attempts: int = 3) -> None:
        self.clock = clock
        self.max_attempts = max_attempts
        self.unacked = 0
        self.on_quiet: Callable[[], None] | None = None
        """Called when the last delivery has been acked: whoever waits for quiet need not look again and again."""
        self._groups: dict[Topic, list[_Subscription]] = {}

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        """See `Bus.subscribe`; a group reads a topic once. Groups are served in the order they subscribed."""
        groups = self._groups.setdefault(topic, [])
        if any(other.group == group for other in groups):
            raise ValueError(f"group {group!r} already reads topic {topic.name!r}")
        if credits < 1:
            raise ValueError(f"credits must be at least 1, got {credits}")
        groups.append(_Subscription(self, topic, group, handler, credits, on_dead))

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """See `Bus.publish`; a topic nobody reads takes the message at once."""
        groups = self._groups.get(topic)
        if not groups:
            return Receipt(0)
        receipt = Receipt(len(groups))
        self.unacked += len(groups)
        for subscription in groups:
            subscription.offer(partition, message, receipt)
        return receipt
