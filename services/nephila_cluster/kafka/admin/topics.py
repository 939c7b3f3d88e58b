"""The topics of a system at the broker: created as topics.py lists them, compared, never silently different.

The number of partitions at the creation of a system stays in all settings. Another number is refused, because every URL
would be looked for in a partition where it was not put; `grow.py` adds partitions. Applying twice changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
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
from nephila.kernel.layout import LayoutSetting
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.topics import SETTINGS, TOPICS, Topic

from nephila_cluster.kafka.admin.stored_layout import other_number, stored_layout
from nephila_cluster.kafka.admin.topic_settings import Settings, alter, described
from nephila_cluster.kafka.client.diagnosis import diagnose
from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig

MAX_MESSAGE_BYTES = 2 << 20
"""Largest record: an inline message, batched messages, and some reserve."""
COMPACT_AFTER_MS = 600_000
"""Compacted topics keep every message for this long. The coordinator of a job depends on the order of all messages,
and repeats its own before this time is over."""
SEGMENT_MS = 86_400_000
TABLE = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": str(COMPACT_AFTER_MS),
    "segment.ms": str(COMPACT_AFTER_MS),
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
"""A member reads a compacted topic completely at its start, so old messages are compacted soon."""
SILENT = (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError, OSError)
"""Errors of a broker that does not answer."""
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
    ((MessageSizeTooLargeError,), "apply the topics of this release: nephila service topics apply"),
)
"""What to do, by the broker's error."""
UNSET = "unset"
"""Old value of a setting that was not set on the topic."""
VISIBLE_S = 30.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What was done with one topic."""

    name: str
    partitions: int
    created: bool
    changes: tuple[tuple[str, str, str], ...] = ()
    """(setting, old value, new value) of an existing topic."""
    others: tuple[tuple[str, str], ...] = ()
    """Settings that someone else made; they stay."""


def hush() -> None:
    """Silence aiokafka's own log, for programs that talk to people: the bus reports what matters in one line."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


async def trouble_with(config: KafkaConfig, error: BaseException) -> UserError:
    """The error line for a broker that does not answer or refuses."""
    if isinstance(error, SILENT):
        if fault := await diagnose(config):
            return NotReadyError(f"no connection to Kafka: {fault}")
        return NotReadyError(
            f"no Kafka broker answers at {config.bootstrap} ({type(error).__name__}): start one, or name another "
            "with --bootstrap HOST:PORT or NEPHILA_BOOTSTRAP"
        )
    detail = " ".join(str(error).split()) or type(error).__name__
    remedy = next((f": {words}" for kinds, words in REMEDIES if isinstance(error, kinds)), "")
    return NotReadyError(f"the broker at {config.bootstrap} refuses: {detail}{remedy}")


