"""Values of options: from a command line or a call to what a run keeps, and from there to the settings of services."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence, Set
from typing import Any, get_args

from nephila.kernel.runtime.config import settings
from nephila.programs.option_fields import JOB, config_classes
from nephila.programs.option_row import DIR, FILE, SIZE, TIME, N, Option
from nephila.programs.option_table import defaults, is_list, table


def read(kind: Any, option: Option, value: Any) -> Any:
    """The value of an option as a run keeps it, from a command line or a call. Raises `ValueError` with the reason."""
    if value is None and None.__class__ in get_args(kind):
        return None
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{_shown(value)} is neither True nor False")
        return value
    if option.metavar is TIME:
        return _seconds(value)
    if option.metavar in (N, SIZE):
        return _count(option, value)
    if is_list(kind):
        return _texts(value)
    is_path = option.metavar in (FILE, DIR)
    if is_path and isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, float | int) and not isinstance(value, bool) and float in get_args(kind):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is no text like {option.metavar.partition('|')[0]!r}")
    if not is_path or not value:
        return value
    path = os.path.abspath(value)
    return option.reader(path) if option.reader else path


def settings_of(options: Mapping[str, Any], command: str = "crawl") -> dict[str, dict[str, Any]]:
    """Service → the settings by path that the options of a command set. An option with its default sets none, so that
    the default of the service or an earlier setting counts."""
    classes = config_classes()
    values: dict[str, dict[str, Any]] = {service: {} for service in classes}
    without = defaults(command)
    for name, (_, option) in table(command).items():
        if name not in options or options[name] == without[name]:
            continue
        for path, convert in option.fields.items():
            service, _, setting = path.partition(".")
            if convert is not None and service != JOB:
                present = values[service].get(setting, settings(classes[service])[setting].field.default)
                values[service][setting] = convert(options[name], present)
    return values


def _seconds(value: Any) -> float:
    from nephila.kernel.documents.field_types import DECADE_S, parse_seconds  # not for each import: it loads RE2

    if isinstance(value, str):
        return parse_seconds(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= DECADE_S:
        raise ValueError(f"{_shown(value)} is no duration like 0.5, '500ms' or '1h30m', at most ten years")
    return float(value)


def _count(option: Option, value: Any) -> int:
    if isinstance(value, str):
        from nephila.kernel.documents.field_types import parse_count, parse_size

        value = (parse_size if option.metavar is SIZE else parse_count)(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ValueError(f"{_shown(value)} is no whole number")
    least, most = option.least or 0, sys.maxsize if option.most is None else option.most
    if not least <= value <= most:
        raise ValueError(f"{_shown(value)} is not in the range {least} to {most:,}")
    return int(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = [f"{key}: {text}" for key, text in value.items()]
    texts = [value] if isinstance(value, str) else list(value) if isinstance(value, Sequence | Set) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{_shown(text)} is no text; it is a list of texts")
    return texts


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:59] + "…"
