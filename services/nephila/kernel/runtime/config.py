"""Configuration: one frozen struct per service, filled from a mapping and the environment; unknown keys are errors."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from nephila.kernel.runtime.errors import UsageError, suggest

C = TypeVar("C", bound=msgspec.Struct)
SECTIONS = ("program", "kafka", "scheduler", "downloader", "parser", "storage", "api", "operator")
"""Services that a variable NEPHILA_<SERVICE>__<FIELD> may name; any other name is an error."""
_VARIABLE = re.compile(r"NEPHILA_(.*?)__(.*)", re.IGNORECASE | re.DOTALL)
Positive = Annotated[int, msgspec.Meta(ge=1)]
"""A number from 1 on."""


def load(cls: type[C], values: Mapping[str, Any], where: str, service: str = "") -> C:
    """Build a config struct from `values`, overridden by NEPHILA_<SERVICE>__<FIELD> from the environment.

    `where` names the source in error messages (a file, "command line"). Raises `UsageError` in one line, also for a
    number below 0 and one that is none: no setting means anything by it.
    """
    known = {field.name for field in msgspec.structs.fields(cls)}
    for key in values:
        if key not in known:
            raise UsageError(f"{where}: unknown setting {key!r}; {suggest(key, sorted(known))}")
    merged: dict[str, Any] = {**values, **(_environment(known, service) if service else {})}
    try:
        config = msgspec.convert(merged, cls, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None
    for name in known:
        value = getattr(config, name)
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise UsageError(f"{where}: {name} must be a number from 0 on, not {value}")
    return config


def check_environment(sections: Mapping[str, type[msgspec.Struct]]) -> None:
    """Raise `UsageError` for a variable of these services that is not a setting; they may share one environment."""
    for service, cls in sections.items():
        _environment({field.name for field in msgspec.structs.fields(cls)}, service)


def _path(kind: type, value: Any) -> Any:
    """Conversion of types that msgspec does not know."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise NotImplementedError(f"a setting of type {kind.__name__}")


def _environment(known: set[str], service: str) -> dict[str, str]:
    found = {}
    for name, value in os.environ.items():
        if (variable := _VARIABLE.fullmatch(name)) is None:
            continue
        section = variable[1].lower()
        if section not in SECTIONS or not name.startswith(f"NEPHILA_{section.upper()}__"):
            raise UsageError(f"environment: {name} is no setting: NEPHILA_<SERVICE>__<FIELD>{_close(name)}")
        if section == service:
            key = variable[2].lower()
            if key not in known:
                raise UsageError(f"environment: {name} names no setting of {service}; {suggest(key, sorted(known))}")
            found[key] = listed(name, value)
    return found


def _close(name: str) -> str:
    section, _, field = name.upper().removeprefix("NEPHILA_").partition("__")
    near = difflib.get_close_matches(section.lower(), SECTIONS, n=1)
    known = f"; known services are {', '.join(SECTIONS)}"
    return f"; did you mean NEPHILA_{near[0].upper()}__{field}?" if near else known


def listed(name: str, value: Any) -> Any:
    """The value of a variable; a list is written as JSON, since its items may contain any separator."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise UsageError(f"environment: {name} begins as a JSON list and is none: {error}") from None
