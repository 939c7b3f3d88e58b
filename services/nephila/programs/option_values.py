"""Values of options: from a command line or a call to what a run keeps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from typing import Any, get_args

from nephila.programs.options import Option, is_list


def read(kind: Any, option: Option, value: Any) -> Any:
    """The value of an option as a run keeps it, from a command line or a call. Raises `ValueError` with the reason."""
    if value is None and None.__class__ in get_args(kind):
        return None
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{_shown(value)} is neither True nor False")
        return value
    if option.seconds:
        return _seconds(value)
    if option.least is not None:
        return _count(option, value)
    if is_list(kind):
        return _texts(value)
    if option.file and isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, float | int) and not isinstance(value, bool) and float in get_args(kind):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is no text like {option.metavar.partition('|')[0]!r}")
    return os.path.abspath(value) if option.file and value else value


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

        value = (parse_size if option.size else parse_count)(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ValueError(f"{_shown(value)} is no whole number")
    least, most = option.least or 0, option.most or 0
    if not least <= value <= most:
        raise ValueError(f"{_shown(value)} is not in the range {least} to {most:,}")
    return int(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = [f"{key}: {one}" for key, one in value.items()]
    found = [value] if isinstance(value, str) else list(value) if isinstance(value, Sequence | Set) else [value]
    for one in found:
        if not isinstance(one, str):
            raise ValueError(f"{_shown(one)} is no text; it is a list of texts")
    return found


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:59] + "…"
