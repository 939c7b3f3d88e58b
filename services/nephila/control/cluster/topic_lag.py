"""The topics of a system at its broker: what they hold, and how far each group of readers is behind. Asks the broker.

Only groups that have committed an offset are behind something: tables (`Topic.key`) are read whole by every program and
have no commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from nephila.control import system_types as types
from nephila.kernel.bus.kafka.admin import topics as admin
from nephila.kernel.bus.kafka.client.security import connection_options
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.runtime.errors import NotReadyError
from nephila.kernel.topics import TOPICS

ANSWER_S: Final = 10.0
_Bounds = Mapping[TopicPartition, tuple[int, int]]


class KafkaTopics:
    """The topics of one system. A question takes two connections and a request per group."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config

    async def rows(self) -> list[types.TopicRow]:
        """Those of the route that exist, in its order. Raises `UserError`."""
        try:
            return await asyncio.wait_for(self._rows(), ANSWER_S)
        except TimeoutError:
            raise NotReadyError(f"the broker at {self._config.bootstrap} does not answer") from None

    async def _rows(self) -> list[types.TopicRow]:
        config = self._config
        there = await admin.existing(config)
        groups = sorted({group for topic in TOPICS if not topic.key for group in topic.readers})
        async with admin.admin(config) as client:
            committed = {group: await self._committed(client, group) for group in groups}
        tps = [TopicPartition(config.prefix + name, at) for name, count in there.items() for at in range(count)]
        bounds = await self._bounds(tps)
        return [self._row(topic.name, topic.readers, bounds, committed) for topic in TOPICS if topic.name in there]

    async def _committed(self, client: AIOKafkaAdminClient, group: str) -> dict[TopicPartition, int]:
        found = await client.list_consumer_group_offsets(f"{self._config.prefix}{group}")
        return {tp: at.offset for tp, at in found.items() if at.offset >= 0}

    async def _bounds(self, tps: list[TopicPartition]) -> _Bounds:
        consumer = AIOKafkaConsumer(**connection_options(self._config), enable_auto_commit=False)
        try:
            await consumer.start()
            first, last = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        except (KafkaError, OSError) as error:
            raise await admin.trouble_with(self._config, error) from None
        finally:
            await consumer.stop()
        return {tp: (first[tp], last[tp]) for tp in tps}

    def _row(
        self,
        name: str,
        readers: tuple[str, ...],
        bounds: _Bounds,
        committed: Mapping[str, Mapping[TopicPartition, int]],
    ) -> types.TopicRow:
        own = {tp: found for tp, found in bounds.items() if tp.topic == self._config.prefix + name}
        groups = []
        for group in readers:
            known = {tp: at for tp, at in committed.get(group, {}).items() if tp in own}
            if known:
                # A partition without a commit is read from its first record.
                behind = sum(max(last - max(known.get(tp, first), first), 0) for tp, (first, last) in own.items())
                groups.append(types.GroupLag(group=group, behind=behind))
        records = sum(last - first for first, last in own.values())
        return types.TopicRow(name=name, partitions=len(own), records=records, groups=groups)
