"""Compaction by the broker, now: a log that has lost its first records is what a member meets after a week."""

from __future__ import annotations

import time

from nephila.kernel.topics import TOPICS

from tests.cluster.release import Release

AT_ONCE = {"segment.ms": "2000", "min.compaction.lag.ms": "0", "min.cleanable.dirty.ratio": "0.01"}
"""Settings of topics that the broker compacts within its next round (15 s)."""
COMPACTED = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer, TopicPartition
async def main(bootstrap, *topics):
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, request_timeout_ms=60000)
    await consumer.start()
    try:
        compacted = 0
        for topic in topics:
            for partition in consumer.partitions_for_topic(topic) or ():
                consumer.assign([there := TopicPartition(topic, partition)])
                end = (await consumer.end_offsets([there]))[there]
                await consumer.seek_to_beginning(there)
                records = await consumer.getmany(there, timeout_ms=3000, max_records=1) if end else {}
                compacted += any(record.offset > 0 for batch in records.values() for record in batch)
        print(compacted)
    finally:
        await consumer.stop()
asyncio.run(main(*sys.argv[1:]))
"""
"""Prints the number of partitions whose first record is gone."""


def compact(release: Release) -> None:
    """Let the broker compact the topics with keys, and give them their own settings back."""
    began = time.monotonic()
    names = [topic.name for topic in TOPICS if topic.key]
    choices = [f"{name}:{key}={value}" for name in names for key, value in AT_ONCE.items()]
    release.nephila("service", "topics", "apply", *(word for choice in choices for word in ("--config", choice)))
    pod = f"deployment/{release.component('api')}"
    words = ["exec", pod, "--", "python3", "-c", COMPACTED, f"{release.component('kafka')}:9092", *names]
    compacted = 0

    def is_compacted() -> bool:
        nonlocal compacted
        compacted = int(release.kubectl(*words, check=False).strip() or 0)
        return compacted > 0

    release.until(is_compacted, 120)
    release.nephila("service", "topics", "apply")
    release.step("compaction by the broker", began, f"{compacted} partitions of {len(names)} topics begin above 0")
    release.rule("the broker has compacted topics", float(compacted > 0), 1)
