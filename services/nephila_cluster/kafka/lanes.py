"""Lanes: most topics have few partitions, however many the system has.

Broker and members pay for each record that is appended, fetched and committed, and in a system with many partitions and
few pages most messages are alone in their records. Messages of partition p travel in lane p mod the number of lanes, in
their order, and each says its partition where the lane has another number. A member that keeps state of partitions owns
all partitions of its lanes: a split keeps both halves in their lane. The number is that of the topic, so all members
agree, and a system that was created before keeps its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nephila.kernel.topics import Topic


class Lanes:
    """The lanes of the topics of one system. Pure."""

    def __init__(self) -> None:
        self._counts: Mapping[str, int] = {}
        self.partitions = 0
        """Partitions of the system when the topics were looked at."""

    def set(self, counts: Mapping[str, int], partitions: int) -> None:
        """How many partitions the topics have, in a system with so many partitions."""
        self._counts = counts
        self.partitions = partitions

    def count(self, topic: Topic) -> int:
        """The number of lanes; 0: the topic has none, or was not looked at yet."""
        return self._counts.get(topic.name, 0) if topic.laned else 0

    def lane(self, topic: Topic, partition: int) -> int:
        """The partition of the topic for messages of a partition of the system."""
        count = self.count(topic)
        return partition % count if count else partition

    def of(self, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        """Partition → its lane."""
        return {partition: self.lane(topic, partition) for partition in partitions}

    def within(self, topic: Topic, lanes: Iterable[int]) -> frozenset[int]:
        """The partitions of these lanes. A lane beyond the partitions of the system is that of a partition to come.
        O(partitions)."""
        count = self.count(topic)
        if not count:
            return frozenset(lanes)
        return frozenset(p for lane in lanes for p in range(lane, max(self.partitions, lane + 1), count))
