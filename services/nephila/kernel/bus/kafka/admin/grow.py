"""Doubles the partitions of an idle system: every key's prefix gets one more bit, and each partition becomes two.

Kafka leaves records in their partition, where half of them would not be looked for. Nothing may be left, therefore: no
group has members, and everything published has been read. The frontier (its log and snapshots by partition) cannot be
split yet: a system with a frontier refuses, unless --forget-frontier is given. An interrupted run can be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from nephila.kernel.bus.kafka.admin import topics as admin
from nephila.kernel.bus.kafka.admin.topics import POLL_S, UNSET, VISIBLE_S, TopicChange
from nephila.kernel.bus.kafka.client.security import connection_options
from nephila.kernel.bus.kafka.config import MAX_PARTITIONS, KafkaConfig
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import ADDRESSES, FRONTIER, JOB_STATUS, PROGRESS, TOPICS, Topic

GROUPS = sorted({group for topic in TOPICS if not topic.key for group in topic.readers})
IDLE = ("Empty", "Dead")
UNKNOWN_YET = (14, 15, 16)
"""Kafka's error codes for groups that are still loading, or have moved to another broker."""
STATE = (FRONTIER, PROGRESS, JOB_STATUS, ADDRESSES)
"""Topics with partition numbers and epochs in their content; forgotten together."""


async def grow(config: KafkaConfig, *, forget: bool = False) -> tuple[int, list[TopicChange]]:
    """Double the partitions of an idle system; returns the new number and what was done with each topic. Raises
    `UsageError` when the system is not idle or would lose its frontier, `UserError` for errors of the broker."""
    there = await admin.existing(config)
    target = _target(config, there)
    compared = await admin.compared(config)
    chosen = {one.name: {key: now for key, now, _ in one.changes if now != UNSET} for one in compared}
    async with admin.admin(config) as client:
        await _check_groups(config, client)
        await _check_read(config, client, there)
        await _check_frontier(config, there, target, forget=forget)
        if forget:
            await _forget(config, client, there, target)
        await _split(config, client, there, target)
    grown = KafkaConfig(bootstrap=config.bootstrap, prefix=config.prefix, partitions=target)
    applied = await admin.apply(grown, choices=chosen)
    return target, [TopicChange(one.name, one.partitions, there.get(one.name) != one.partitions) for one in applied]


def _target(config: KafkaConfig, there: dict[str, int]) -> int:
    """Twice the present number; after an interrupted run, the number it was creating."""
    counts = {there[topic.name] for topic in TOPICS if not topic.key and topic.name in there}
    if not counts:
        raise UserError(f"the broker at {config.bootstrap} has no topics of a system; see nephila topics apply")
    low, high = min(counts), max(counts)
    if high not in (low, 2 * low):
        raise UserError(f"partition counts differ ({low} to {high}); an interrupted grow has {low} and {2 * low}")
    target = 2 * low
    if target > MAX_PARTITIONS:
        raise UsageError(f"{low} partitions are as many as there may be")
    return target


async def _check_groups(config: KafkaConfig, client: AIOKafkaAdminClient) -> None:
    busy = []
    for name in GROUPS:
        # One at a time: aiokafka 0.14 misreads an answer about several.
        state = await _asked(partial(_state, client, config.prefix + name))
        if state not in IDLE:
            busy.append(f"{name} ({state.lower()})")
    if busy:
        raise UsageError(
            f"services are at work: {', '.join(sorted(busy))}; stop them all, wait until their sessions are over, and "
            "run this again"
        )


async def _state(client: AIOKafkaAdminClient, group: str) -> str:
    (answer,) = await client.describe_consumer_groups([group])
    ((code, _, state, *_),) = answer.groups
    if code in UNKNOWN_YET:
        raise GroupCoordinatorNotAvailableError(f"group {group}: error {code}")
    return str(state)


