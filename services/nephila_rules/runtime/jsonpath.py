"""JSONPath (RFC 9535) on parsed JSON.

Invariant: nothing here runs a backtracking regular expression - match() and search() are I-Regexp (RFC 9485) translated
to RE2. Loaded with the first rule that needs it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonpath_rfc9535
import re2
from iregexp_check import check
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction

from nephila_rules.runtime.json_values import MAX_NODES


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
        regex = iregexp(pattern)
        if regex is None:
            return False
        try:
            return bool(regex.fullmatch(value) if self._whole else regex.search(value))
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
    values = []
    try:
        for node in path.finditer(value):
            values.append(node.value)
            if len(values) >= MAX_NODES:
                break
    except (jsonpath_rfc9535.JSONPathError, RecursionError):
        pass
    return values
