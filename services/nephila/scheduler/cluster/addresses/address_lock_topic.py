"""The turns of a scheduler at server addresses, to and from the topic `addresses`.

Words are gathered for GATHER_S: however many addresses change hands, a scheduler says less than twenty words a second,
and none while it is alone, but for a sign of life. What is still in flight of a partition that was given away keeps
its room until the partition's next owner has told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.topics import ADDRESSES
from nephila.scheduler.cluster.addresses.address_claims import SILENT_S
from nephila.scheduler.cluster.addresses.address_lock import LIFE_S
from nephila.scheduler.cluster.addresses.shared_pace import Lines

GATHER_S = 0.05
CREDITS = 1000


class TurnDesk:
    """See the module."""

    def __init__(self, bus: Bus, clock: Clock, lines: Lines, changed: Callable[[], None]) -> None:
        """`changed`: called when partitions may begin, or hosts may be called."""
        self._bus = bus
        self._clock = clock
        self._lines = lines
        self._turns = lines.turns
        self._changed = changed
        self._timer: tuple[float, Timer] | None = None
        self._left: dict[int, tuple[int, float, list[str]]] = {}
        """Partition that is another's → its epoch here, when it was given away, addresses of what was in flight."""
        self._closed = False

    def start(self) -> None:
        """Begin; the topic is read whole before any partition comes."""
        self._bus.subscribe(ADDRESSES, "scheduler", self._on_word, credits=CREDITS)

    def close(self) -> None:
        """Say nothing more."""
        self._closed = True
        if self._timer is not None:
            self._timer[1].cancel()

    # ---- partitions

    def own(self, partition: int, epoch: int) -> None:
        """A partition is here from now on; `may_begin` when everybody knows."""
        self._turns.own(partition, epoch)
        self._say_at(self._clock.monotonic())

    def may_begin(self, partition: int, epoch: int) -> bool:
        """Whether its hosts may be fetched from."""
        return self._turns.knows(partition, epoch)

    def give_away(self, partition: int, epoch: int, in_flight: Iterable[str]) -> None:
        """It is another's; these addresses have a fetch of it in flight."""
        self._turns.disown(partition)
        addresses = list(in_flight)
        if partition in self._left:
            addresses += self._left[partition][2]
        if addresses:
            self._left[partition] = (epoch, self._clock.monotonic(), addresses)

    # ---- in and out

    def soon(self) -> None:
        """There may be something to say."""
        if self._turns.stirs:
            self._say_at(self._clock.monotonic() + GATHER_S)

    def _on_word(self, delivery: Delivery) -> None:
        now = self._clock.monotonic()
        look = self._turns.take(delivery.message, now)
        delivery.ack()
        self._look(look, now)
        self.soon()

    def _look(self, addresses: Iterable[str], now: float) -> None:
        for partition, (epoch, since, left) in list(self._left.items()):
            if self._turns.is_past(partition, epoch) or now > since + SILENT_S:
                del self._left[partition]
                for address in left:
                    self._lines.end(address, now)
        for address in addresses:
            self._lines.look(address, now)
        self._changed()

    def _say_at(self, when: float) -> None:
        if self._closed or (self._timer is not None and self._timer[0] <= when):
            return
        if self._timer is not None:
            self._timer[1].cancel()
        self._timer = (when, self._clock.call_at(when, self._say))

    def _say(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        self._look(self._turns.drop_silent(now), now)
        for word in self._turns.say(now):
            self._bus.publish(ADDRESSES, 0, word)
        self._say_at(now + (GATHER_S if self._turns.stirs else LIFE_S))
