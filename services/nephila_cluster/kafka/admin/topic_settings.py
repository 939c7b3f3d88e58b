"""Settings of topics at the broker: those of the route, those that a person chooses, and all others.

Invariant: only the route's keys and chosen keys are written, one by one (IncrementalAlterConfigs, Kafka 2.3); all
other settings of a topic stay. aiokafka 0.14 has only the request that replaces all settings of a topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, Schema, String
from nephila.kernel.runtime.errors import UsageError, UserError, suggest
from nephila.kernel.topics import Topic

ALL = "*"
FIXED = {
    "cleanup.policy": "compacted topics and logs differ in it",
    "message.timestamp.type": "members compare their clocks with the broker's timestamps",
}
"""Keys that cannot be chosen, and why."""
ON_TOPIC = 1
"""Source of a setting that was made on the topic itself."""
SET = 0
VISIBLE_S, POLL_S = 10.0, 0.05
"""How long a broker may take to show a setting, and the interval of checks."""
TOPIC = int(ConfigResourceType.TOPIC)

Settings = dict[str, str]


class IncrementalAlterConfigsResponse(Response):  # type: ignore[misc]
    """Version 0."""

    API_KEY = 44
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "resources",
            Array(
                ("error_code", Int16),
                ("error_message", String("utf-8")),
                ("resource_type", Int8),
                ("resource_name", String("utf-8")),
            ),
        ),
    )


class IncrementalAlterConfigsStruct(RequestStruct):  # type: ignore[misc]
    """Version 0."""

    API_KEY = 44
    API_VERSION = 0
    RESPONSE_TYPE = IncrementalAlterConfigsResponse
    SCHEMA = Schema(
        (
            "resources",
            Array(
                ("resource_type", Int8),
                ("resource_name", String("utf-8")),
                (
                    "config_entries",
                    Array(
                        ("config_name", String("utf-8")),
                        ("config_operation", Int8),
                        ("config_value", String("utf-8")),
                    ),
                ),
            ),
        ),
        ("validate_only", Boolean),
    )


class IncrementalAlterConfigs(Request[IncrementalAlterConfigsStruct]):  # type: ignore[misc]
    """Sets single keys, by topic."""

    API_KEY = 44

    def __init__(self, changes: Mapping[str, Settings]) -> None:
        self._changes = changes

    def build(self, request_struct_class: type[IncrementalAlterConfigsStruct]) -> IncrementalAlterConfigsStruct:
        resources = [
            (TOPIC, name, [(key, SET, value) for key, value in settings.items()])
            for name, settings in self._changes.items()
        ]
        return request_struct_class(resources, False)


def chosen(choices: Iterable[str], topics: Iterable[Topic]) -> dict[str, Settings]:
    """Settings by topic, from lines TOPIC:KEY=VALUE; `*` means every topic, and a later line wins. Raises
    `UsageError`."""
    by_topic: dict[str, Settings] = {topic.name: {} for topic in topics}
    for line in choices:
        name, colon, setting = line.partition(":")
        key, equals, value = setting.partition("=")
        key, value = key.strip(), value.strip()
        if not (colon and equals and key and value):
            raise UsageError(f"--config {line!r} is not of the form TOPIC:KEY=VALUE, as in pages:retention.ms=86400000")
        if name != ALL and name not in by_topic:
            raise UsageError(f"--config {line!r}: there is no topic {name!r}; {suggest(name, by_topic)}")
        if key in FIXED:
            raise UsageError(f"--config {line!r}: {key} cannot be chosen: {FIXED[key]}")
        for topic_name in by_topic if name == ALL else (name,):
            by_topic[topic_name][key] = value
    return by_topic


async def described(client: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, Settings]:
    """Settings made on these topics themselves, without the broker's defaults. Raises `KafkaError`."""
    answers = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    settings_of: dict[str, Settings] = {}
    for answer in answers:
        for code, message, _, name, entries in answer.resources:
            _refuse(name, code, message)
            settings_of[name] = {key: value for key, value, _, source, *_ in entries if source == ON_TOPIC}
    return settings_of


async def alter(client: AIOKafkaAdminClient, changes: Mapping[str, Settings]) -> None:
    """Set single keys by topic, and wait until the broker shows them. Raises `UserError` for a refused value,
    `KafkaError`."""
    if not changes:
        return
    answer = await client._send_to_controller(IncrementalAlterConfigs(changes))
    for code, message, _, name in answer.resources:
        _refuse(name, code, message)
    for _ in range(int(VISIBLE_S / POLL_S)):
        now = await described(client, changes)
        if all(settings.items() <= now[name].items() for name, settings in changes.items()):
            return
        await asyncio.sleep(POLL_S)


def _refuse(name: str, code: int, message: Any) -> None:
    if code:
        detail = " ".join(str(message or "").split())
        raise UserError(f"topic {name}: {for_code(code).__name__}: {detail}")
