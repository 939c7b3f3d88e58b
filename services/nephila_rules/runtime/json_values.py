"""JSON in documents: parsing of JSON that may be truncated or followed by other text. Loaded by every parser; JSONPath,
whose library takes 40 ms to import, is in jsonpath.py.

Invariants: nesting too deep for the stack is an error; every value can be written as UTF-8 JSON: a lone surrogate
becomes U+FFFD, Infinity and NaN become null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

import msgspec

MAX_JSON_CHARS: Final = 16 << 20
MAX_NODES: Final = 100_000
"""Values examined, or returned by one query."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


_lenient = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=lambda _: None)


class JsonError(ValueError):
    """The text is no JSON."""


def parse_json(text: str) -> Any:
    """The value at the start of a text; text after it (a semicolon, a script) is ignored. Raises `JsonError`."""
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
    """The value with U+FFFD for lone surrogates and None for numbers that JSON cannot express. Raises
    `RecursionError`."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value, outermost first."""
    stack, left = [value], MAX_NODES
    while stack and left:
        left -= 1
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(reversed([inner for inner in node.values() if isinstance(inner, dict | list)]))
        elif isinstance(node, list):
            stack.extend(reversed(node))
