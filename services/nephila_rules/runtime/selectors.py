"""The selector languages: CSS, XPath, JSONPath, JMESPath, regular expressions. One row each in `SELECTORS`.

Every expression is compiled once (`compiled`). Invariants: regular expressions are RE2; XPath has no functions that
leave the document and no EXSLT regular expressions; JSONPath is RFC 9535 with match() and search() on RE2. `bounded`
lists the expressions with a bounded cost; all others run in a child process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
import re2
from nephila.kernel.runtime.late_pattern import late_pattern

from nephila_rules.runtime.xml_tree import prefixes


class Language(msgspec.Struct, frozen=True):
    """How expressions of a language are compiled, and which of them have a bounded cost on a page of bounded size."""

    compile: Callable[[str], Any]
    """Raises ValueError with the reason."""
    bounded: Callable[[str], bool]


def fault(language: str, text: str) -> str:
    """Why an expression cannot be used; "" when it can."""
    try:
        compiled(language, text)
    except ValueError as error:
        return str(error)
    return ""


@lru_cache(maxsize=20_000)
def compiled(language: str, text: str) -> Any:
    """The compiled expression. Raises ValueError with the reason in one line."""
    return SELECTORS[language].compile(text)


def is_bounded(language: str, text: str) -> bool:
    """Whether it may be evaluated in the parser's process, on a page of bounded size and depth."""
    return SELECTORS[language].bounded(text)


# ---- CSS


@lru_cache(maxsize=1)
def _empty_tree() -> Any:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser("<p>")


def _css(text: str) -> str:
    try:
        _empty_tree().css(text)
    except Exception as error:
        hint = "; use attr: for attributes and a text is taken by itself" if "::" in text else ""
        raise ValueError(f"not a CSS selector that lexbor understands{hint}") from error
    return text


_STRINGS: Final = late_pattern(r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]")
_BOUND: Final = late_pattern(r"\s*([>+,])\s*")
_UNBOUNDED: Final = late_pattern(r"~|:has|contains|:(?:is|where|not)\([^)]*[\s(>+]")
_COUNTED: Final = late_pattern(r"(:nth-[a-z-]*)\([^)]*\)")


class Shape(msgspec.Struct, frozen=True):
    """What a CSS selector costs where it finds nothing."""

    up: int
    """Steps that may go any number of ancestors up: an element costs its depth to this power, over the factorial."""
    counts: bool
    """Siblings are counted (:nth-child) again for each element."""


@lru_cache(maxsize=20_000)
def css_shape(text: str) -> Shape:
    """The shape of a selector, the worst of its alternatives."""
    bare = _COUNTED.sub(r"\1", _BOUND.sub(r"\1", _STRINGS.sub("[]", text.strip())))
    return Shape(max(len(part.split()) - 1 for part in bare.split(",")), ":nth" in bare)


def _css_bounded(text: str) -> bool:
    return _UNBOUNDED.search(_STRINGS.sub("[]", text)) is None


# ---- XPath


def _xpath(text: str) -> Any:
    from lxml import etree

    try:
        # XML documents declare the prefixes.
        names = {prefix: f"urn:{prefix}" for prefix in prefixes(text)}
        xpath = etree.XPath(text, regexp=False, smart_strings=False, namespaces=names or None)
        xpath(etree.fromstring("<a/>"))  # unknown functions and prefixes show only now
    except etree.XPathError as error:
        raise ValueError(f"not XPath 1.0: {' '.join(str(error).split())}") from None
    return xpath


# ---- JSON


def _jsonpath(text: str) -> Any:
    from nephila_rules.runtime.jsonpath import jsonpath

    return jsonpath(text)


def _jsonpath_bounded(text: str) -> bool:
    """Names, indices and wildcards look at each value once; descendants, filters and lists of selectors multiply."""
    return ".." not in text and "?" not in text and "," not in text


def _jmespath(text: str) -> Any:
    import jmespath

    try:
        return jmespath.compile(text)
    except Exception as error:
        raise ValueError(f"not JMESPath: {' '.join(str(error).split())[:200]}") from None


# ---- regular expressions


def _regex(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        cause = error.args[0] if error.args else ""
        reason = cause.decode(errors="replace") if isinstance(cause, bytes) else cause
        raise ValueError(f"not a valid RE2 expression: {reason}") from None


def _always(_: str) -> bool:
    return True


def _never(_: str) -> bool:
    return False


SELECTORS: Final = {
    "css": Language(_css, _css_bounded),
    "xpath": Language(_xpath, _never),
    "jsonpath": Language(_jsonpath, _jsonpath_bounded),
    "jmespath": Language(_jmespath, _never),
    "regex": Language(_regex, _always),
}
"""Language → how it is compiled. A new kind of selector is a row here and its evaluation in `select.py`."""
