"""Since when the broker answers: gaps end a contact, and over a real broker answers come while nothing happens."""

from __future__ import annotations

import math

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from nephila.kernel.runtime.clock import ManualClock, SystemClock
from nephila.kernel.topics import JOBS
from nephila_cluster.kafka import compacted
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.client.contact import BrokerContact, watch_contact

from tests.contracts.buses import config_for
from tests.waits import until


def test_a_contact_lasts_until_an_answer_is_missing():
    """While the broker is away the contact begins now; then at its next answer."""
    contact = BrokerContact(7.0)
    assert contact.since(50.0) == 50.0
    for now in (100.0, 105.0, 112.0):
        contact.on_answer(now)
    assert (contact.since(112.0), contact.since(119.0), contact.since(119.1)) == (100.0, 100.0, 119.1)
    contact.on_answer(300.0)
    assert contact.since(301.0) == 300.0


class Client:
    """Answers with the code of an error."""

    def __init__(self) -> None:
        self.code = 0

    async def send(self, node_id: int, request: object) -> object:
        """The answer to any request."""
        answer = type("Answer", (), {})()
        answer.topics = [("jobs", [(0, self.code, 5, b"")])]
        return answer


async def test_only_answers_that_deliver_count():
    """A broker that does not lead the topic, or tells the topics only, has no reports."""
    consumer, clock, contact = type("Consumer", (), {})(), ManualClock(), BrokerContact(7.0)
    consumer._client = Client()
    fetch = FetchRequest.__new__(FetchRequest)
    watch_contact(consumer, clock, contact)
    consumer._client.code, answering = 6, consumer._client
    await answering.send(0, fetch)
    await answering.send(0, MetadataRequest.__new__(MetadataRequest))
    assert contact._last == -math.inf
    answering.code = 0
    await answering.send(0, fetch)
    assert contact.since(clock.monotonic()) == contact._last == clock.monotonic()


async def test_a_broker_without_news_keeps_the_contact(broker, monkeypatch):
    """Its answers to waiting requests come in time; a stopped reader has no contact."""
    monkeypatch.setattr(compacted, "WAIT_S", 0.05)
    monkeypatch.setattr(compacted, "GAP_S", 0.7)
    config = config_for(broker)
    await admin.apply(config)
    bus = KafkaBus(config, SystemClock())
    bus.subscribe(JOBS, "scheduler", lambda delivery: delivery.ack(), credits=9)
    assert bus.answering_since > bus.clock.monotonic() - 0.1
    await bus.start()
    try:
        await until(lambda: bus.answering_since < bus.clock.monotonic() - 0.3)
        began = bus.answering_since
        await until(lambda: bus.clock.monotonic() > began + 1.5)
        assert bus.answering_since == began
    finally:
        await bus.close()
    await until(lambda: bus.answering_since > bus.clock.monotonic() - 0.1)
