"""A rolling upgrade over a real broker: a message whose format number changed stops its readers, and nobody else."""

from __future__ import annotations

import msgspec
import pytest
from aiokafka import TopicPartition
from nephila.kernel.messages import CrawlJob, Outlinks, ParseRule, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import JOBS, OUTLINKS, RULES, SEEDS
from nephila_cluster.kafka import producer
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.wire import headers_of

from tests.contracts.buses import config_for
from tests.waits import until


@pytest.mark.parametrize("number", [0, 2])
async def test_only_the_readers_of_a_changed_message_stop(broker, monkeypatch, number):
    """Its partition waits with its position; logs and tables of other messages are read on, also of the same group."""
    config = config_for(broker)
    await admin.apply(config)

    def other_release(struct: type) -> list[tuple[str, bytes]]:
        return [("v", b"%d" % number), *headers_of(struct)[1:]] if struct in (Seed, ParseRule) else headers_of(struct)

    got: list[str] = []
    errors: list[Exception] = []
    reader, writer = (
        KafkaBus(msgspec.structs.replace(config, name=name), SystemClock(), on_fatal=errors.append)
        for name in ("reader", "writer")
    )
    for topic, name in ((SEEDS, "url"), (OUTLINKS, "parent_url"), (JOBS, "uid"), (RULES, "name")):
        reader.subscribe(
            topic,
            "scheduler",
            lambda delivery, name=name: (got.append(getattr(delivery.message, name)), delivery.ack()),
            credits=9,
        )
    try:
        await writer.start()
        await reader.start()
        await until(lambda: len(reader.held("scheduler")) == 4)
        monkeypatch.setattr(producer, "headers_of", other_release)
        await writer.publish(SEEDS, 1, Seed("j", "seed"))
        await writer.publish(RULES, 0, ParseRule("rule"))
        await writer.publish(OUTLINKS, 1, Outlinks("j", parent_url="links"))
        await writer.publish(JOBS, 0, CrawlJob("job"))
        await until(lambda: {"links", "job"} <= set(got) and len(errors) == 2)
        assert {"seed", "rule"}.isdisjoint(got)
        for name in ("Seed", "ParseRule"):
            assert any(f"format {number} of {name}, and this one reads 1" in str(error) for error in errors)
        state = reader.groups["scheduler"].inbox.partition_states[TopicPartition(f"{config.prefix}seeds", 1)]
        assert state.position.committed_to == 0
    finally:
        await reader.close()
        await writer.close()
