"""Compares the settings that all members of a system must share.

A member states its values in the claim with which it joins its group, so the broker has those of all live members,
and of no others. A starting member compares them before it joins, and once more afterwards: of two members that start
at the same time with different settings, the later one ends. Another beat makes messages late and does no harm: the
later member says so and works, so that a rolling restart can change it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.errors import GroupAuthorizationFailedError, GroupCoordinatorNotAvailableError, KafkaError
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_cluster.kafka.admin.topics import admin
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.group.membership import Claim

log = logging.getLogger(__name__)

SERVICES = ("scheduler", "downloader", "browser", "parser", "storage")
"""Groups whose members state their settings."""
BEAT = "beat_s"
IN_MOTION = ("PreparingRebalance", "CompletingRebalance")
"""Group states in which a broker does not return the members' claims."""
ASK_AGAIN_S = 0.5
SETTLE_S = 5.0
"""How long a start waits for groups in a rebalance; the comparison after the join covers the rest."""


LOADING = (14, 15, 16)
"""Error codes of a coordinator that is not ready. Any other error names no members, as for a group without members or
one that this user may not describe."""


class LocalMember(NamedTuple):
    """The member that compares."""

    groups: Collection[str]
    """Groups that it joins; a member of its name there is its own earlier process."""
    started: float
    """Seconds since 1970 UTC."""
    settings: Mapping[str, str]


class RemoteMember(NamedTuple):
    """A member of a group at the broker."""

    service: str
    host: str
    claim: Claim


async def refuse_differences(config: KafkaConfig, me: LocalMember) -> None:
    """Return when no living member has other settings. Raises `UsageError`. A killed member counts until its session
    ends, so a difference is reported only after that time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with admin(config) as client:
        while True:
            members, moving = await _members(client, config)
            line = _refusal(_differences(config.name, me, members))
            waited = loop.time() - began
            if (not line and (not moving or waited > SETTLE_S)) or waited > config.session_s + SETTLE_S:
                break
            await asyncio.sleep(ASK_AGAIN_S)
    if line:
        raise UsageError(line)


async def later_difference(config: KafkaConfig, me: LocalMember) -> str:
    """The error line for a member that started before this one and differs; empty when there is none. Waits until no
    group is in a rebalance."""
    while True:
        try:
            async with admin(config) as client:
                members, moving = await _members(client, config)
            older = [member for member in members if member.claim.started <= me.started]
            differences = list(_differences(config.name, me, older))
            line = _refusal(differences)
            if line or not moving:
                for late in [text for key, text in differences if key == BEAT][:1]:
                    log.warning("%s", late)
                return line
        except (UserError, KafkaError, OSError) as error:
            log.debug("settings were not compared: %s", error)
        await asyncio.sleep(ASK_AGAIN_S)


def _refusal(differences: Iterable[tuple[str, str]]) -> str:
    """The first line for which a member ends; empty for none."""
    return next((line for key, line in differences if key != BEAT), "")


def _differences(name: str, me: LocalMember, members: list[RemoteMember]) -> Iterator[tuple[str, str]]:
    """(setting, line) of each difference."""
    for service, host, claim in members:
        if claim.name == name and service in me.groups:
            continue
        for key in sorted(me.settings.keys() & claim.settings.keys()):
            here, there = me.settings[key], claim.settings[key]
            if here != there:
                yield (
                    key,
                    f"{key} is {here} here and {there} in the running member {service}/{claim.name} ({host}): "
                    "all members of a system must share it; correct the wrong one and restart it",
                )


async def _members(client: AIOKafkaAdminClient, config: KafkaConfig) -> tuple[list[RemoteMember], bool]:
    """All living members that state settings, and whether a group is in a rebalance. Raises `KafkaError`."""
    stating, moving = [], False
    for service in SERVICES:
        # One group per request: aiokafka 0.14 misreads an answer about several.
        try:
            (answer,) = await client.describe_consumer_groups([config.prefix + service])
        except GroupCoordinatorNotAvailableError:  # a broker that is starting
            moving = True
            continue
        except GroupAuthorizationFailedError:  # this user may not describe other groups
            continue
        ((code, _, state, _, _, members, *_),) = answer.groups
        moving = moving or code in LOADING or state in IN_MOTION
        for *_, host, data, _ in members:
            if (claim := _claim(data)) is not None:
                stating.append(RemoteMember(service, str(host).lstrip("/"), claim))
    return stating, moving


def _claim(data: Any) -> Claim | None:
    try:
        return msgspec.msgpack.decode(ConsumerProtocolMemberMetadata.decode(data).user_data or b"", type=Claim)
    except (ValueError, msgspec.DecodeError):
        return None
