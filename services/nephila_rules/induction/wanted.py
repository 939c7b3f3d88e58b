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


def is_same(found: Any, wanted: str, base: str) -> bool:
    """Whether a raw value is the one that was named: the same text, the same URL, the same number or date."""
    if isinstance(found, bool) or found is None or isinstance(found, dict | list):
        return False
    text = folded(found)
    if text == wanted or folded_quotes(text) == folded_quotes(wanted):
        return True
    if "://" in wanted or wanted.startswith("/"):
        return "://" in urljoin(base, text) and " " not in text and urljoin(base, text) == urljoin(base, wanted)
    return _same_typed(text, wanted)


_QUOTES: Final = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)


def folded_quotes(text: str) -> str:
    """With plain quotes and dashes: people type those."""
    return text.translate(_QUOTES)


def has_spellings(wanted: str) -> bool:
    """Whether a text that differs from the value may be the same: a URL, a number or a date."""
    is_url = "://" in wanted or wanted.startswith("/")
    return is_url or bool(_DATE.search(wanted) or _NUMBER.match(wanted))


def _same_typed(text: str, wanted: str) -> bool:
    for kind in ("date", "number"):
        if (kind == "date" and not _DATE.search(wanted)) or (kind == "number" and not _NUMBER.match(wanted)):
            continue
        if kind == "number" and len(text) > len(wanted) + 6:
            continue
        mine, theirs = _converted(kind, text), _converted(kind, wanted)
        if mine is None or theirs is None:
            continue
        if mine == theirs or (kind == "date" and len(wanted) <= 10 and str(mine)[:10] == str(theirs)[:10]):
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
    if all(_PRICE.search(one) and _converted("price", one) is not None for one in values):
        return "price"
    if all(_NUMBER.match(one) and _converted("number", one) is not None for one in values):
        return "number"
    if all(_DATE.search(one) and _converted("date", one) is not None for one in values):
        return "date"
    if all(one.startswith(("http://", "https://")) and " " not in one for one in values):
        return "url"
    return "text"
