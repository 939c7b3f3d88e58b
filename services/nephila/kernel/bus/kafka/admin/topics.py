"""The topics of the route on a broker: created as topics.py lists them, compared, never silently different.

The number of partitions is fixed while a system lives: another number is refused, for every URL would be looked for in
a place where it was not put. Applying twice changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    IncompatibleBrokerVersion,
    InvalidSessionTimeoutError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)

from nephila.kernel.bus.kafka.admin.topic_settings import Settings, alter, described
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.topics import TOPICS, Topic

MAX_MESSAGE_BYTES = 2 << 20
"""Of a record: what is inline, gathered, and room to spare."""
COMPACT_AFTER_MS = 600_000
"""Of a table: until then no message goes because there is a later one of its key. Who coordinates a job decides by the
order of all messages, and says everything anew before this is over."""
SEGMENT_MS = 86_400_000
TABLE = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": str(COMPACT_AFTER_MS),
    "segment.ms": str(COMPACT_AFTER_MS),
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
"""Whoever starts reads the whole of a table first: old messages go soon, and the broker keeps its last segment."""
SILENT = (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError, OSError)
"""Nobody is there, or nobody in time."""
REMEDIES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    (
        (InvalidSessionTimeoutError,),
        "set kafka: {session_s: ...} to what its group.min.session.timeout.ms allows",
    ),
    (
        (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError),
        "give this program's user the right to its topics and groups",
    ),
    ((UnsupportedVersionError, IncompatibleBrokerVersion), "it is too old for this program"),
    ((CoordinatorNotAvailableError,), "it has no coordinator for groups yet, or too few brokers for its offsets topic"),
    ((MessageSizeTooLargeError,), "apply the topics of this release: nephila topics apply"),
)
"""What to do, by what it says."""
UNSET = "unset"
"""What a setting was that only the broker's default spoke of."""
VISIBLE_S = 30.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one topic."""

    name: str
    partitions: int
    created: bool
    changes: tuple[tuple[str, str, str], ...] = ()
    """(setting, what it was, what it is): of a topic that was there."""
    others: tuple[tuple[str, str], ...] = ()
    """Settings that somebody else has made; they stay."""


def hush() -> None:
    """Silence aiokafka's own log, for programs that speak to people: the bus says in one line what matters of it."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


def trouble_with(config: KafkaConfig, error: BaseException) -> UserError:
    """The line for a broker that does not answer, or for what it says instead of doing what it is asked."""
    if isinstance(error, SILENT):
        return NotReadyError(
            f"no Kafka broker answers at {config.bootstrap} ({type(error).__name__}): start one, or name another "
            "with --bootstrap HOST:PORT or NEPHILA_BOOTSTRAP"
        )
    what = " ".join(str(error).split()) or type(error).__name__
    remedy = next((f": {words}" for kinds, words in REMEDIES if isinstance(error, kinds)), "")
    return NotReadyError(f"the broker at {config.bootstrap} refuses: {what}{remedy}")


@contextlib.asynccontextmanager
async def admin(config: KafkaConfig) -> AsyncIterator[AIOKafkaAdminClient]:
    """A connection for such questions. Raises `UserError`."""
    client = AIOKafkaAdminClient(bootstrap_servers=config.bootstrap, request_timeout_ms=30_000)
    try:
        await client.start()
    except (KafkaError, OSError, ValueError) as error:
        await client.close()
        raise trouble_with(config, error) from None
    try:
        yield client
    except KafkaError as error:
        raise trouble_with(config, error) from None
    finally:
        await client.close()


