"""Live settings: what can be changed on the members of a system while they run, and the check of each value.

A setting counts for all members that read it, or for one: then its key is SERVICE/MEMBER:NAME, and it has precedence.
The control API refuses other keys and values; each service program applies the settings that it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

LEVELS = ("debug", "info", "warning", "error")
LOG_LEVEL, CONNECTIONS, SPEED, DEPTH = "log_level", "connections", "speed", "depth"
MOST_CONNECTIONS = 100_000
FETCHING = ("downloader", "browser", "fetchparse")


class LiveSetting(NamedTuple):
    """One row of the table."""

    values: str
    """The values that are accepted, for people."""
    accepts: Callable[[Any], bool]
    services: tuple[str, ...] = ()
    """Services that read it; empty: all."""


LIVE_SETTINGS: dict[str, LiveSetting] = {
    LOG_LEVEL: LiveSetting(", ".join(LEVELS), lambda value: value in LEVELS),
    CONNECTIONS: LiveSetting(
        f"the numbers from 1 to {MOST_CONNECTIONS:,} (concurrent fetches)",
        lambda value: type(value) is int and 1 <= value <= MOST_CONNECTIONS,
        FETCHING,
    ),
    SPEED: LiveSetting(
        "the numbers above 0 (fetches started per second)",
        lambda value: type(value) in (int, float) and 0 < value < 1e6,
        FETCHING,
    ),
    DEPTH: LiveSetting(
        "the numbers from 0 (largest depth of links that are admitted)",
        lambda value: type(value) is int and 0 <= value < 1 << 31,
        ("scheduler",),
    ),
}


class SettingScope(NamedTuple):
    """Whose setting it is; two empty texts: of all members."""

    service: str = ""
    member: str = ""


def key_of(scope: SettingScope, name: str) -> str:
    """The key of a setting in the topic `settings`."""
    return f"{scope.service}/{scope.member}:{name}" if scope.member else name


def parse_key(key: str) -> tuple[SettingScope, str]:
    """The scope and the name of a setting."""
    member, colon, name = key.rpartition(":")
    if not colon:
        return SettingScope(), key
    service, _, member = member.partition("/")
    return SettingScope(service, member), name


def check(key: str, value: Any) -> str:
    """The fault of a change, in one line; empty: none. None as value takes the default back."""
    scope, name = parse_key(key)
    setting = LIVE_SETTINGS.get(name)
    if setting is None:
        return f"no live setting {name[:100]!r}; there are: {', '.join(LIVE_SETTINGS)}"
    if scope.member and setting.services and scope.service not in setting.services:
        return f"{name} is a setting of {', '.join(setting.services)}, and {scope.member} is a {scope.service}"
    if value is not None and not setting.accepts(value):
        return f"{name}: {str(value)[:40]!r} is none of {setting.values}"
    return ""
