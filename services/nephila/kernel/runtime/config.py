"""Configuration: one frozen struct per service, filled from a mapping and the environment; unknown keys are errors.

A setting of type `Secret` can be in a file: the setting `<name>_file`, or the variable of the setting with `_FILE`
behind it, names that file. Other users of a machine can read a command line or an environment, but not such a file.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
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
Secret = Annotated[str, msgspec.Meta(extra={"secret": True})]
"""A password, a token, or a URL that contains one."""
FILE = "_file"
"""End of the name of a setting that names the file of a secret."""


def load(cls: type[C], values: Mapping[str, Any], where: str, service: str = "") -> C:
    """Build a config struct from `values`, overridden by NEPHILA_<SERVICE>__<FIELD> from the environment.

    `where` names the source in error messages (a file, "command line"). Raises `UsageError` in one line, also for a
    number below 0 and one that is none: no setting means anything by it.
    """
    fields = set(cls.__struct_fields__)
    secrets = secret_fields(cls)
    names = fields | {name + FILE for name in secrets}
    for key in values:
        if key not in names:
            raise UsageError(f"{where}: unknown setting {key!r}; {suggest(key, sorted(names))}")
    merged = _with_files(values, secrets, where)
    environment = _environment(names, service) if service else {}
    if environment:
        merged |= _with_files(environment, secrets, "environment")
    try:
        config = msgspec.convert(merged, cls, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise UsageError(_wrong_value(str(error), where, service, environment)) from None
    for name in fields:
        value = getattr(config, name)
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise UsageError(f"{where}: {name} must be a number from 0 on, not {value}")
    return config


def _wrong_value(error: str, where: str, service: str, environment: Mapping[str, Any]) -> str:
    """The line for a value of the wrong type. It does not repeat the value, which may be a secret."""
    field = re.search(r" - at `\$\.(\w+)", error)
    if field is None or field[1] not in environment:
        return f"{where}: {error}"
    variable = f"NEPHILA_{service.upper()}__{field[1].upper()}"
    if "`array`, got `str`" in error:
        return f"environment: {variable} is a list: write it in brackets, {variable}='[\"VALUE\"]'"
    return f"environment: {variable}: {error.partition(' - at ')[0]}"


def check_environment(sections: Mapping[str, type[msgspec.Struct]]) -> None:
    """Raise `UsageError` for a variable of these services that is not a setting; they may share one environment."""
    for service, cls in sections.items():
        fields = set(cls.__struct_fields__)
        _environment(fields | {name + FILE for name in secret_fields(cls)}, service)


def secret_fields(cls: type[msgspec.Struct]) -> frozenset[str]:
    """Names of the settings of type `Secret`."""
    # Not by msgspec.inspect, which describes each type in full: a program reads four of these structs at its start.
    return frozenset(
        field.name
        for field in msgspec.structs.fields(cls)
        if any((getattr(note, "extra", None) or {}).get("secret") for note in getattr(field.type, "__metadata__", ()))
    )


def secret_variable(name: str) -> str:
    """The value of a secret in the environment: the variable, or the content of the file that NAME_FILE names; empty
    if neither is set. Raises `UsageError`."""
    return str(
        _with_files(
            {key: os.environ[key] for key in (name, name + FILE.upper()) if key in os.environ},
            {name},
            "environment",
            FILE.upper(),
        ).get(name, "")
    )


def _with_files(values: Mapping[str, Any], secrets: Iterable[str], where: str, suffix: str = FILE) -> dict[str, Any]:
    """The values, with the content of files in place of their names."""
    contents = dict(values)
    for name in secrets:
        path = contents.pop(name + suffix, "")
        if path and contents.get(name):
            raise UsageError(f"{where}: {name} and {name}{suffix} are both set; set one of them")
        if path:
            contents[name] = _secret_in(path, f"{where}: {name}{suffix}")
    return contents


def _secret_in(path: Any, where: str) -> str:
    """The secret in a file, without the line end behind it."""
    try:
        text = Path(str(path)).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise UsageError(f"{where} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{where} {path} is not UTF-8 text") from None
    if not text:
        raise UsageError(f"{where} {path} is empty")
    return text


def _path(kind: type, value: Any) -> Any:
    """Conversion of types that msgspec does not know."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise NotImplementedError(f"a setting of type {kind.__name__}")


def _environment(settings: set[str], service: str) -> dict[str, str]:
    values = {}
    for name, value in os.environ.items():
        if (variable := _VARIABLE.fullmatch(name)) is None:
            continue
        section = variable[1].lower()
        if section not in SECTIONS or not name.startswith(f"NEPHILA_{section.upper()}__"):
            raise UsageError(f"environment: {name} is no setting: NEPHILA_<SERVICE>__<FIELD>{_close(name)}")
        if section == service:
            key = variable[2].lower()
            if key not in settings:
                raise UsageError(f"environment: {name} names no setting of {service}; {suggest(key, sorted(settings))}")
            values[key] = listed(name, value)
    return values


def _close(name: str) -> str:
    section, _, field = name.upper().removeprefix("NEPHILA_").partition("__")
    near = difflib.get_close_matches(section.lower(), SECTIONS, n=1)
    services = f"; known services are {', '.join(SECTIONS)}"
    return f"; did you mean NEPHILA_{near[0].upper()}__{field}?" if near else services


def listed(name: str, value: Any) -> Any:
    """The value of a variable; a list is written as JSON, since its items may contain any separator."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise UsageError(f"environment: {name} begins as a JSON list and is none: {error}") from None
