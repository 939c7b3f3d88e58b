"""Items as JSON messages on topics of Kafka (format kafka): `items.<rule>`, a message per item of each new copy.

The value is {id, job, url, url_key, rule, rule_version, ordinal, items, fetch_no, fetched_at, data}; `items` is the
number of items of this copy of the page. The key is job:url_key, so the items of a page are in order on one partition:
those with the highest fetch_no are valid. The headers `id`, `rule` and `rule_version` name the item and the version of
the rule whose schema `data` has (`nephila rules item-schema`). A message may be repeated after a crash, with the same
id. Items are sent as the page gave them; what second pages add later is in the table `items` only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from nephila.kernel.bus.kafka.config import KafkaConfig, kafka_config
from nephila.kernel.item_parts import is_part
from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import FETCH_ID, FETCH_NO, FETCHED_AT, JOB, URL, URL_KEY, Batch
from nephila.storage.sinks.remote.delivery import SpooledDelivery

PARTITIONS: Final = 8
"""Partitions of a topic that this program creates."""
MAX_BYTES: Final = 1_000_000
"""Largest message; a larger item is a dead letter. Brokers accept 1 MB by default."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_encode = msgspec.json.Encoder().encode


class _Line(msgspec.Struct, array_like=True):
    topic: str
    key: str
    id: str
    rule: str
    version: int
    value: msgspec.Raw


Message = tuple[str, bytes, bytes, list[tuple[str, bytes]]]
"""Topic, key, value and headers."""
_decode = msgspec.json.Decoder(_Line).decode


class ItemProducer(Protocol):
    """Connects to a broker and sends messages; calls block."""

    def check(self) -> None:
        """Return if the broker answers. Raises `TemporaryError`."""

    def send(self, messages: Sequence[Message]) -> None:
        """Send messages, in order for each key; topics that are missing are created. Returns when all replicas in sync
        have them. Raises `TemporaryError`."""

    def close(self) -> None:
        """Disconnect."""


def _aiokafka(config: KafkaConfig) -> ItemProducer:
    try:
        import aiokafka  # noqa: F401
    except ImportError:
        raise UsageError("the format kafka needs aiokafka: pip install 'nephila[kafka]'") from None
    from nephila.storage.sinks.remote.item_producer import AiokafkaItems

    return AiokafkaItems(config)


class ItemTopics(SpooledDelivery):
    """See `Sink`."""

    def __init__(
        self, config: StorageConfig, ledger: Ledger, connect: Callable[[KafkaConfig], ItemProducer] = _aiokafka
    ) -> None:
        if not config.items_bootstrap:
            raise UsageError("the format kafka needs a broker: set storage.items_bootstrap to HOST:PORT")
        kafka = kafka_config({"bootstrap": config.items_bootstrap}, "storage.items_bootstrap")
        super().__init__(config, ledger, "kafka", "storage.items_bootstrap", kafka.bootstrap)
        self._prefix = kafka.prefix
        self._producer = connect(kafka)

    def check(self) -> None:
        """See `SpooledDelivery`."""
        self._producer.check()

    def lines(self, batch: Batch) -> bytearray:
        """See `SpooledDelivery`."""
        buffer = bytearray()
        for row in batch.rows:
            items = batch.items.get((row[JOB], row[URL_KEY]))
            if items is None or items.fetch_id != row[FETCH_ID] or is_part(items.rule):
                continue
            for ordinal, data in enumerate(items.data):
                key, id = f"{row[JOB]}:{row[URL_KEY]}", f"{row[JOB]}:{row[FETCH_ID]}:{ordinal}"
                value = {
                    "id": id,
                    "job": row[JOB],
                    "url": row[URL],
                    "url_key": row[URL_KEY],
                    "rule": items.rule,
                    "rule_version": items.version,
                    "ordinal": ordinal,
                    "items": len(items.data),
                    "fetch_no": row[FETCH_NO],
                    "fetched_at": row[FETCHED_AT],
                    "data": msgspec.Raw(data.encode()),
                }
                topic = f"{self._prefix}items.{_UNSAFE.sub('_', items.rule)[:200] or '_'}"
                buffer += _encode(_Line(topic, key, id, items.rule, items.version, msgspec.Raw(_encode(value)))) + b"\n"
        return buffer

    def deliver(self, lines: Sequence[bytes]) -> None:
        """See `SpooledDelivery`."""
        messages: list[Message] = []
        refused = []
        for line in map(_decode, lines):
            value = bytes(line.value)
            if len(value) > MAX_BYTES:
                refused.append(_encode({"id": line.id, "error": f"{len(value)} bytes", "value": line.value}))
                continue
            headers = [("id", line.id), ("rule", line.rule), ("rule_version", str(line.version))]
            messages.append((line.topic, line.key.encode(), value, [(name, text.encode()) for name, text in headers]))
        self._producer.send(messages)
        self.bury(refused, [f"an item is larger than {MAX_BYTES:,} bytes"])

    def close(self) -> None:
        """See `SpooledDelivery`."""
        try:
            super().close()
        finally:
            self._producer.close()
