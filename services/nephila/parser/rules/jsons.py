"""JSON in documents: parsing what may be torn or followed by something else, and JSONPath (RFC 9535) on it.

Invariants: nothing here runs a backtracking regular expression - match() and search() of JSONPath are I-Regexp (RFC
9485) translated to RE2 - and nesting beyond `MAX_DEPTH` is no value, but an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import jsonpath_rfc9535
import msgspec
import re2
from iregexp_check import check
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction

MAX_JSON_CHARS: Final = 16 << 20
MAX_NODES: Final = 100_000
"""Values that one query gives at most."""

_lenient = json.JSONDecoder(strict=False)


class NoJson(ValueError):
    """The text is no JSON."""


def parse_json(text: str) -> Any:
    """The value at the start of a text; what follows it (a semicolon, a script) is ignored. Raises `NoJson`."""
    if len(text) > MAX_JSON_CHARS:
        raise NoJson(f"more than {MAX_JSON_CHARS >> 20} Mi characters")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return _lenient.raw_decode(text.lstrip("\ufeff \t\r\n"))[0]
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise NoJson(reason[:200]) from None


@lru_cache(maxsize=4096)
def iregexp(pattern: str) -> Any:
    """RE2 for an I-Regexp; None when it is none. A dot stands for all but line ends there."""
    if not check(pattern):
        return None
    out, inside, escaped = [], False, False
    for char in pattern:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        elif char == ".":
            char = r"[^\n\r]"
        out.append(char)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile("".join(out), options)
    except re2.error:
        return None


class _Regular(FilterFunction):
    """match() or search() of RFC 9535, 2.4.6 and 2.4.7."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012
    return_type = ExpressionType.LOGICAL

    def __init__(self, whole: bool) -> None:
        self._whole = whole

    def __call__(self, value: object, pattern: object) -> bool:
        """True when the value is a string that matches."""
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        found = iregexp(pattern)
        if found is None:
            return False
        try:
            return bool(found.fullmatch(value) if self._whole else found.search(value))
        except UnicodeEncodeError:  # a lone surrogate matches nothing
            return False


class _Environment(jsonpath_rfc9535.JSONPathEnvironment):
    max_recursion_depth = 200

    def setup_function_extensions(self) -> None:
        """The standard functions, those with regular expressions on RE2."""
        super().setup_function_extensions()
        self.function_extensions["match"] = _Regular(True)
        self.function_extensions["search"] = _Regular(False)


_environment = _Environment()


def jsonpath(text: str) -> Any:
    """A compiled query. Raises ValueError with the reason."""
    try:
        return _environment.compile(text)
    except jsonpath_rfc9535.JSONPathError as error:
        raise ValueError(f"not JSONPath (RFC 9535): {' '.join(str(error).split())[:200]}") from None
    except RecursionError:
        raise ValueError("not JSONPath (RFC 9535): nested too deep") from None


def query(path: Any, value: Any) -> list[Any]:
    """The values that a compiled JSONPath selects, `MAX_NODES` at most."""
    found = []
    try:
        for node in path.finditer(value):
            found.append(node.value)
            if len(found) >= MAX_NODES:
                break
    except (jsonpath_rfc9535.JSONPathError, RecursionError):
        pass
    return found


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
