r"""Replacement texts with groups of the match.

`\1`, `\g<1>` or `\g<name>` is a group ("" if it did not match), `\0` the match, `\n` and `\t` line end and tab, `\\` a
backslash; any other text is literal. RE2's own expansion decodes a text as Latin-1, which breaks non-ASCII letters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from nephila_rules.runtime.selectors import compiled

_MARK: Final = re.compile(r"\\(?:(\d{1,2})|g<(\w{1,60})>|([\\nt]))")
_SAID: Final = {"\\": "\\", "n": "\n", "t": "\t"}


def expand(instead: str, match: Any) -> str:
    """`instead` for a match of RE2."""
    return "".join([part if type(part) is str else match.group(part) or "" for part in _parts(instead)])


def fault(pattern: str, instead: str) -> str:
    """Why `instead` does not fit an expression; "" when it does."""
    expression = compiled("regex", pattern)
    for part in _parts(instead):
        if type(part) is int and part > expression.groups:
            return f"there is no group {part} in {pattern[:60]!a}; it has {expression.groups}"
    for name in re.findall(r"\\g<(\w*)>", instead):
        if not name.isdecimal() and name not in expression.groupindex:
            return f"there is no group {name!r} in {pattern[:60]!a}; (?P<{name}>...) makes one"
    return ""


class _Name(str):
    """Of a group, beside text that is itself."""

    __slots__ = ()


@lru_cache(maxsize=4096)
def _parts(instead: str) -> tuple[str | int | _Name, ...]:
    parts: list[str | int | _Name] = []
    at = 0
    for mark in _MARK.finditer(instead):
        number, name, sign = mark.groups()
        parts.append(instead[at : mark.start()])
        if sign:
            parts.append(_SAID[sign])
        else:
            word = number or name
            parts.append(int(word) if word.isascii() and word.isdecimal() else _Name(word))
        at = mark.end()
    parts.append(instead[at:])
    return tuple(part for part in parts if part != "")
