"""What goes wrong with a broker and is no fault of this program: said in one line, and over when it is over."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import NotReadyError
from nephila.kernel.topics import SEEDS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.claim_check import open_claim_store
from nephila_stores.remote import blobs

from tests.contracts.buses import config_for
from tests.waits import until


@pytest.fixture
async def bus(broker):
    """Reads seeds."""
    config = config_for(broker, silent_s=0.6)
    await admin.apply(config)
    made = KafkaBus(config, SystemClock())
    made.got = []
    made.subscribe(SEEDS, "reader", lambda d: (made.got.append(d.message.url), d.ack()), credits=99)
    await made.start()
    await until(lambda: len(made.held("reader")) == 4)
    yield made
    await made.close()


async def test_a_topic_that_is_deleted_and_made_again(bus):
    """Not ready, with the remedy, as long as it is gone; then what is published is read."""
    await bus.publish(SEEDS, 1, Seed("j", "before"))
    await until(lambda: bus.got == ["before"])
    await admin.delete(bus.config, (SEEDS,))
    await until(lambda: any("see nephila service topics apply" in line for line in bus.troubles))
    assert f"no topic {bus.config.prefix}seeds on the broker" in bus.troubles[-1]
    # Made again before that, partitions whose log ends before what was read stand still, as they should.
    await until(lambda: not bus.held("reader"))
    receipt = bus.publish(SEEDS, 1, Seed("j", "after"))
    await admin.apply(bus.config)
    await until(lambda: receipt.done and bus.got == ["before", "after"])
    await until(lambda: not bus.troubles)


async def test_a_deleted_topic_is_noticed_by_a_consumer_that_was_replaced(bus):
    """It gets the assignment of the consumer before it, as if another member led the group."""
    group = bus.groups["reader"]

    async def never(*_: object) -> bool:
        await asyncio.Event().wait()
        return False

    group.consumer._fetcher._proc_fetch_request = never
    while not group.restarts:
        await bus.publish(SEEDS, 1, Seed("j", "behind"))
        await asyncio.sleep(0.02)
    await until(lambda: group.settled and bus.got)
    await admin.delete(bus.config, (SEEDS,))
    await until(lambda: not bus.held("reader"))
    await admin.apply(bus.config)
    await until(lambda: len(bus.held("reader")) == 4)


async def test_a_clock_that_is_off_is_not_ready(bus, monkeypatch):
    """By more than a second, either way; told by the first record, and over when the clock was set."""
    await bus.publish(SEEDS, 1, Seed("j", "1"))
    assert not bus.troubles
    for ahead, says in ((5, "s ahead of the broker's; set it (NTP)"), (-5, "s behind the broker's")):
        monkeypatch.setattr(bus.producer, "_clock", SimpleNamespace(now=lambda ahead=ahead: time.time() + ahead))
        await bus.publish(SEEDS, 1, Seed("j", "2"))
        assert says in bus.troubles[0]
    monkeypatch.undo()
    await bus.publish(SEEDS, 1, Seed("j", "3"))
    assert not bus.troubles


async def test_a_bus_that_found_no_topics_can_be_started_later(broker):
    """As a service does that is begun before its system."""
    config = config_for(broker)
    made, got = KafkaBus(config, SystemClock()), []
    made.subscribe(SEEDS, "reader", lambda d: (got.append(d.message.url), d.ack()), credits=99)
    with pytest.raises(NotReadyError, match="create them with: nephila service topics apply"):
        await made.start()
    await admin.apply(config)
    await made.start()
    await made.publish(SEEDS, 1, Seed("j", "a"))
    await until(lambda: got == ["a"])
    await made.close()


async def test_an_object_store_that_does_not_answer_is_not_ready(broker, monkeypatch):
    """The bus joins no group: a member without its blob store could not read what its partitions hold."""
    monkeypatch.setattr(blobs, "RETRIES", 0)
    for name, value in {
        "ENDPOINT": "http://127.0.0.1:1",
        "ALLOW_HTTP": "true",
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    config = config_for(broker, blobs="s3://bucket/messages")
    await admin.apply(config)
    made = KafkaBus(config, SystemClock(), open_claim_store(config.blobs))
    made.subscribe(SEEDS, "reader", lambda d: d.ack(), credits=99)
    with pytest.raises(NotReadyError, match=r"^the blob store does not answer: s3://bucket/messages: ") as caught:
        await made.start()
    assert "\n" not in str(caught.value)
    assert not made.held("reader")
