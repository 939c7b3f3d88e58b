"""JSON in documents: parsing what may be torn or followed by something else. Every program that parses loads this;
JSONPath on it, whose library costs a start 40 ms, is in jsonpath.py.

Invariants: nesting that no stack holds is no value, but an error; every value can be written as JSON, UTF-8: half an
emoji is U+FFFD, Infinity and NaN are null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

import msgspec

MAX_JSON_CHARS: Final = 16 << 20
MAX_NODES: Final = 100_000
"""Values that are looked at, or given by one query, at most."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


_lenient = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=lambda _: None)


class JsonError(ValueError):
    """The text is no JSON."""


def parse_json(text: str) -> Any:
    """The value at the start of a text; what follows it (a semicolon, a script) is ignored. Raises `JsonError`."""
    if len(text) > MAX_JSON_CHARS:
        raise JsonError(f"more than {MAX_JSON_CHARS >> 20} Mi characters")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return storable(_lenient.raw_decode(text.lstrip("\ufeff \t\r\n"))[0])
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise JsonError(reason[:200]) from None


def storable(value: Any) -> Any:
    """The same, with U+FFFD for lone surrogates and None for numbers that JSON has no word for. Raises
    `RecursionError`."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list | tuple):
        return [storable(one) for one in value]
    if isinstance(value, dict):
        return {storable(key): storable(one) for key, one in value.items()}
    return value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value, outermost first."""
    stack, left = [value], MAX_NODES
    while stack and left:
        left -= 1
        one = stack.pop()
        if isinstance(one, dict):
            yield one
            stack.extend(reversed([inner for inner in one.values() if isinstance(inner, dict | list)]))
        elif isinstance(one, list):
            stack.extend(reversed(one))
