"""Connects a scheduler's address lock to the topic `addresses`.

Messages are batched for GATHER_S: a scheduler sends fewer than twenty messages a second however many addresses change
hands, and only heartbeats while it is alone. When a partition moves to another scheduler, its fetches in flight keep
their slots here until the new owner has announced them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import ADDRESSES

from nephila_cluster.scheduler.addresses.address_claims import MEMBER_TIMEOUT_S
from nephila_cluster.scheduler.addresses.address_lock import HEARTBEAT_S
from nephila_cluster.scheduler.addresses.shared_pace import SharedAddressQueue

GATHER_S = 0.05
CREDITS = 1000


class AddressLockTopic:
    """Publishes and reads the messages of one scheduler's address lock."""

    def __init__(self, bus: Bus, clock: Clock, address_queue: SharedAddressQueue, changed: Callable[[], None]) -> None:
        """`changed`: called when partitions may start, or hosts may have a slot."""
        self._bus = bus
        self._clock = clock
        self._queue = address_queue
        self._lock = address_queue.lock
        self._changed = changed
        self._timer = OneTimer(clock, self._publish)
        self._left: dict[int, tuple[int, float, list[str]]] = {}
        """Lost partition → its epoch here, when it was lost, addresses of its fetches in flight."""
        self._closed = False

    def start(self) -> None:
        """Subscribe; the topic is read completely before any partition is assigned."""
        self._bus.subscribe(ADDRESSES, "scheduler", self._on_message, credits=CREDITS)

    def close(self) -> None:
        """Publish nothing more."""
        self._closed = True
        self._timer.cancel()

    # ---- partitions

    def own(self, partition: int, epoch: int) -> None:
        """A partition is owned from now on; `may_fetch` is True when all members know it."""
        self._lock.own(partition, epoch)
        self._publish_at(self._clock.monotonic())

    def may_fetch(self, partition: int, epoch: int) -> bool:
        """Whether hosts of the partition may be fetched from."""
        return self._lock.is_announced(partition, epoch)

    def on_partition_lost(self, partition: int, epoch: int, in_flight: Iterable[str]) -> None:
        """Another member owns the partition; these addresses have a fetch of it in flight."""
        self._lock.disown(partition)
        addresses = list(in_flight)
        if partition in self._left:
            addresses += self._left[partition][2]
        if addresses:
            self._left[partition] = (epoch, self._clock.monotonic(), addresses)

    # ---- messages

    def soon(self) -> None:
        """There may be something to publish."""
        if self._lock.has_pending:
            self._publish_at(self._clock.monotonic() + GATHER_S)

    def _on_message(self, delivery: Delivery) -> None:
        now = self._clock.monotonic()
        look = self._lock.take(delivery.message, now)
        delivery.ack()
        self._look(look, now)
        self.soon()

    def _look(self, addresses: Iterable[str], now: float) -> None:
        for partition, (epoch, since, left) in list(self._left.items()):
            if self._lock.is_superseded(partition, epoch) or now > since + MEMBER_TIMEOUT_S:
                del self._left[partition]
                for address in left:
                    self._queue.end(address, now)
        for address in addresses:
            self._queue.look(address, now)
        self._changed()

    def _publish_at(self, when: float) -> None:
        due = self._timer.due
        if not self._closed and (due is None or when < due):
            self._timer.move(when)

    def _publish(self) -> None:
        now = self._clock.monotonic()
        self._look(self._lock.drop_silent(now), now)
        for message in self._lock.messages_to_send(now):
            self._bus.publish(ADDRESSES, 0, message)
        self._publish_at(now + (GATHER_S if self._lock.has_pending else HEARTBEAT_S))
