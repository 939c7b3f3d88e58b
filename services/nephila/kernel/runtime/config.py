"""Configuration: one frozen struct per service, filled from a mapping and the environment; unknown keys are errors.

A field whose type is a struct is a section. A setting has one name, its path: `dns.ttl_s` in a message and in a row of
the options, a map in a file (`dns: {ttl_s: 60}`), and two underscores in a variable (`NEPHILA_DOWNLOADER__DNS__TTL_S`).

A setting of type `Secret` can be in a file: the setting `<name>_file`, or the variable of the setting with `_FILE`
behind it, names that file. Other users of a machine can read a command line or an environment, but not such a file.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import absence
from nephila.kernel.runtime.secret_files import read_secret

C = TypeVar("C", bound=msgspec.Struct)
SECTIONS = ("program", "kafka", "scheduler", "downloader", "parser", "storage", "api", "operator")
"""Services that a variable NEPHILA_<SERVICE>__<SETTING> may name; any other name is an error."""
_VARIABLE = re.compile(r"NEPHILA_(.*?)__(.*)", re.IGNORECASE | re.DOTALL)
Positive = Annotated[int, msgspec.Meta(ge=1)]
"""A number from 1 on."""
Secret = Annotated[str, msgspec.Meta(extra={"secret": True})]
"""A password, a token, or a URL that contains one."""
FILE = "_file"
"""End of the name of a setting that names the file of a secret."""


def section_of(extension: str) -> msgspec.Meta:
    """The mark of a section that only the package of an extension uses: without the package, no field of it may be
    set."""
    return msgspec.Meta(extra={"extension": extension})


class Setting(NamedTuple):
    """A setting of a service: a field that is no section."""

    field: msgspec.structs.FieldInfo
    extension: str
    """Extension that its section belongs to; empty: the core."""

    @property
    def is_secret(self) -> bool:
        return bool(_extra(self.field.type, "secret"))


@cache
def settings(cls: type[msgspec.Struct]) -> Mapping[str, Setting]:
    """The settings of a struct by path."""
    # Not by msgspec.inspect, which describes each type in full: a program reads four of these structs at its start.
    by_path = {}
    for field in msgspec.structs.fields(cls):
        if (section := section_class(field.type)) is None:
            by_path[field.name] = Setting(field, "")
        else:
            extension = _extra(field.type, "extension") or ""
            for path, setting in settings(section).items():
                by_path[f"{field.name}.{path}"] = Setting(setting.field, extension)
    return by_path


def section_class(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct of a field that is a section; None for any other field."""
    kind = annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _extra(annotation: Any, key: str) -> Any:
    notes = getattr(annotation, "__metadata__", ())
    return next((note.extra[key] for note in notes if (getattr(note, "extra", None) or {}).get(key)), None)


