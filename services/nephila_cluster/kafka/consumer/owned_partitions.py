"""Which partitions of the system a member owns by its lanes, and which of them its service serves.

A lane moves between members as a whole. The service gets callbacks for partitions: for all of a lane at its assignment,
and for the new ones after a growth. Invariant: no message of a partition is delivered before the service serves it. The
record waits in its lane, with all behind it, and its offset is not committed. A message in another lane than that of
its partition was written before its writer knew of more lanes, and is published again; of a leased topic its lease
repeats it. A service without callbacks keeps no state of partitions and gets every message at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from nephila.kernel.topics import Topic

from nephila_cluster.kafka.group.rebalance import Deliveries, RebalanceListener, finish
from nephila_cluster.kafka.lanes import Lanes


class Route(Enum):
    """What happens to a message in a lane."""

    DELIVER = "deliver"
    WAIT = "wait"
    """Its partition is not served here yet, or this member does not know yet that there is such a partition."""
    FORWARD = "forward"
    """It belongs to another lane; see the module."""


class OwnedPartitions:
    """The partitions of one group at this member. `listener`: the service, if it keeps state of partitions."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.listener: RebalanceListener | None = None
        self._topic: Topic | None = None
        """A topic of the group, if it has lanes and a listener; all topics of a group have the same number."""
        self._assigned: set[int] = set()
        """Partitions for which the service was called."""
        self._served: set[int] = set()

    def read(self, topics: Iterable[Topic]) -> None:
        """The group reads these topics."""
        laned = [topic for topic in topics if topic.laned]
        self._topic = laned[0] if laned and self.listener is not None else None

    def of(self, lanes: Iterable[int]) -> frozenset[int]:
        """The partitions of these lanes; the lanes themselves where the group has no state. O(partitions)."""
        return self._lanes.within(self._topic, lanes) if self._topic is not None else frozenset(lanes)

    def route(self, lane: int, partition: int) -> Route:
        """What to do with a message of the partition in a record of the lane."""
        if self._topic is None:
            return Route.DELIVER
        if self._lanes.lane(self._topic, partition) != lane:
            return Route.FORWARD if partition < self._lanes.partitions else Route.WAIT
        return Route.DELIVER if partition in self._served else Route.WAIT

    async def assign(self, lanes: Collection[int]) -> None:
        """These lanes were assigned: call the service for their partitions, which it serves afterwards."""
        if self.listener is not None:
            await self._assign(self.of(lanes))

    async def grow(self, lanes: Collection[int]) -> None:
        """The system may have more partitions: call the service for the new ones in these lanes, which were assigned
        before."""
        if self._topic is not None and (new := self.of(lanes) - self._assigned):
            await self._assign(new)

    async def _assign(self, partitions: frozenset[int]) -> None:
        assert self.listener is not None
        self._assigned |= partitions
        await self.listener.on_assigned(partitions)
        self._served |= partitions & self._assigned

    async def finish(self, deliveries: Deliveries, lanes: frozenset[int], limit_s: float) -> bool:
        """The lanes are revoked: let the service end its work on their partitions; False when it takes longer."""
        return await finish(self.listener, deliveries, lanes, self.of(lanes), limit_s)

    def end(self, lanes: Collection[int]) -> frozenset[int]:
        """The lanes are not those of this member any more; returns their partitions."""
        partitions = self.of(lanes)
        self._assigned -= partitions
        self._served -= partitions
        return partitions

    def lose(self, lanes: Collection[int]) -> None:
        """Other members own these lanes already."""
        partitions = self.end(lanes)
        if self.listener is not None:
            self.listener.on_lost(partitions)
