"""Deliveries of one group on one topic: credit, order, attempts, dead letters; shared by all buses.

Invariant: at most `credit` messages are unacked, the others wait here in order. A message ends by an ack or as a dead
letter, in no other way. The bus decides where messages come from, and what an ack means to others.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol

from nephila.kernel.bus.contract import DeadHandler, Delivery, Handler, Receipt
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import TemporaryError
from nephila.kernel.topics import Topic

log = logging.getLogger(__name__)


class Deliverer(Protocol):
    """The bus of a subscription."""

    clock: Clock
    max_attempts: int
    unacked: int
    dead_letters: Counter[tuple[str, str]]
    """(topic, reason) → dead letters published by this program."""
    on_quiet: Callable[[], None] | None

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt: ...

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt: ...


class Subscription:
    """One group on one topic."""

    __slots__ = ("bus", "credit", "credits", "draining", "group", "handler", "on_dead", "topic", "waiting")

    def __init__(
        self, bus: Deliverer, topic: Topic, group: str, handler: Handler, credit: int, on_dead: DeadHandler | None
    ) -> None:
        self.bus = bus
        self.topic = topic
        self.group = group
        self.handler = handler
        self.credit = credit
        self.credits = credit
        """The limit of unacked messages; `credit` is the part that is left, below 0 after the limit was lowered."""
        self.on_dead = on_dead
        self.draining = False
        self.waiting: deque[tuple[int, Any, Receipt]] = deque()

    def offer(self, partition: int, message: Any, receipt: Receipt) -> None:
        """Deliver now, or append to the waiting messages."""
        if self.credit <= 0 or self.waiting:
            self.waiting.append((partition, message, receipt))
            return
        self.credit -= 1
        self._begin(partition, message, receipt)

    def deliver(self, partition: int, message: Any, receipt: Receipt, attempts: int = 1) -> None:
        """Call the handler; the caller has taken the credit."""
        delivery = Delivery(message, partition, None, attempts, self, receipt)
        try:
            self.handler(delivery)
        except Exception as error:
            self.failed(delivery, message, receipt, error)

    def failed(self, delivery: Delivery, message: Any, receipt: Receipt, error: Exception) -> None:
        """The handler has raised: deliver once more, or end the message as a dead letter."""
        attempts = delivery.attempts
        if isinstance(error, TemporaryError) and attempts < self.bus.max_attempts:
            self._later(delivery.partition, message, receipt, attempts, error.delay_s)
        else:
            self._dead_letter(message, error, attempts, delivery)

    _begin = deliver
    """The first delivery of a message."""

    def dead_letter(self, partition: int, message: Any, receipt: Receipt, error: BaseException, attempts: int) -> None:
        """End a message as a dead letter without delivering it."""
        self.credit -= 1
        delivery = Delivery(message, partition, None, attempts, self, receipt)
        self._dead_letter(message, error, attempts, delivery)

    def _later(self, partition: int, message: Any, receipt: Receipt, attempts: int, delay_s: float) -> None:
        clock = self.bus.clock
        clock.call_at(clock.monotonic() + delay_s, lambda: self.deliver(partition, message, receipt, attempts + 1))

    def _dead_letter(self, message: Any, error: BaseException, attempts: int, delivery: Delivery) -> None:
        text = ascii(str(error))[1:-1][:500]
        log.error("%s: dead letter on %s: %s: %s", self.group, self.topic.name, type(error).__name__, text)
        receipts = [self.bus.dead_letter(self.topic, self.group, delivery.partition, message, error, attempts)]
        if self.on_dead is not None:
            receipts.extend(self.on_dead(message, error))
        delivery.ack_after(receipts)

    def set_credits(self, credits: int) -> None:
        self.credit += credits - self.credits
        self.credits = credits
        if self.waiting:
            self.drain()

    def drain(self) -> None:
        """Deliver waiting messages while there is credit. A nested call returns at once; otherwise the stack would
        grow with every message of a handler that acks at once."""
        if self.draining:
            return
        self.draining = True
        try:
            while self.credit > 0 and self.waiting:
                self.credit -= 1
                self._begin(*self.waiting.popleft())
        finally:
            self.draining = False

    def drop(self, partitions: frozenset[int]) -> None:
        """Forget waiting messages of partitions that moved to another member."""
        remaining = [item for item in self.waiting if item[0] not in partitions]
        self.bus.unacked -= len(self.waiting) - len(remaining)
        self.waiting = deque(remaining)