async def _asked(question: Callable[[], Awaitable[Any]]) -> Any:
    """Ask again while a starting broker does not know the coordinators of its groups."""
    for _ in range(int(VISIBLE_S / POLL_S)):
        try:
            return await question()
        except GroupCoordinatorNotAvailableError:
            await asyncio.sleep(POLL_S)
    return await question()


async def _check_read(config: KafkaConfig, client: AIOKafkaAdminClient, there: dict[str, int]) -> None:
    read = [topic for topic in TOPICS if not topic.key and topic.name in there and topic.readers]
    ends = await _ends(config, read, there)
    committed = {
        group: await _asked(partial(client.list_consumer_group_offsets, config.prefix + group)) for group in GROUPS
    }
    behind: dict[str, int] = {}
    for topic in read:
        for group in topic.readers:
            known = committed.get(group, {})
            if group == "raw" and not known:
                continue  # this system keeps no raw pages
            for tp, (first, last) in ends.items():
                if tp.topic == config.prefix + topic.name:
                    position = known[tp].offset if tp in known else first
                    behind[topic.name] = max(behind.get(topic.name, 0), last - max(position, first))
    left = [f"{name} ({count})" for name, count in sorted(behind.items()) if count > 0]
    if left:
        raise UsageError(
            f"not everything has been read: {', '.join(left)} records are left in a partition; start the services, let "
            "them finish, and stop them"
        )


async def _check_frontier(config: KafkaConfig, there: dict[str, int], target: int, *, forget: bool) -> None:
    ends = await _ends(config, [FRONTIER] if there.get(FRONTIER.name, target) != target else [], there)
    if not forget and any(last > 0 for _, last in ends.values()):
        raise UsageError(
            "this release does not split a frontier: what was seen, is queued or is watched would be lost; with "
            "--forget-frontier it is dropped, rows stay, jobs must be applied again, and the schedulers need a new "
            "directory and blob store"
        )


async def _ends(
    config: KafkaConfig, topics: Iterable[Topic], there: dict[str, int]
) -> dict[TopicPartition, tuple[int, int]]:
    tps = [TopicPartition(config.prefix + topic.name, p) for topic in topics for p in range(there[topic.name])]
    if not tps:
        return {}
    consumer = AIOKafkaConsumer(**connection_options(config), enable_auto_commit=False)
    try:
        await consumer.start()
        first, last = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
    except (KafkaError, OSError) as error:
        raise await admin.trouble_with(config, error) from None
    finally:
        await consumer.stop()
    return {tp: (first[tp], last[tp]) for tp in tps}


async def _forget(config: KafkaConfig, client: AIOKafkaAdminClient, there: dict[str, int], target: int) -> None:
    """Delete the topics in STATE; `apply` creates them again."""
    if there.get(FRONTIER.name) == target:
        return
    state = [topic for topic in STATE if topic.name in there]
    await client.delete_topics([config.prefix + topic.name for topic in state])
    for _ in range(int(VISIBLE_S / POLL_S)):
        if not await admin.existing(config, state):
            return
        await asyncio.sleep(POLL_S)
    raise UserError(f"the broker at {config.bootstrap} does not delete topics; run this again")


async def _split(config: KafkaConfig, client: AIOKafkaAdminClient, there: dict[str, int], target: int) -> None:
    names = [topic.name for topic in TOPICS if not topic.key and there.get(topic.name, target) != target]
    still = await admin.existing(config)
    wanted = {config.prefix + name: NewPartitions(target) for name in names if name in still}
    if wanted:
        await client.create_partitions(wanted, validate_only=True)
        await client.create_partitions(wanted)
    for _ in range(int(VISIBLE_S / POLL_S)):
        now = await admin.existing(config)
        if all(now.get(name) == target for name in names if name in still):
            return
        await asyncio.sleep(POLL_S)
    raise UserError(f"the broker at {config.bootstrap} made partitions and does not show them; run this again")
