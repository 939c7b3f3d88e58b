"""The producer of items over aiokafka, with an event loop of its own in the writer's thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from nephila.kernel.bus.kafka.client.security import connection_options
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.runtime.errors import TemporaryError
from nephila.storage.sinks.remote.item_topics import PARTITIONS, Message

T = TypeVar("T")


class AiokafkaItems:
    """See `ItemProducer`. It connects at the first call and again after an error."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._runner: asyncio.Runner | None = None
        self._producer: AIOKafkaProducer | None = None
        self._topics: set[str] = set()

    def check(self) -> None:
        """See `ItemProducer`."""
        self._run(self._connected())

    def send(self, messages: Sequence[Message]) -> None:
        """See `ItemProducer`."""
        if messages:
            self._run(self._send(messages))

    def close(self) -> None:
        """See `ItemProducer`."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with contextlib.suppress(KafkaError, OSError):
                runner.run(self._disconnect())
            runner.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        self._runner = self._runner or asyncio.Runner()
        try:
            return self._runner.run(work)
        except (KafkaError, OSError, TimeoutError) as error:
            with contextlib.suppress(KafkaError, OSError):
                self._runner.run(self._disconnect())
            what = " ".join(str(error).split()) or type(error).__name__
            raise TemporaryError(
                f"{self._config.bootstrap} does not take messages ({what}); check the brokers and their rights"
            ) from None

    async def _connected(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **connection_options(self._config),
                client_id="nephila-items",
                acks="all",
                enable_idempotence=True,
                compression_type="gzip",
                max_request_size=2 << 20,
                request_timeout_ms=int(self._config.request_timeout_s * 1000),
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

    async def _disconnect(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def _send(self, messages: Sequence[Message]) -> None:
        producer = await self._connected()
        await self._create({topic for topic, *_ in messages} - self._topics)
        sent = [await producer.send(topic, value, key=key, headers=headers) for topic, key, value, headers in messages]
        await asyncio.gather(*sent)

    async def _create(self, topics: set[str]) -> None:
        if not topics:
            return
        client = AIOKafkaAdminClient(**connection_options(self._config), client_id="nephila-items")
        try:
            await client.start()
            new = [NewTopic(topic, PARTITIONS, 1) for topic in sorted(topics)]
            for one in new:
                one.replication_factor = -1  # the broker's default; the constructor refuses it
            answer = await client.create_topics(new)
            for _, code, *_ in answer.topic_errors:
                error = for_code(code)
                if code and error is not TopicAlreadyExistsError:
                    raise error()
        finally:
            await client.close()
        self._topics |= topics
