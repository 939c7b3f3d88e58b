"""Path patterns: the parts of a site that a trap is found and closed by. Pure; strings in, strings out.

Patterns read like paths: `/shop/` (everything below), `/calendar/*/*` (paths that differ only in numbers),
`/shop/item?sid` (parameter sid at that path), `/find?` (any query at that path). The root of a host is no pattern, so a
whole host is never closed. A URL has at most twelve patterns.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

MAX_PARAMETERS: Final = 8
MAX_PATTERN_CHARS: Final = 120
"""Longer patterns are cut, so that hostile URLs cost little memory."""
_VARIABLE: Final = re.compile(r"[0-9a-f]{16,}|[0-9]+")


class Patterns(msgspec.Struct, frozen=True):
    """The patterns of one URL, the narrowest first, and the value of the parameter in each; empty without one."""

    patterns: list[str]
    values: list[str]


def patterns_of(url: str) -> Patterns:
    """The patterns of a WHATWG href. O(length of the URL), some microseconds."""
    path, _, query = url[url.find("/", 8) :].partition("#")[0].partition("?")
    masked = path if "%" in path else _VARIABLE.sub("*", path)
    masked = masked[:MAX_PATTERN_CHARS]
    patterns: list[str] = []
    values: list[str] = []
    if query:
        parameters = {name[:40]: value for name, _, value in map(_split, query.split("&", 64))}
        for name in list(parameters)[-MAX_PARAMETERS:]:
            patterns.append(f"{masked}?{name}")
            values.append(parameters[name])
        patterns.append(masked + "?")
        values.append(query)
    elif masked != path:
        patterns.append(masked)
        values.append("")
    # The second and the first directory, where the path has them.
    first = masked.find("/", 1) + 1
    if first:
        second = masked.find("/", first) + 1
        for end in (second, first) if second else (first,):
            directory = masked[:end]
            if directory not in patterns:
                patterns.append(directory)
                values.append("")
    return Patterns(patterns, values)


def _split(pair: str) -> tuple[str, str, str]:
    return pair.partition("=")


def common_prefix(url: str) -> str:
    """The prefix of links that stay in the pattern of a URL: up to its query, else its first directory, else its name
    in the root up to the first digit."""
    path = url.find("/", 8)
    query = url.find("?", path)
    if query >= 0:
        return url[: query + 1]
    first = url.find("/", path + 1)
    if first >= 0:
        return url[: first + 1]
    digit = _VARIABLE.search(url, path)
    return url[: digit.start()] if digit else url[: path + 1]
