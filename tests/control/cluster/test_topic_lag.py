"""Topics of a broker: what they hold, and how far groups that have committed are behind."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import TOPICS
from nephila_cluster.kafka.admin import topics as admin
from nephila_control.cluster.topic_lag import KafkaTopics

from tests.contracts.buses import config_for


async def test_a_group_is_behind_what_it_has_not_committed(broker):
    """In a partition without its commit all records; other groups are not named."""
    config = config_for(broker)
    await admin.apply(config)
    name = f"{config.prefix}pages"
    producer = AIOKafkaProducer(bootstrap_servers=config.bootstrap)
    await producer.start()
    for partition, count in ((0, 5), (1, 2)):
        for _ in range(count):
            await producer.send_and_wait(name, b"x", partition=partition)
    await producer.stop()
    reader = AIOKafkaConsumer(
        bootstrap_servers=config.bootstrap, group_id=f"{config.prefix}parser", enable_auto_commit=False
    )
    await reader.start()
    reader.assign([TopicPartition(name, 0)])
    await reader.commit({TopicPartition(name, 0): 3})
    await reader.stop()
    rows = {row.name: row for row in await KafkaTopics(config).rows()}
    assert list(rows) == [topic.name for topic in TOPICS]
    assert rows["pages"].records == 7
    assert [(group.group, group.behind) for group in rows["pages"].groups] == [("parser", 2 + 2)]
    assert (rows["outlinks"].records, rows["outlinks"].groups) == (0, [])


async def test_a_broker_that_is_away_is_named(broker):
    """In one line."""
    config = config_for(broker)
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9"):
        await KafkaTopics(type(config)(bootstrap="127.0.0.1:9", prefix="x.")).rows()
