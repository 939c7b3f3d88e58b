"""Lanes: topics whose readers keep no state of a partition have few partitions, however many the system has.

Broker and members pay for each record that is appended, fetched and committed, and in a system with many partitions and
few pages most messages are alone in their records. Messages of partition p travel in lane p mod the number of lanes:
their order stays, and readers do not depend on it. The number is that of the topic, so all members agree, and a system
that was created before keeps its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nephila.kernel.topics import Topic


class Lanes:
    """The lanes of the topics of one system. Pure."""

    def __init__(self) -> None:
        self._counts: Mapping[str, int] = {}

    def set(self, partitions: Mapping[str, int]) -> None:
        """How many partitions the topics have."""
        self._counts = partitions

    def lane(self, topic: Topic, partition: int) -> int:
        """The partition of the topic for messages of a partition of the system."""
        count = self._counts.get(topic.name, 0) if topic.laned else 0
        return partition % count if count else partition

    def of(self, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        """Partition → its lane."""
        return {partition: self.lane(topic, partition) for partition in partitions}
