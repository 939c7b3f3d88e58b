"""The name for robots.txt, which follows from the User-Agent in all services: a setting that says another is refused.

A setting is looked for in the environment first, then in the section of its service.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nephila.kernel.net.robots import product_token
from nephila.kernel.runtime.config import listed, variable_of
from nephila.kernel.runtime.errors import UsageError

TOKENS = {"scheduler": "agent", "parser": "robots_agent"}
"""Service → its setting that follows from the User-Agent."""

Sections = Mapping[str, Mapping[str, Any]]


def check_names(token: str, sections: Sections, where: str) -> None:
    """Raise `UsageError` where a service has another name for robots.txt than the one in the User-Agent."""
    for service, field in TOKENS.items():
        for _, where_given, given_value in given_in(service, field, str, sections.get(service, {}), where):
            if product_token(given_value) != token:
                raise UsageError(
                    f"{where_given} is {given_value!r}, but robots.txt is asked for the name in the User-Agent,"
                    f" {token!r}: leave it out and set user_agent"
                )


def given_in(
    service: str, path: str, kind: Any, values: Mapping[str, Any], where: str
) -> Iterator[tuple[str, str, Any]]:
    variable = variable_of(service or "program", path)
    *sections, name = path.split(".")
    for section in sections:
        below = values.get(section)
        values = below if isinstance(below, Mapping) else {}
    if variable in os.environ:
        where_given, value = variable, listed(variable, os.environ[variable])
    elif name in values:
        where_given, value = f"{where}: {service}.{path}" if service else f"{where}: {path}", values[name]
    else:
        return
    try:
        yield service, where_given, msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where_given}: {error}") from None
