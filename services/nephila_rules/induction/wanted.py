"""Values that a person names: whether a text of a page is that value, and of which type it is. Pure."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urljoin

from nephila_rules.runtime.values import TYPES

_PRICE: Final = re.compile(
    r"([$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|CNY|Kč|zł|kr)\b)\s*\d|\d\s*([$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|CNY|Kč|zł|kr)\b)"
)
_NUMBER: Final = re.compile(r"-?\d[\d,.' ]*%?$")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4}|\b(?:19|20)\d\d\b")


def folded(text: Any) -> str:
    """A value as it is compared: one line, white space collapsed."""
    return " ".join(str(text).split())


def is_same(raw: Any, value: str, base: str) -> bool:
    """Whether a raw value is the one that was named: the same text, the same URL, the same number or date."""
    if isinstance(raw, bool) or raw is None or isinstance(raw, dict | list):
        return False
    text = folded(raw)
    if text == value or folded_quotes(text) == folded_quotes(value):
        return True
    if "://" in value or value.startswith("/"):
        return "://" in urljoin(base, text) and " " not in text and urljoin(base, text) == urljoin(base, value)
    return _same_typed(text, value)


_QUOTES: Final = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)


def folded_quotes(text: str) -> str:
    """The text with plain quotes and dashes, as people type them."""
    return text.translate(_QUOTES)


def has_spellings(value: str) -> bool:
    """Whether a text that differs from the value may be the same: a URL, a number or a date."""
    is_url = "://" in value or value.startswith("/")
    return is_url or bool(_DATE.search(value) or _NUMBER.match(value))


def _same_typed(text: str, value: str) -> bool:
    for kind in ("date", "number"):
        if (kind == "date" and not _DATE.search(value)) or (kind == "number" and not _NUMBER.match(value)):
            continue
        if kind == "number" and len(text) > len(value) + 6:
            continue
        mine, other = _converted(kind, text), _converted(kind, value)
        if mine is None or other is None:
            continue
        if mine == other or (kind == "date" and len(value) <= 10 and str(mine)[:10] == str(other)[:10]):
            return True
    return False


def _converted(kind: str, text: str) -> Any:
    if len(text) > 60:
        return None
    try:
        return TYPES[kind](text, {}, str)
    except ValueError:
        return None


def type_of(values: list[str], attribute: str) -> str:
    """The type of a field by its values: text unless all are of another one."""
    if not values:
        return "text"
    if attribute in ("href", "src"):
        return "url"
    if all(_PRICE.search(value) and _converted("price", value) is not None for value in values):
        return "price"
    if all(_NUMBER.match(value) and _converted("number", value) is not None for value in values):
        return "number"
    if all(_DATE.search(value) and _converted("date", value) is not None for value in values):
        return "date"
    if all(value.startswith(("http://", "https://")) and " " not in value for value in values):
        return "url"
    return "text"
