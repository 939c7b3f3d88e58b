"""An entry of the log of changes shows the values that differ between two states: whole documents would hide the
change. Secrets are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

LONGEST: Final = 500
"""Characters of a change in the log."""
_VALUE_CHARS: Final = 60
_SECRET = re.compile(r"pass|pwd|secret|token|cookie|authorization|pin$", re.IGNORECASE)
_MASK: Final = "…"


def difference(before: Any, after: Any) -> str:
    """Writes the values that differ, as "spec.paused: false → true; …". Values of fields that look like secrets are
    hidden."""
    if before is None or after is None:
        return "" if before is after else "created" if before is None else "deleted"
    old, new = dict(_leaves("", before)), dict(_leaves("", after))
    changed = [
        f"{name}: {_short(old, name)} → {_short(new, name)}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    text = "; ".join(changed) or "unchanged"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, leaf in value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), leaf)
    else:
        yield path, value


def _short(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return "–"
    if _SECRET.search(name):
        return _MASK
    text = msgspec.json.encode(values[name]).decode()
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"
