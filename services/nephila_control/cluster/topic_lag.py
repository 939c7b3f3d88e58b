"""The topics of a system at its broker: what they hold, and how far each group of readers is behind.

Only groups that have committed an offset are behind something: tables (`Topic.key`) are read whole by every program and
have no commits.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nephila.kernel.runtime.errors import NotReadyError
from nephila.kernel.topics import TOPICS, Topic
from nephila_cluster.kafka.admin.positions import Positions, positions
from nephila_cluster.kafka.config import KafkaConfig

from nephila_control import system_types as types

ANSWER_S: Final = 10.0
GROUPS: Final = tuple(sorted({group for topic in TOPICS if not topic.key for group in topic.readers}))


class KafkaTopics:
    """Asks the broker at each call."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config

    async def rows(self) -> list[types.TopicRow]:
        """Returns the topics that exist, in the order of the route. Raises `UserError`."""
        try:
            offsets = await asyncio.wait_for(positions(self._config, GROUPS), ANSWER_S)
        except TimeoutError:
            raise NotReadyError(f"the broker at {self._config.bootstrap} does not answer") from None
        return [row(topic, offsets) for topic in TOPICS if topic.name in offsets.bounds]


def row(topic: Topic, offsets: Positions) -> types.TopicRow:
    bounds, groups = offsets.bounds[topic.name], []
    for group in topic.readers:
        committed = offsets.committed.get((group, topic.name))
        if committed:
            # A partition without a commit is read from its first record.
            behind = sum(max(last - max(committed.get(at, first), first), 0) for at, (first, last) in bounds.items())
            groups.append(types.GroupLag(group=group, behind=behind))
    records = sum(last - first for first, last in bounds.values())
    return types.TopicRow(name=topic.name, partitions=len(bounds), records=records, groups=groups)
