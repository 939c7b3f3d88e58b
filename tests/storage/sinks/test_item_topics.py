"""Items on topics of Kafka: messages, repeated and refused ones, a broker that is away, a real broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from nephila.kernel import messages as m
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.runtime.errors import TemporaryError, UsageError, UserError
from nephila.storage.config import StorageConfig
from nephila.storage.outputs import SINKS
from nephila.storage.sinks.remote.item_topics import ItemTopics, Message
from nephila.storage.writer import Writer

from tests.storage.storage_rig import JOB, key, record


class FakeProducer:
    """Keeps the messages; `away` is the number of calls that fail."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.away = 0
        self.config: KafkaConfig | None = None

    def check(self) -> None:
        """See `ItemProducer`."""
        self.send([])

    def send(self, messages: Sequence[Message]) -> None:
        """See `ItemProducer`."""
        if self.away:
            self.away -= 1
            raise TemporaryError("kafka:9092 does not take messages")
        self.messages += messages

    def close(self) -> None:
        """See `ItemProducer`."""


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    """The producer of each sink of the test."""
    found = FakeProducer()

    def connect(config: KafkaConfig) -> FakeProducer:
        found.config = config
        return found

    monkeypatch.setitem(SINKS, "kafka", lambda config, ledger: ItemTopics(config, ledger, connect))
    return found


def opened(directory: Path, bootstrap: str = "kafka:9092") -> Writer:
    """An open writer that sends items."""
    config = StorageConfig(directory=directory, formats=("kafka",), items_bootstrap=bootstrap, fsync=False)
    found = Writer(config)
    found.open()
    return found


def put(writer: Writer, *records: m.Record) -> None:
    """One flush."""
    writer.commit(records, [None] * len(records), [])
    writer.after_commit()


def page(number: int, *items: bytes, rule: str = "shop", **fields: Any) -> m.Record:
    """A page with items."""
    return record(number, rule=rule, rule_version=7, items=list(items), **fields)


def test_each_item_is_a_message_on_the_topic_of_its_rule(tmp_path, producer):
    """With id, key and version; a page without items and the part of a second page have none."""
    writer = opened(tmp_path)
    put(
        writer,
        page(1, b'{"a":1}', b'{"a":2}'),
        record(2),
        page(3, b"{}", rule="a b"),
        page(4, b"{}", rule="shop/more"),
    )
    writer.close()
    topics = [topic for topic, *_ in producer.messages]
    assert topics == ["items.shop", "items.shop", "items.a_b"]
    _, name, value, headers = producer.messages[1]
    id = f"{JOB}:{key(1).hex()}-1-1:1"
    assert name == f"{JOB}:{key(1).hex()}".encode()
    assert headers == [("id", id.encode()), ("rule", b"shop"), ("rule_version", b"7")]
    assert json.loads(value) == {
        "id": id,
        "job": JOB,
        "url": record(1).url,
        "url_key": key(1).hex(),
        "rule": "shop",
        "rule_version": 7,
        "ordinal": 1,
        "items": 2,
        "fetch_no": 1,
        "fetched_at": "2027-01-15T08:00:01.250Z",
        "data": {"a": 2},
    }


def test_items_wait_for_a_broker_that_is_away_and_come_in_order(tmp_path, producer):
    """The end says so, and the next start sends the rest; an item that is too large is a dead letter."""
    writer = opened(tmp_path)
    producer.away = 2
    put(writer, page(1, b'{"n":1}'))
    put(writer, page(2, b'{"n":2}'))
    with pytest.raises(UserError, match=r"items_bootstrap: kafka:9092 is unreachable; the rest waits in .*--resume"):
        writer.close()
    writer = opened(tmp_path)
    put(writer, page(3, b'{"n":"%s"}' % (b"x" * 1_000_001)), page(4, b'{"n":4}'))
    writer.close()
    assert [json.loads(value)["data"]["n"] for _, _, value, _ in producer.messages] == [1, 2, 4]
    (dead,) = map(json.loads, (tmp_path / "kafka-dead.jsonl").read_bytes().splitlines())
    assert dead["value"]["data"]["n"][:3] == "xxx"
    opened(tmp_path).close()
    assert len(producer.messages) == 3


@pytest.mark.parametrize(
    ("bootstrap", "away", "error", "message"),
    [
        ("", 0, UsageError, "the format kafka needs a broker: set storage.items_bootstrap to HOST:PORT"),
        ("kafka", 0, UsageError, "storage.items_bootstrap: bootstrap 'kafka' is not HOST:PORT"),
        ("kafka:9092", 1, UserError, "storage.items_bootstrap: kafka:9092 does not take messages"),
    ],
)
def test_bad_settings_are_refused_in_one_line(tmp_path, producer, bootstrap, away, error, message):
    """Before the first page."""
    producer.away = away
    with pytest.raises(error, match=message):
        opened(tmp_path, bootstrap)


@pytest.mark.full
def test_a_real_broker_gets_the_items(tmp_path, broker, monkeypatch):
    """Topics are created; with the prefix of the system; a restart continues."""
    monkeypatch.setenv("NEPHILA_KAFKA__PREFIX", "outputs-")
    for number in (1, 2):
        writer = opened(tmp_path, broker.address)
        put(writer, page(number, b'{"n":%d}' % number))
        writer.close()

    async def read() -> list[Any]:
        topic = "outputs-items.shop"
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker.address, auto_offset_reset="earliest")
        async with consumer:
            found: list[Any] = []
            async with asyncio.timeout(30):
                while len(found) < 2:
                    for messages in (await consumer.getmany(timeout_ms=500)).values():
                        found += messages
        return found

    found = asyncio.run(read())
    assert sorted(json.loads(one.value)["data"]["n"] for one in found) == [1, 2]
    assert {dict(one.headers)["rule"] for one in found} == {b"shop"}


def test_a_broker_that_does_not_exist_is_refused_at_the_start(tmp_path):
    """By the real client, in one line."""
    with pytest.raises(
        UserError, match=r"items_bootstrap: 127.0.0.1:9 does not take messages .*check the brokers"
    ) as caught:
        opened(tmp_path, "127.0.0.1:9")
    assert "\n" not in str(caught.value)
