"""Grows the partitions of a system, while it works or while it is stopped.

The topics get their new partitions first, then the topic `settings` names the new number. From then on services
publish on the new partitions, and the schedulers split their frontiers, each at its own time: messages by the layout
before are forwarded. A system without schedulers is split at their next start. An interrupted run can be repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
from aiokafka.admin import NewPartitions
from aiokafka.errors import KafkaError
from nephila.kernel.layout import LAYOUT, LayoutSetting
from nephila.kernel.messages import Setting
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import FRONTIER, SETTINGS, TOPICS

from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.admin.stored_layout import stored_layout
from nephila_cluster.kafka.admin.topics import POLL_S, VISIBLE_S
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import MAX_PARTITIONS, KafkaConfig
from nephila_cluster.kafka.log_reader import KafkaLogReader

LOOK_S = 0.5
BEGUN = 2
"""Records in the log of a new partition that a scheduler has taken over: its birth and a claim."""


async def present(config: KafkaConfig) -> LayoutSetting:
    """The layout of a system. Raises `UserError`."""
    there = await admin.existing(config)
    counts = {there[topic.name] for topic in TOPICS if not topic.key and not topic.laned and topic.name in there}
    if not counts:
        raise UserError(f"the broker at {config.bootstrap} has no topics of a system; see nephila service topics apply")
    setting = await stored_layout(config) if SETTINGS.name in there else None
    if setting is None and len(counts) > 1:
        raise UserError(f"partition counts differ ({min(counts)} to {max(counts)}), and no growth has begun")
    return setting or LayoutSetting(*counts, *counts, *counts)


def check(now: LayoutSetting, to: int) -> None:
    """Raise `UsageError` when a system cannot grow to this number."""
    if to < now.count:
        raise UsageError(f"the system has {now.count} partitions, and they never become fewer: --to {to} is refused")
    if to % now.count or to & (to - 1) or to > MAX_PARTITIONS:
        raise UsageError(
            f"--to {to}: {now.count} partitions can become {2 * now.count}, {4 * now.count} and so on, up to "
            f"{MAX_PARTITIONS}: each is split into two"
        )
    if now.topics > now.count and to != now.topics:
        raise UsageError(f"a growth to {now.topics} partitions was interrupted: repeat it first, --to {now.topics}")


async def grow(
    config: KafkaConfig, to: int, *, wait_s: float, report: Callable[[int, int], None] = lambda begun, of: None
) -> tuple[int, int]:
    """Grow to this number of partitions; returns how many of the new ones have begun, and how many there are.
    `wait_s`: longest time to wait for all; `report` is called with both while they begin. Raises `UsageError` when it
    is impossible, `UserError` for errors of the broker."""
    before = await present(config)
    check(before, to)
    config = msgspec.structs.replace(config, partitions=before.base)
    if before.count < to:
        bus = KafkaBus(config, SystemClock())
        # The setting comes first: it tells services that start now why the topics differ.
        await bus.start()
        try:
            await _publish(bus, LayoutSetting(before.base, before.count, to))
            await _add_partitions(config, before.count, to)
            await _publish(bus, LayoutSetting(before.base, to, to))
        finally:
            await bus.close()
    new = range(before.base, to) if before.count == to else range(before.count, to)
    return await _wait(config, new, wait_s, report)


async def _publish(bus: KafkaBus, layout: LayoutSetting) -> None:
    await bus.publish(SETTINGS, 0, Setting(LAYOUT, msgspec.json.encode(layout), bus.clock.now()))


async def _add_partitions(config: KafkaConfig, count: int, to: int) -> None:
    """Give the topics of a system of `count` partitions their new ones. Lanes that are fewer than the partitions stay:
    each message is in the lane of its partition, and partitions stay at the owners of their lanes."""
    there = await admin.existing(config)
    counts = {t.name: t.partitions(to, config.lanes) for t in TOPICS if not t.laned or there.get(t.name, 0) >= count}
    growing = {name: number for name, number in counts.items() if there.get(name, number) < number}
    new_partitions = {config.prefix + name: NewPartitions(count) for name, count in growing.items()}
    if new_partitions:
        try:
            async with admin.admin(config) as client:
                await client.create_partitions(new_partitions, validate_only=True)
                await client.create_partitions(new_partitions)
        except KafkaError as error:
            raise await admin.trouble_with(config, error) from None
    for _ in range(int(VISIBLE_S / POLL_S)):
        now = await admin.existing(config)
        if all(now[name] == count for name, count in growing.items()):
            return
        await asyncio.sleep(POLL_S)
    raise UserError(f"the broker at {config.bootstrap} made partitions and does not show them; run this again")


async def _wait(config: KafkaConfig, new: range, wait_s: float, report: Callable[[int, int], None]) -> tuple[int, int]:
    reader = KafkaLogReader(config, None)
    until = time.monotonic() + wait_s
    while True:
        bounds = await reader.bounds(FRONTIER, new) if new else {}
        begun = sum(end >= BEGUN for _, end in bounds.values())
        report(begun, len(new))
        if begun == len(new) or time.monotonic() > until:
            return begun, len(new)
        await asyncio.sleep(LOOK_S)
