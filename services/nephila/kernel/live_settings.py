"""Live settings: what can be changed on all members of a system while they run, and the check of each value.

The control API refuses other names and values; each service program applies the ones it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

LEVELS = ("debug", "info", "warning", "error")
LOG_LEVEL = "log_level"


class LiveSetting(NamedTuple):
    """One row of the table."""

    values: str
    """The values that are accepted, for people."""
    accepts: Callable[[Any], bool]


LIVE_SETTINGS: dict[str, LiveSetting] = {
    LOG_LEVEL: LiveSetting(", ".join(LEVELS), lambda value: value in LEVELS),
}


def check(name: str, value: Any) -> str:
    """What is wrong with a change, in one line; empty: nothing. None as value takes the default back."""
    setting = LIVE_SETTINGS.get(name)
    if setting is None:
        return f"no live setting {name!r}; there are: {', '.join(LIVE_SETTINGS)}"
    if value is not None and not setting.accepts(value):
        return f"{name}: {str(value)[:40]!r} is none of {setting.values}"
    return ""
