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
from aiokafka.admin import AIOKafkaAdminClient
async def main(bootstrap, *topics):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await admin.start()
    await consumer.start()
    try:
        described = await admin.describe_topics(list(topics))
        partitions = [TopicPartition(t["topic"], p["partition"]) for t in described for p in t["partitions"]]
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        first = {}
        while len(first) < sum(end > 0 for end in ends.values()):
            batches = await consumer.getmany(timeout_ms=10000, max_records=500)
            if not batches:
                break
            for partition, records in batches.items():
                first.setdefault(partition, records[0].offset)
        print(sum(offset > 0 for offset in first.values()))
    finally:
        await consumer.stop()
        await admin.close()
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
