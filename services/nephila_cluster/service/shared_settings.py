"""Settings that must be equal in all services of a system: where each is written, which others follow from it, which
are compared between members.

A shared setting is written once, at the top of the file or as NEPHILA_PROGRAM__<SETTING>. The settings of the service
that it comes from (`HOME`) may hold it instead; any other service may repeat it. A different value is refused with both
places. The name for robots.txt follows from the User-Agent, in all services. Pure but for the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from nephila.downloader.http.config import HttpConfig
from nephila.kernel.net.robots import product_token
from nephila.kernel.runtime.config import by_section, listed, settings, variable_of
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.option_fields import config_classes
from nephila.programs.robots_names import TOKENS, Sections, check_names, given_in
from nephila.storage.source import without_password
from nephila_control.config import ControlConfig

CONFIGS: dict[str, type[msgspec.Struct]] = {**config_classes(), "api": ControlConfig}
HOME = {
    "user_agent": "downloader",
    "contact": "downloader",
    "per_address": "scheduler",
    "address_gap_s": "scheduler",
    "networks": "scheduler",
    "tenants": "scheduler",
}
"""Shared setting → the service in whose section it may be written instead of the top."""
SQLITE = "sqlite"


def shared(top: Mapping[str, Any], sections: Sections, where: str) -> dict[str, Any]:
    """The shared settings of the system, each with the one value that was given for it, or its default. Raises
    `UsageError` when two places differ."""
    values = {}
    for name, home in HOME.items():
        field = settings(CONFIGS[home])[_path(home, name)].field
        values_of = list(_given(name, field.type, top, sections, where))
        source, value = "the default", field.default
        for service, where_given, given_value in values_of:
            if service in ("", home):
                source, value = where_given, given_value
                break
        for _, where_given, given_value in values_of:
            if _normal(given_value) != _normal(value):
                raise UsageError(
                    f"{where_given} is {_shown(given_value)}, {source} is {_shown(value)}: all services have to agree"
                    f" on it; set {name} once, at the top of the file or as NEPHILA_PROGRAM__{name.upper()}"
                )
        values[name] = value
    check_names(robots_name(values), sections, where)
    return values


def own_settings(service: str, values: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """The section of one service with the shared settings in it, and what follows from them."""
    own = by_section({path: value for name, value in common.items() if (path := _path(service, name))}, values)
    if (field := TOKENS.get(service)) is not None:
        own[field] = robots_name(common)
    return own


def robots_name(common: Mapping[str, Any]) -> str:
    """The name of this system in robots.txt."""
    return product_token(HttpConfig(user_agent=common["user_agent"], contact=common["contact"]).agent())


def agreed(service: str, member: str, common: Mapping[str, Any], config: Any) -> dict[str, str]:
    """The settings that a member publishes; the other members compare those that they have as well."""
    if service == "storage":
        store = without_password(config.store) if config.store else f"nephila.db of {member}"
        return {"store": store}
    values = {"user_agent": robots_name(common)}
    if service in ("scheduler", "downloader"):
        values |= {name: _shown(common[name]) for name in ("per_address", "address_gap_s", "networks")}
    return values


def wants_sqlite(values: Mapping[str, Any]) -> bool:
    """Whether the section of storage names nephila.db."""
    variable = variable_of("storage", "formats")
    formats = values.get("formats") or listed(variable, os.environ.get(variable))
    return SQLITE in (formats or ())


def _given(
    name: str, kind: Any, top: Mapping[str, Any], sections: Sections, where: str
) -> Iterator[tuple[str, str, Any]]:
    """(service or empty, where it is written, value) for each place with the setting, the top first."""
    yield from given_in("", name, kind, top, where)
    for service in CONFIGS:
        if path := _path(service, name):
            yield from given_in(service, path, kind, sections.get(service, {}), where)


def _path(service: str, name: str) -> str:
    """The path of a shared setting in the section of a service; empty: the service has none. The last names are equal
    in all services."""
    return next((path for path in settings(CONFIGS[service]) if path.rpartition(".")[2] == name), "")


def _normal(value: Any) -> Any:
    return sorted(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(sorted(value)) or "empty"
    return f"{value:g}" if isinstance(value, int | float) else repr(value)