@contextlib.asynccontextmanager
async def admin(config: KafkaConfig) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin connection. Raises `UserError`."""
    client = AIOKafkaAdminClient(**connection_options(config), request_timeout_ms=30_000)
    try:
        try:
            await client.start()
        except (KafkaError, OSError, ValueError) as error:
            raise await trouble_with(config, error) from None
        try:
            yield client
        except KafkaError as error:
            raise await trouble_with(config, error) from None
    finally:
        await client.close()


def settings(topic: Topic) -> dict[str, str]:
    """The broker's settings of a topic."""
    common = {
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        "compression.type": "producer",
        # Retention follows the broker's clock, and members compare their clocks with it.
        "message.timestamp.type": "LogAppendTime",
    }
    if topic.key:
        expires = {"cleanup.policy": "compact,delete", "retention.ms": str(int(topic.expires_s * 1000))}
        return {**common, **TABLE, **(expires if topic.expires_s else {})}
    retention_ms = int(topic.retention_s * 1000)
    # A segment is deleted as a whole, so its first record is kept for the segment's length longer.
    segment_ms = min(retention_ms // 4, SEGMENT_MS)
    return {
        **common,
        "cleanup.policy": "delete",
        "retention.ms": str(retention_ms),
        "segment.ms": str(segment_ms),
    }


async def existing(config: KafkaConfig, topics: Sequence[Topic] = TOPICS) -> dict[str, int]:
    """Number of partitions of the existing topics. Raises `UserError`."""
    async with admin(config) as client:
        return await _existing(client, config, topics)


async def _existing(client: AIOKafkaAdminClient, config: KafkaConfig, topics: Sequence[Topic]) -> dict[str, int]:
    there: dict[str, Any] = {entry["topic"]: entry for entry in await client.describe_topics()}
    names = {topic.name: f"{config.prefix}{topic.name}" for topic in topics}
    return {name: len(there[full]["partitions"]) for name, full in names.items() if full in there}


async def compared(
    config: KafkaConfig, choices: Mapping[str, Settings] | None = None, topics: Sequence[Topic] = TOPICS
) -> list[TopicChange]:
    """Existing topics, with what `apply` would change. Raises `UserError`."""
    async with admin(config) as client:
        return await _drift(client, config, await _existing(client, config, topics), choices or {}, topics)


async def _drift(
    client: AIOKafkaAdminClient,
    config: KafkaConfig,
    there: Mapping[str, int],
    choices: Mapping[str, Settings],
    topics: Sequence[Topic],
) -> list[TopicChange]:
    present = [topic for topic in topics if topic.name in there]
    set_now = await described(client, [f"{config.prefix}{topic.name}" for topic in present]) if present else {}
    compared = []
    for topic in present:
        now = set_now[f"{config.prefix}{topic.name}"]
        target = {**settings(topic), **choices.get(topic.name, {})}
        changes = tuple((key, now.get(key, UNSET), value) for key, value in target.items() if now.get(key) != value)
        others = tuple(sorted((key, value) for key, value in now.items() if key not in target))
        compared.append(TopicChange(topic.name, there[topic.name], False, changes, others))
    return compared


async def apply(
    config: KafkaConfig,
    replication: int = -1,
    topics: Sequence[Topic] = TOPICS,
    choices: Mapping[str, Settings] | None = None,
) -> list[TopicChange]:
    """Create missing topics, set the route's settings and the chosen ones, leave all others. `replication`: -1 is the
    broker's default. Raises `UserError`."""
    choices = choices or {}
    async with admin(config) as client:
        there = await _existing(client, config, topics)
        if (grown := await _compare(config, there, topics)) is not None:
            config = msgspec.structs.replace(config, partitions=grown.topics)
        missing = [topic for topic in topics if topic.name not in there]
        if missing:
            await _create(client, config, missing, there, replication, choices)
            await _visible(client, config, topics)
        old = {change.name: change for change in await _drift(client, config, there, choices, topics)}
        await alter(
            client,
            {
                f"{config.prefix}{change.name}": {key: value for key, _, value in change.changes}
                for change in old.values()
                if change.changes
            },
        )
    now = await existing(config, topics)
    return [old.get(topic.name) or TopicChange(topic.name, now[topic.name], True) for topic in topics]


async def _visible(client: AIOKafkaAdminClient, config: KafkaConfig, topics: Sequence[Topic]) -> None:
    """A new topic is visible at all brokers only after a moment."""
    for _ in range(int(VISIBLE_S / POLL_S)):
        if len(await _existing(client, config, topics)) == len(topics):
            return
        await asyncio.sleep(POLL_S)
    raise UserError(f"the broker at {config.bootstrap} made the topics and does not show them; apply once more")


async def _create(
    client: AIOKafkaAdminClient,
    config: KafkaConfig,
    topics: Sequence[Topic],
    there: Mapping[str, int],
    replication: int,
    choices: Mapping[str, Settings],
) -> None:
    """`there`: the partitions of the existing topics."""
    new = []
    for topic in topics:
        full, count = f"{config.prefix}{topic.name}", topic.partitions(config.partitions, config.lanes)
        if topic.owned:
            count = next((there[other.name] for other in TOPICS if other.owned and other.name in there), count)
        new_topic = NewTopic(full, count, 1, topic_configs={**settings(topic), **choices.get(topic.name, {})})
        new_topic.replication_factor = replication  # its constructor refuses -1, the broker's default
        new.append(new_topic)
    answer = await client.create_topics(new)
    for name, code, *rest in answer.topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            raise UserError(f"topic {name} was not created: {error.__name__}: {rest[0] if rest else ''}")


async def _compare(config: KafkaConfig, there: dict[str, int], topics: Sequence[Topic]) -> LayoutSetting | None:
    """The layout of a system that has grown. Raises `UsageError` when the topics have another number of partitions than
    the system was created with, and it has not grown."""
    # Any number of lanes is right: a system keeps that with which it was created.
    counts = {topic: topic.partitions(config.partitions, config.lanes) for topic in topics if not topic.laned}
    others = [topic for topic, count in counts.items() if there.get(topic.name, count) != count]
    if not others:
        return None
    grown = await stored_layout(config) if SETTINGS.name in there else None
    if grown is not None and grown.base != config.partitions:
        raise UsageError(other_number(config, grown))
    if grown is None:
        name, count = others[0].name, there[others[0].name]
        raise UsageError(
            f"topic {config.prefix}{name} has {count} partitions, not {counts[others[0]]}: use "
            f"--partitions {count}, or another --prefix; nephila service topics grow adds partitions"
        )
    return grown


async def check(config: KafkaConfig, topics: Sequence[Topic]) -> tuple[LayoutSetting | None, dict[str, int]]:
    """Check that all topics exist with the right number of partitions. Returns the layout of a system that has grown,
    and how many partitions each topic has. Raises `UserError`."""
    there = await existing(config, topics)
    grown = await _compare(config, there, topics)
    owned = {topic.name: there[topic.name] for topic in topics if topic.owned and topic.name in there}
    if len(set(owned.values())) > 1:
        if grown is None and SETTINGS.name in there:
            grown = await stored_layout(config)  # a growth may have been interrupted before it reached the others
        if grown is None or grown.topics == grown.count:
            counts = ", ".join(f"{config.prefix}{name} {count}" for name, count in sorted(owned.items()))
            raise UsageError(f"topics that a scheduler reads must have the same number of partitions, not {counts}")
    missing = [f"{config.prefix}{topic.name}" for topic in topics if topic.name not in there]
    if missing:
        raise NotReadyError(
            f"the broker at {config.bootstrap} has no topic {', '.join(missing)}: "
            f"create them with: nephila service topics apply --bootstrap {config.bootstrap}"
        )
    return grown, there


async def delete(config: KafkaConfig, topics: Sequence[Topic] = TOPICS) -> None:
    """Delete a system's topics with their content. Raises `UserError`."""
    async with admin(config) as client:
        with contextlib.suppress(UnknownTopicOrPartitionError):
            await client.delete_topics([f"{config.prefix}{topic.name}" for topic in topics])
