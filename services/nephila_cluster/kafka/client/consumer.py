"""Creating, observing and stopping a group's consumer: aiokafka's settings and private parts, in one place.

Members are static (group.instance.id): a restart within the session moves no partition. A static member does not leave
the group when it stops; its id is removed first, or its partitions would wait for the end of the session.

The broker answers a restarted static member with the assignment of its last generation, without a look at its new
subscription (KIP-345). The instance id therefore names the topics as well: a member that reads other topics than before
its crash is a new member to the broker, and the next plan gives it the partitions of its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    IllegalStateError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka.structs import OffsetAndMetadata
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import sleep

from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig

log = logging.getLogger(__name__)

STOP_S = 5.0
LOOK_S = 1.0
COMMIT_RETRY_S = 0.1
FENCED_INSTANCE_ID: Final = 82
"""Code of the protocol: another member has joined with this static id."""
GROUP_REQUESTS: Final = (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, OffsetCommitRequest)
MAX_POLL_S = 86_400
"""The poll never waits for handlers, so this limit of the client is not needed (aiokafka#848)."""


def new_consumer(
    config: KafkaConfig,
    group: str,
    topics: Sequence[str],
    assignor: type[AbstractPartitionAssignor],
    listener: ConsumerRebalanceListener,
) -> AIOKafkaConsumer:
    """A consumer that is subscribed and not started."""
    consumer = AIOKafkaConsumer(
        **connection_options(config),
        client_id=f"nephila-{config.name}",
        group_id=f"{config.prefix}{group}",
        group_instance_id=instance_id(config.name, topics),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
        session_timeout_ms=int(config.session_s * 1000),
        heartbeat_interval_ms=int(config.heartbeat_s * 1000),
        rebalance_timeout_ms=int(config.rebalance_s * 1000),
        max_poll_interval_ms=MAX_POLL_S * 1000,
        max_partition_fetch_bytes=config.fetch_bytes,
        fetch_max_bytes=8 * config.fetch_bytes,
        # A join is answered when the last member has joined.
        request_timeout_ms=int(max(config.request_timeout_s, config.rebalance_s + config.session_s) * 1000),
    )
    consumer.subscribe(topics, listener=listener)
    return consumer


def instance_id(member: str, topics: Iterable[str]) -> str:
    """The id of a static member with this subscription."""
    return f"{member}.{zlib.crc32(','.join(sorted(topics)).encode()):08x}"


def relax_polling(consumer: AIOKafkaConsumer, wait_ms: int) -> None:
    """Let the client poll its own state every second instead of five times a second, as its events wake it anyway; and
    let the broker hold a fetch request for so long while nothing arrives."""
    fetcher = consumer._fetcher
    if fetcher is not None:
        fetcher._fetcher_timeout = LOOK_S
        fetcher._fetch_max_wait_ms = wait_ms


class SessionAnswers(Protocol):
    """What the broker says of the session of a member; `sent` is the monotonic time of the request."""

    def on_sync(self, sent: float) -> None:
        """The broker has answered a request for an assignment."""

    def on_answer(self, sent: float) -> None:
        """The broker has answered a heartbeat."""

    def on_outdated(self) -> None:
        """The broker knows the member, and its group has a newer generation."""

    def on_fenced(self) -> None:
        """Another member has joined under the static id."""


def watch_session(
    consumer: AIOKafkaConsumer,
    clock: Clock,
    session: SessionAnswers,
    interval_s: Callable[[], float] = lambda: 0.0,
) -> None:
    """Report what the broker says of the membership of a consumer that is not started, with the sending time of each
    request. `interval_s`: least time between two heartbeats at present, where the client would send them sooner.

    The client hides the codes of errors, has no class for a fenced member, and reports a join when this process has had
    the CPU to read it, which may be after the session that the join began."""
    send, beat_at = consumer._client.send, clock.monotonic()

    async def watching(node_id: int, request: Any, **options: Any) -> Any:
        nonlocal beat_at
        if isinstance(request, HeartbeatRequest):
            # The client sends the next one at once after a wait that is longer than its own.
            if (wait_s := beat_at + interval_s() - clock.monotonic()) > 0:
                await sleep(clock, wait_s)
            beat_at = clock.monotonic()
        sent = clock.monotonic()
        answer = await send(node_id, request, **options)
        for code in _error_codes(answer):
            if code == FENCED_INSTANCE_ID:
                session.on_fenced()
            elif code == IllegalGenerationError.errno:
                session.on_outdated()
            elif isinstance(request, SyncGroupRequest) and not code:
                session.on_sync(sent)
            elif isinstance(request, HeartbeatRequest) and code in (0, RebalanceInProgressError.errno):
                session.on_answer(sent)
        return answer

    def sending(node_id: int, request: Any, **options: Any) -> Any:
        return (watching if isinstance(request, GROUP_REQUESTS) else send)(node_id, request, **options)

    consumer._client.send = sending


def _error_codes(answer: Any) -> set[int]:
    """Codes of an answer about a group; a commit has one for each partition."""
    if hasattr(answer, "error_code"):
        return {answer.error_code}
    return {code for _, partitions in answer.topics for _, code in partitions}


def watch_partition_counts(consumer: AIOKafkaConsumer, assigned: Iterable[TopicPartition]) -> None:
    """Join again when the number of partitions of a topic changes, also when a topic is deleted. Called after a join.

    The client does so at the leader of the group only, and a leader that restarts within its session gets its old
    assignment as if it were no leader (KIP-345): no member would notice the change."""
    coordinator = consumer._coordinator
    if coordinator._group_subscription is None:
        coordinator._group_subscription = set(consumer.subscription())
        counts = coordinator._get_metadata_snapshot()
        for tp in assigned:
            counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
        coordinator._metadata_snapshot = counts


async def refresh(consumer: AIOKafkaConsumer) -> None:
    """Ask for the topics again: where one has more partitions, the group joins again."""
    with contextlib.suppress(KafkaError):
        await consumer._client.force_metadata_update()


def seek_back(consumer: AIOKafkaConsumer, positions: Mapping[TopicPartition, int]) -> None:
    """Read these partitions again from these offsets."""
    for tp, position in positions.items():
        with contextlib.suppress(IllegalStateError):  # it is not assigned any more
            consumer.seek(tp, position)


async def commit_offsets(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
    """Commit offsets with their metadata; retries errors that pass by themselves.

    It replaces the client's `commit`, which retries as long as a topic does not exist. Every join would wait for it,
    and a topic that is created again would get the offsets of the deleted one: its first records would never be read.
    Raises `KafkaError`, and `IllegalStateError` for a partition that is not assigned."""
    coordinator = consumer._coordinator
    assignment = consumer._subscription.subscription and consumer._subscription.subscription.assignment
    if assignment is None or not offsets.keys() <= assignment.tps:
        raise IllegalStateError(f"not assigned: {sorted(offsets)}")
    commits = {tp: OffsetAndMetadata(*offset) for tp, offset in offsets.items()}
    while True:
        await coordinator.ensure_coordinator_known()
        try:
            async with coordinator._commit_lock:
                return await asyncio.shield(coordinator._do_commit_offsets(assignment, commits))
        except UnknownTopicOrPartitionError:
            consumer._client.force_metadata_update()
            raise
        except (UnknownMemberIdError, IllegalGenerationError, RebalanceInProgressError) as error:
            raise CommitFailedError("the group has a new generation") from error
        except KafkaError as error:
            if not error.retriable:
                raise
        await asyncio.sleep(COMMIT_RETRY_S)


async def missing_topics(consumer: AIOKafkaConsumer, topics: Iterable[str], before: list[str]) -> list[str]:
    """Topics that the broker does not have. `before`: those missing at the last call, for which the metadata is
    refreshed."""
    cluster = consumer._client.cluster
    if before:
        await consumer._client.force_metadata_update()
    missing = sorted(topic for topic in topics if not cluster.partitions_for_topic(topic))
    for topic in set(missing) - set(before):
        log.error("topic %s was deleted from the broker with its content; waiting until it is created again", topic)
    return missing


def duplicate_member_error(group: str, name: str) -> UserError:
    """The error for two members with one name."""
    return UserError(f"another member of group {group} has the name {name!r}: set `member` or NEPHILA_PROGRAM__MEMBER")


async def stop_consumer(consumer: AIOKafkaConsumer, *, leave: bool) -> None:
    """Stop a consumer in a task, so that a part that hangs cannot block the caller."""
    if leave:
        consumer._coordinator._group_instance_id = None
    for closing in (consumer.stop, partial(_close_for_good, consumer._client)):
        task = asyncio.get_running_loop().create_task(closing())
        await asyncio.wait([task], timeout=STOP_S)
        if not task.done() or task.cancelled() or task.exception() is not None:
            task.cancel()
            await asyncio.wait([task], timeout=STOP_S)
            log.warning("a consumer did not stop in time")


async def _close_for_good(client: AIOKafkaClient) -> None:
    """Close all connections. A request that failed by that would open one again, which nobody closes."""
    client._get_conn = _refuse_connection
    async with client._get_conn_lock:  # one may be on its way
        await client.close()


async def _refuse_connection(node_id: int, **options: Any) -> None:
    """There is no connection any more."""