def settings(topic: Topic) -> dict[str, str]:
    """A topic's settings on the broker."""
    found = {
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        "compression.type": "producer",
        # Retention goes by the broker's clock, and members hear what it says.
        "message.timestamp.type": "LogAppendTime",
    }
    if topic.key:
        expires = {"cleanup.policy": "compact,delete", "retention.ms": str(int(topic.expires_s * 1000))}
        return {**found, **TABLE, **(expires if topic.expires_s else {})}
    retention_ms = int(topic.retention_s * 1000)
    # A segment is deleted as a whole: by what it is long, its first record is kept longer.
    segment_ms = min(retention_ms // 4, SEGMENT_MS)
    return {
        **found,
        "cleanup.policy": "delete",
        "retention.ms": str(retention_ms),
        "segment.ms": str(segment_ms),
    }


async def existing(config: KafkaConfig, topics: Sequence[Topic] = TOPICS) -> dict[str, int]:
    """Partitions of those topics that are there, by the names of the route. Raises `UserError`."""
    async with admin(config) as client:
        return await _existing(client, config, topics)


async def _existing(client: AIOKafkaAdminClient, config: KafkaConfig, topics: Sequence[Topic]) -> dict[str, int]:
    there: dict[str, Any] = {entry["topic"]: entry for entry in await client.describe_topics()}
    names = {topic.name: f"{config.prefix}{topic.name}" for topic in topics}
    return {name: len(there[full]["partitions"]) for name, full in names.items() if full in there}


async def compared(
    config: KafkaConfig, choices: Mapping[str, Settings] | None = None, topics: Sequence[Topic] = TOPICS
) -> list[Applied]:
    """Topics that are there, with what `apply` would change. Raises `UserError`."""
    async with admin(config) as client:
        return await _drift(client, config, await _existing(client, config, topics), choices or {}, topics)


async def _drift(
    client: AIOKafkaAdminClient,
    config: KafkaConfig,
    there: Mapping[str, int],
    choices: Mapping[str, Settings],
    topics: Sequence[Topic],
) -> list[Applied]:
    found = [topic for topic in topics if topic.name in there]
    set_now = await described(client, [f"{config.prefix}{topic.name}" for topic in found]) if found else {}
    compared = []
    for topic in found:
        now = set_now[f"{config.prefix}{topic.name}"]
        wanted = {**settings(topic), **choices.get(topic.name, {})}
        changes = tuple((key, now.get(key, UNSET), value) for key, value in wanted.items() if now.get(key) != value)
        others = tuple(sorted((key, value) for key, value in now.items() if key not in wanted))
        compared.append(Applied(topic.name, there[topic.name], False, changes, others))
    return compared


async def apply(
    config: KafkaConfig,
    replication: int = -1,
    topics: Sequence[Topic] = TOPICS,
    choices: Mapping[str, Settings] | None = None,
) -> list[Applied]:
    """Create what is missing, set the route's settings and chosen ones, leave all others. `replication`: -1 is the
    broker's default. Raises `UserError`."""
    choices = choices or {}
    async with admin(config) as client:
        there = await _existing(client, config, topics)
        _compare(config, there, topics)
        missing = [topic for topic in topics if topic.name not in there]
        if missing:
            await _create(client, config, missing, replication, choices)
            await _visible(client, config, topics)
        old = {one.name: one for one in await _drift(client, config, there, choices, topics)}
        await alter(
            client,
            {
                f"{config.prefix}{one.name}": {key: value for key, _, value in one.changes}
                for one in old.values()
                if one.changes
            },
        )
    return [old.get(t.name) or Applied(t.name, t.partitions(config.partitions), True) for t in topics]


async def _visible(client: AIOKafkaAdminClient, config: KafkaConfig, topics: Sequence[Topic]) -> None:
    """A broker hears of new topics a moment after they were made."""
    for _ in range(int(VISIBLE_S / POLL_S)):
        if len(await _existing(client, config, topics)) == len(topics):
            return
        await asyncio.sleep(POLL_S)
    raise UserError(f"the broker at {config.bootstrap} made the topics and does not show them; apply once more")


async def _create(
    client: AIOKafkaAdminClient,
    config: KafkaConfig,
    topics: Sequence[Topic],
    replication: int,
    choices: Mapping[str, Settings],
) -> None:
    new = []
    for topic in topics:
        full, count = f"{config.prefix}{topic.name}", topic.partitions(config.partitions)
        one = NewTopic(full, count, 1, topic_configs={**settings(topic), **choices.get(topic.name, {})})
        one.replication_factor = replication  # its constructor does not know the broker's default, -1
        new.append(one)
    answer = await client.create_topics(new)
    for name, code, *rest in answer.topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            raise UserError(f"topic {name} was not created: {error.__name__}: {rest[0] if rest else ''}")


def _compare(config: KafkaConfig, there: dict[str, int], topics: Sequence[Topic]) -> None:
    for topic in topics:
        wanted = topic.partitions(config.partitions)
        if there.get(topic.name, wanted) != wanted:
            raise UsageError(
                f"topic {config.prefix}{topic.name} has {there[topic.name]} partitions, not {wanted}: the number is "
                f"fixed while a system lives; go on with --partitions {there[topic.name]}, or use another --prefix"
            )


async def check(config: KafkaConfig, topics: Sequence[Topic]) -> None:
    """All topics are there with the right number of partitions. Raises `UserError`."""
    there = await existing(config, topics)
    _compare(config, there, topics)
    missing = [f"{config.prefix}{topic.name}" for topic in topics if topic.name not in there]
    if missing:
        raise NotReadyError(
            f"the broker at {config.bootstrap} has no topic {', '.join(missing)}: "
            f"create them with: nephila topics apply --bootstrap {config.bootstrap}"
        )


async def delete(config: KafkaConfig, topics: Sequence[Topic] = TOPICS) -> None:
    """Remove a system's topics with all that is in them. Raises `UserError`."""
    async with admin(config) as client:
        with contextlib.suppress(UnknownTopicOrPartitionError):
            await client.delete_topics([f"{config.prefix}{topic.name}" for topic in topics])
