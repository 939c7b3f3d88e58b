"""Where the topics of a system begin and end at the broker, and what its groups have committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from nephila_cluster.kafka.admin.topics import admin, existing, trouble_with
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig


class Positions(NamedTuple):
    """Names of topics are without the prefix of the system."""

    bounds: dict[str, dict[int, tuple[int, int]]]
    """Topic → partition → (offset of the oldest record, end), of the topics that exist."""
    committed: dict[tuple[str, str], dict[int, int]]
    """(group, topic) → partition → offset; partitions without a commit are left out."""


async def positions(config: KafkaConfig, groups: Iterable[str]) -> Positions:
    """Two connections, and a request per group. Raises `UserError`."""
    there = await existing(config)
    committed: dict[tuple[str, str], dict[int, int]] = {}
    async with admin(config) as client:
        for group in groups:
            for tp, at in (await client.list_consumer_group_offsets(f"{config.prefix}{group}")).items():
                topic = tp.topic.removeprefix(config.prefix)
                if at.offset >= 0 and tp.topic == f"{config.prefix}{topic}":
                    committed.setdefault((group, topic), {})[tp.partition] = at.offset
    bounds: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in there}
    tps = {TopicPartition(config.prefix + name, at): name for name, count in there.items() for at in range(count)}
    consumer = AIOKafkaConsumer(**connection_options(config), enable_auto_commit=False)
    try:
        await consumer.start()
        first, last = await consumer.beginning_offsets(list(tps)), await consumer.end_offsets(list(tps))
    except (KafkaError, OSError) as error:
        raise await trouble_with(config, error) from None
    finally:
        await consumer.stop()
    for tp, name in tps.items():
        bounds[name][tp.partition] = (first[tp], last[tp])
    return Positions(bounds, committed)
