"""Compacted topics over a broker that compacts: a grown system is found, starts, and grows again."""

from __future__ import annotations

import msgspec
from nephila.kernel.bus.contract import newest
from nephila.kernel.layout import LAYOUT, LayoutSetting
from nephila.kernel.messages import CrawlJob, Setting
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import JOBS, SETTINGS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.admin.stored_layout import stored_layout
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.grow import grow, present
from nephila_cluster.kafka.log_reader import KafkaLogReader

from tests.contracts.buses import compacted, config_for


async def test_a_grown_system_starts_and_grows_again_after_a_compaction(broker):
    """The first records of `settings` are gone: the growth itself has replaced one of them."""
    config = config_for(broker)
    await admin.apply(config)
    await grow(config, 8, wait_s=0.0)
    bus = KafkaBus(config, SystemClock())
    await bus.start()
    layout = LayoutSetting(4, 8, 8)
    await compacted(config, bus, SETTINGS, Setting(LAYOUT, msgspec.json.encode(layout), 1.0))
    await bus.close()

    assert await stored_layout(config) == layout
    assert await present(config) == layout
    member = KafkaBus(msgspec.structs.replace(config, name="late"), SystemClock())
    await member.start()
    assert member.layout.count == 8
    await member.close()
    await grow(config, 16, wait_s=0.0)
    assert await present(config) == LayoutSetting(4, 16, 16)


async def test_a_subscriber_and_a_reader_get_the_same_of_a_compacted_topic(broker):
    """One member was there before the compaction, one starts behind it."""
    config = config_for(broker)
    await admin.apply(config)
    writer = KafkaBus(config, SystemClock())
    await writer.start()
    for uid, generation in (("a", 1), ("a", 2), ("b", 1), ("a", 3)):
        await writer.publish(JOBS, 0, CrawlJob(uid, generation=generation))
    await compacted(config, writer, JOBS, CrawlJob("b", generation=2))
    await writer.close()

    jobs: dict[str, int] = {}
    member = KafkaBus(msgspec.structs.replace(config, name="late"), SystemClock())
    member.subscribe(
        JOBS, "scheduler", lambda d: (jobs.update({d.message.uid: d.message.generation}), d.ack()), credits=9
    )
    await member.start()
    assert jobs == {"a": 3, "b": 2}
    await member.close()
    state = await newest(KafkaLogReader(config, None), JOBS)
    assert {uid: job.generation for uid, job in state.items()} == jobs
