"""Whether the members of a system agree on the settings that have to be the same in all of them.

Each member says its own in the claim with which it joins its group, so the broker knows those of all living members and
of no others. A member that starts compares them before it joins and once more after it: of two that start at the same
instant and differ, the later ends. A member of an older release says nothing and is passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.errors import GroupAuthorizationFailedError, GroupCoordinatorNotAvailableError, KafkaError

from nephila.kernel.bus.kafka.admin.topics import admin
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.bus.kafka.group.membership import Claim
from nephila.kernel.runtime.errors import UsageError, UserError

log = logging.getLogger(__name__)

SERVICES = ("scheduler", "downloader", "parser", "storage")
"""Groups whose members say their settings."""
IN_MOTION = ("PreparingRebalance", "CompletingRebalance")
"""States in which a broker does not say what its members claim."""
ASK_AGAIN_S = 0.5
SETTLE_S = 5.0
"""How long a start waits for groups that are in motion; what is not known then is compared after the join."""


LOADING = (14, 15, 16)
"""What a broker says of a group whose coordinator is not ready. Any other error, as of a group that nobody has joined
or that this program's user may not ask about, names no members."""


class Me(NamedTuple):
    """The member that compares."""

    groups: Collection[str]
    """Those that it joins; a member of its name there is its own earlier process."""
    started: float
    """Seconds since 1970 UTC."""
    settings: Mapping[str, str]


class Member(NamedTuple):
    """One member that the broker knows."""

    service: str
    host: str
    claim: Claim


async def refuse_differences(config: KafkaConfig, me: Me) -> None:
    """Return when nobody at work has other settings. Raises `UsageError`; a member that was killed counts until its
    session is over, so a difference is believed after that time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with admin(config) as client:
        while True:
            members, moving = await _members(client, config)
            line = next(_differences(config.name, me, members), "")
            waited = loop.time() - began
            if (not line and (not moving or waited > SETTLE_S)) or waited > config.session_s + SETTLE_S:
                break
            await asyncio.sleep(ASK_AGAIN_S)
    if line:
        raise UsageError(line)


async def later_difference(config: KafkaConfig, me: Me) -> str:
    """The line for a member that began before this one and differs; empty when there is none. Waits until all groups
    are at rest, as long as it takes."""
    while True:
        try:
            async with admin(config) as client:
                members, moving = await _members(client, config)
            line = next(_differences(config.name, me, [one for one in members if one.claim.started <= me.started]), "")
            if line or not moving:
                return line
        except (UserError, KafkaError, OSError) as error:
            log.debug("settings were not compared: %s", error)
        await asyncio.sleep(ASK_AGAIN_S)


def _differences(name: str, me: Me, members: list[Member]) -> Iterator[str]:
    for service, host, claim in members:
        if claim.name == name and service in me.groups:
            continue
        for key in sorted(me.settings.keys() & claim.settings.keys()):
            here, there = me.settings[key], claim.settings[key]
            if here != there:
                yield (
                    f"{key} is {here} here and {there} in the {service} {claim.name} ({host}), which is at work: "
                    "members of a system have to agree on it; correct the one that is wrong and start it again"
                )


async def _members(client: AIOKafkaAdminClient, config: KafkaConfig) -> tuple[list[Member], bool]:
    """All living members that say something, and whether some group is in motion. Raises `KafkaError`."""
    found, moving = [], False
    for service in SERVICES:
        # One at a time: aiokafka 0.14 misreads an answer about several.
        try:
            (answer,) = await client.describe_consumer_groups([config.prefix + service])
        except GroupCoordinatorNotAvailableError:  # a broker that has just begun
            moving = True
            continue
        except GroupAuthorizationFailedError:  # this program's user may not ask about the groups of others
            continue
        ((code, _, state, _, _, members, *_),) = answer.groups
        moving = moving or code in LOADING or state in IN_MOTION
        for *_, host, data, _ in members:
            if (claim := _claim(data)) is not None:
                found.append(Member(service, str(host).lstrip("/"), claim))
    return found, moving


def _claim(data: Any) -> Claim | None:
    try:
        return msgspec.msgpack.decode(ConsumerProtocolMemberMetadata.decode(data).user_data or b"", type=Claim)
    except (ValueError, msgspec.DecodeError):
        return None
