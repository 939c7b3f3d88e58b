"""Items of platforms, or of all rules, as plain JSON on the topics items.NAME, for readers outside of the system.

Key: that of the page, so its items are in order on one partition; value: the item, with its id; headers: `rule` and
`rule_version`, which name the JSON Schema of the item (`nephila rules item-schema`). At least once: a reader keeps the
last record of an id. A topic is created with the first item of its name. The connection is opened then, so a system
without such items has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from nephila.kernel.runtime.errors import TemporaryError, UserError

from nephila_cluster.kafka.admin.topics import MAX_MESSAGE_BYTES, admin
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig

PREFIX = "items."
PARTITIONS = 8
"""Partitions of a topic of items."""
REPLICATION = -1
"""The broker's default."""


class ItemTopics:
    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._producer: AIOKafkaProducer | None = None
        self._known: set[str] = set()

    async def publish(self, items: Sequence[tuple[str, bytes, bytes, int]]) -> None:
        """Send (name, key, value, version of the rule) of each item; returns when all in-sync replicas have them.
        Raises `TemporaryError`: some may have been sent."""
        try:
            await self._create({name for name, *_ in items} - self._known)
            producer = await self._connected()
            prefix = self._config.prefix + PREFIX
            sent = [
                await producer.send(f"{prefix}{name}", value, key=key, headers=_headers(name, version))
                for name, key, value, version in items
            ]
            for receipt in sent:
                await receipt
        except (KafkaError, UserError, OSError) as error:
            raise TemporaryError(f"items cannot be published: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close the connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def _connected(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **connection_options(self._config),
                client_id=f"nephila-items-{self._config.name}",
                enable_idempotence=True,
                acks="all",
                max_request_size=4 << 20,
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

    async def _create(self, names: set[str]) -> None:
        if not names:
            return
        async with admin(self._config) as client:
            for name in sorted(names):
                full = f"{self._config.prefix}{PREFIX}{name}"
                topic = NewTopic(full, PARTITIONS, 1, topic_configs={"max.message.bytes": str(MAX_MESSAGE_BYTES)})
                topic.replication_factor = REPLICATION  # its constructor refuses -1
                answer = await client.create_topics([topic])
                for _, code, *rest in answer.topic_errors:
                    error = for_code(code)
                    if code and error is not TopicAlreadyExistsError:
                        raise error(rest[0] if rest else "")
                self._known.add(name)


def _headers(name: str, version: int) -> list[tuple[str, bytes]]:
    return [("rule", name.encode()), ("rule_version", str(version).encode())]