def by_section(values: Mapping[str, Any], above: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Values by path as a map with a map for each section, as a file has them, in place of those in `above`."""
    result = dict(above)
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if not rest:
            result[name] = value
        elif isinstance(section := result.get(name, {}), Mapping):  # `load` refuses any other
            result[name] = by_section({rest: value}, section)
    return result


def replaced(config: C, values: Mapping[str, Any]) -> C:
    """A config with other values of some settings, by path."""
    changes = {
        name: replaced(getattr(config, name), value) if isinstance(value, dict) else value
        for name, value in by_section(values).items()
    }
    return msgspec.structs.replace(config, **changes)


def value_of(config: msgspec.Struct, path: str) -> Any:
    """The value of a setting."""
    return reduce(getattr, path.split("."), config)


def variable_of(service: str, path: str) -> str:
    """The name of the variable of a setting."""
    return f"NEPHILA_{service}__{path.replace('.', '__')}".upper()


def load(cls: type[C], values: Mapping[str, Any], where: str, service: str = "") -> C:
    """Build a config struct from `values`, overridden by the variables of `service` from the environment.

    `where` names the source in error messages (a file, "command line"). Raises `UsageError` in one line, also for a
    number below 0 and one that is none: no setting means anything by it.
    """
    names, secrets = _names(cls), secret_fields(cls)
    by_path = _by_path(cls, values, where)
    for path in by_path:
        if path not in names:
            near = _nearest(path, names)
            hint = f"did you mean {near!r}?" if near else f"known are {', '.join(names)}"
            raise UsageError(f"{where}: unknown setting {path!r}; {hint}")
    merged = _with_files(by_path, secrets, where)
    environment = _environment(names, service) if service else {}
    if environment:
        merged |= _with_files(environment, secrets, "environment")
    for path in merged:
        if (extension := settings(cls)[path].extension) and (reason := absence(extension)):
            source = f"environment: {variable_of(service, path)}" if path in environment else f"{where}: {path}"
            raise UsageError(f"{source} is set, and {reason}")
    try:
        config = msgspec.convert(by_section(merged), cls, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise UsageError(_wrong_value(str(error), where, service, environment)) from None
    for path in settings(cls):
        value = value_of(config, path)
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise UsageError(f"{where}: {path} must be a number from 0 on, not {value}")
    return config


@cache
def _names(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Every path that may be set."""
    return tuple(sorted({*settings(cls), *(name + FILE for name in secret_fields(cls))}))


def _by_path(cls: type[msgspec.Struct], values: Mapping[str, Any], where: str, above: str = "") -> dict[str, Any]:
    """The values of a file by path."""
    sections = {field.name: section_class(field.type) for field in msgspec.structs.fields(cls)}
    by_path: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{above}{key}"
        if section := sections.get(key):
            if not isinstance(value, Mapping):
                raise UsageError(f"{where}: {path} is a section with the settings {', '.join(settings(section))}")
            by_path |= _by_path(section, value, where, f"{path}.")
        elif "." in str(key):
            raise UsageError(f"{where}: unknown setting {path!r}; a section is a map with its settings")
        else:
            by_path[path] = value
    return by_path


def _nearest(path: str, names: Sequence[str]) -> str:
    """The known path nearest to an unknown one: with the same last name, else of similar spelling; empty: none."""
    last = "." + path.rpartition(".")[2]
    same = [name for name in names if name.endswith(last)]
    return next(iter(same or difflib.get_close_matches(path[:60], names, n=1)), "")


def _wrong_value(error: str, where: str, service: str, environment: Mapping[str, Any]) -> str:
    """The line for a value of the wrong type. It does not repeat the value, which may be a secret."""
    field = re.search(r" - at `\$\.([\w.]+)", error)
    if field is None or field[1] not in environment:
        return f"{where}: {error}"
    variable = variable_of(service, field[1])
    if "`array`, got `str`" in error:
        return f"environment: {variable} is a list: write it in brackets, {variable}='[\"VALUE\"]'"
    return f"environment: {variable}: {error.partition(' - at ')[0]}"


def check_environment(sections: Mapping[str, type[msgspec.Struct]]) -> None:
    """Raise `UsageError` for a variable of these services that is not a setting; they may share one environment."""
    for service, cls in sections.items():
        _environment(_names(cls), service)


def secret_fields(cls: type[msgspec.Struct]) -> frozenset[str]:
    """Paths of the settings of type `Secret`."""
    return frozenset(path for path, setting in settings(cls).items() if setting.is_secret)


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
            contents[name] = read_secret(str(path), f"{where}: {name}{suffix}")
    return contents


def _path(kind: type, value: Any) -> Any:
    """Conversion of types that msgspec does not know."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise NotImplementedError(f"a setting of type {kind.__name__}")


def _environment(names: Sequence[str], service: str) -> dict[str, str]:
    values = {}
    for name, value in os.environ.items():
        if (variable := _VARIABLE.fullmatch(name)) is None:
            continue
        section = variable[1].lower()
        if section not in SECTIONS or not name.startswith(f"NEPHILA_{section.upper()}__"):
            raise UsageError(f"environment: {name} is no setting: NEPHILA_<SERVICE>__<SETTING>{_close(name)}")
        if section == service:
            path = variable[2].lower().replace("__", ".")
            if path not in names:
                near = _nearest(path, names)
                hint = f"did you mean {variable_of(service, near)}?" if near else f"known are {', '.join(names)}"
                raise UsageError(f"environment: {name} names no setting of {service}; {hint}")
            values[path] = listed(name, value)
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
