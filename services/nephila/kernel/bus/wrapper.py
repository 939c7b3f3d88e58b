"""A bus in front of another one: it passes every call on. A subclass changes those that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from nephila.kernel.bus.contract import Bus, DeadHandler, Handler, Receipt
from nephila.kernel.topics import Topic


class Outlet(Bus, Protocol):
    """A bus that can hold a message back."""

    def publish_after(self, receipts: Iterable[Receipt], topic: Topic, partition: int, message: Any) -> Receipt:
        """As `publish`, once these have resolved; whether it can travel is said at once."""


class BusWrapper:
    def __init__(self, bus: Outlet) -> None:
        self._bus = bus

    @property
    def unacked(self) -> int:
        return self._bus.unacked

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        return self._bus.publish(topic, partition, message)

    def publish_after(self, receipts: Iterable[Receipt], topic: Topic, partition: int, message: Any) -> Receipt:
        return self._bus.publish_after(receipts, topic, partition, message)

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        self._bus.subscribe(topic, group, handler, credits=credits, on_dead=on_dead)

    def set_credits(self, topic: Topic, group: str, credits: int) -> None:
        self._bus.set_credits(topic, group, credits)

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        return self._bus.dead_letter(topic, service, partition, message, error, attempts)
