"""The bus of a group: what belongs to other groups or to storage goes to the main process over the pipe.

Rows, dead letters and the use of rules always go there. So do seeds of other partitions, even of partitions of this
group: the main process writes them down before it confirms them (`seed_relay.py`). Two partitions that wait for each
other's log would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import Any

from nephila.kernel.bus.contract import Receipt, all_of
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import DEAD, OUTCOMES, OUTLINKS, PAGES, RECORDS, REQUESTS, RULE_STATS, SEEDS, Topic
from nephila.programs.groups.worker.suspect_gate import SuspectGate

TO_MAIN = frozenset({RECORDS, SEEDS, DEAD, RULE_STATS})

Send = Callable[[Topic, int, Any], Receipt]


class GroupBus(LocalBus):
    """`send` publishes at the main process; `own`: the partitions of this group."""

    def __init__(self, clock: Clock, own: Container[int], send: Send, on_quiet: Callable[[], None]) -> None:
        super().__init__(clock, on_quiet=on_quiet)
        self._held_back = 0
        self._own = own
        self._send = send
        self.gate: SuspectGate | None = None
        """Where requests wait while suspects are fetched alone; None without suspects."""

    @property
    def rows_to_come(self) -> bool:
        """Rows wait for the receipts of their links, or pages for the credit of the parser."""
        return bool(self._held_back) or any(reader.waiting for reader in self._groups.get(PAGES, ()))

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        if self.gate is None:
            return self._publish(topic, partition, message)
        if topic is REQUESTS:
            self.gate.request(partition, message)
            return Receipt(0)
        receipt = self._publish(topic, partition, message)
        if topic is OUTCOMES:
            self.gate.outcome(message)
        elif topic is RECORDS:
            self.gate.record(message)
        if not self.gate.needed:
            self.gate = None
        return receipt

    def _publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        if topic is OUTLINKS and not self.follows_pages and not message.source:
            return Receipt(0)
        if topic in TO_MAIN or (topic is OUTLINKS and partition not in self._own):
            return self._send(topic, partition, message)
        return super().publish(topic, partition, message)

    def publish_after(self, receipts: Iterable[Receipt], topic: Topic, partition: int, message: Any) -> Receipt:
        """Publish once these receipts have resolved."""
        gate = all_of(receipts)
        if gate.done:
            return self.publish(topic, partition, message)
        published = Receipt()
        self._held_back += 1
        gate.add_done_callback(partial(self._release, topic, partition, message, published))
        return published

    def _release(self, topic: Topic, partition: int, message: Any, published: Receipt) -> None:
        self._held_back -= 1
        self.publish(topic, partition, message).add_done_callback(published.resolve_one)

    def take(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Publish a message of the main process here."""
        return super().publish(topic, partition, message)
