"""The layout of a system that has grown, as the topic `settings` has it."""

from __future__ import annotations

import msgspec
from nephila.kernel.bus.contract import newest
from nephila.kernel.layout import LAYOUT, LayoutSetting
from nephila.kernel.topics import SETTINGS

from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.log_reader import KafkaLogReader


async def stored_layout(config: KafkaConfig) -> LayoutSetting | None:
    """The latest one; None for a system that has never grown. O(records of the topic). Raises `TemporaryError`."""
    setting = (await newest(KafkaLogReader(config, None), SETTINGS)).get(LAYOUT)
    return None if setting is None else msgspec.json.decode(setting.value, type=LayoutSetting)


def other_number(config: KafkaConfig, setting: LayoutSetting) -> str:
    """The error line for a service with another number of partitions in its settings than at the creation."""
    return (
        f"the system has grown from {setting.base} to {setting.count} partitions, and the settings here name "
        f"{config.partitions}: set partitions: {setting.base}, the number at its creation; the present one is in the "
        "topic settings"
    )
