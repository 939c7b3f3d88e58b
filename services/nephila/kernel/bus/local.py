"""The in-process bus: objects are passed by reference, nothing is serialised, credits bound the unacked deliveries.

A delivery is a direct call while the reader has credit, so a page passes parser and storage while it is in the CPU
cache. Nothing is durable here: after a crash the frontier log has the work that must be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from nephila.kernel.bus.contract import DeadHandler, Delivery, Handler, Receipt
from nephila.kernel.bus.dead_letters import dead_letter_for, no_letters, reason_of
from nephila.kernel.bus.subscription import Subscription
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import DEAD, Topic


class LocalBus:
    """The `Bus` of one program."""

    def __init__(self, clock: Clock, max_attempts: int = 3, on_quiet: Callable[[], None] | None = None) -> None:
        """`on_quiet` is called when the last delivery has been acked: a waiting program need not poll."""
        self.clock = clock
        self.max_attempts = max_attempts
        self.unacked = 0
        self.on_quiet = on_quiet
        self.follows_pages = True
        """The links that the parser finds in pages are wanted."""
        self.dead_letters: Counter[tuple[str, str]] = Counter()
        """(topic, reason) → dead letters published by this program."""
        self._groups: dict[Topic, list[Subscription]] = {}

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        """A group reads a topic once. Groups are served in the order they subscribed."""
        groups = self._groups.setdefault(topic, [])
        if any(other.group == group for other in groups):
            raise ValueError(f"group {group!r} already reads topic {topic.name!r}")
        if credits < 1:
            raise ValueError(f"credits must be at least 1, got {credits}")
        self.dead_letters.update(no_letters(topic))
        groups.append(Subscription(self, topic, group, handler, credits, on_dead))

    def set_credits(self, topic: Topic, group: str, credits: int) -> None:
        next(member for member in self._groups[topic] if member.group == group).set_credits(credits)

    def has_reader(self, topic: Topic) -> bool:
        """Whether any group reads a topic."""
        return topic in self._groups

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """A topic without readers takes the message at once."""
        groups = self._groups.get(topic)
        if not groups:
            return Receipt(0)
        count = len(groups)
        receipt = Receipt(count)
        self.unacked += count
        for reader in groups:
            if reader.credit > 0 and not reader.waiting:
                # As `Subscription.deliver`, without its call: a page has five messages.
                reader.credit -= 1
                delivery = Delivery(message, partition, None, 1, reader, receipt)
                try:
                    reader.handler(delivery)
                except Exception as error:
                    reader.failed(delivery, message, receipt, error)
            else:
                reader.waiting.append((partition, message, receipt))
        return receipt

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        """The dead letter has no bytes."""
        self.dead_letters[topic.name, reason_of(error)] += 1
        return self.publish(DEAD, partition, dead_letter_for(topic, service, partition, message, error, attempts))
